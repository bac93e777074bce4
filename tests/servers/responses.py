"""OpenAI's Responses API on a loopback port, as strict as the real one."""

import json
from collections.abc import AsyncIterator, Mapping
from itertools import count
from typing import Any

from starlette.responses import Response

from tests.servers.responses_rules import SEAL, validate
from tests.servers.script import Call, Failure, ModelServer, Refused, Reply, error_response, pieces

__all__ = ["Call", "Failure", "Reply", "ResponsesServer"]


class ResponsesServer(ModelServer):
    """``url`` is the root; the SDK's base URL is ``url + "/v1"``. ``Reply.stop`` is the reason of an incomplete answer."""

    path = "/v1/responses"
    api_key = "sk-test-openai-key"
    _numbers = count(1)

    def authenticate(self, headers: Mapping[str, str]) -> None:
        if headers.get("authorization") != f"Bearer {self.api_key}":
            raise Refused("Incorrect API key provided.", status=401, code="invalid_api_key")

    def validate(self, body: dict[str, Any]) -> None:
        validate(body)

    def _refuse(self, refused: Refused) -> Response:
        error = {"message": str(refused), "type": refused.type, "param": None, "code": refused.code}
        return error_response(Failure(status=refused.status), {"error": error}, {})

    def failure(self, failure: Failure) -> Response:
        error = {"message": failure.message, "type": failure.type, "param": None, "code": failure.type or None}
        return error_response(failure, {"error": error}, {"x-request-id": f"req_{next(self._numbers):04d}"})

    async def events(self, reply: Reply, body: dict[str, Any]) -> AsyncIterator[bytes]:
        numbers = count()

        def event(type: str, **fields: Any) -> bytes:
            content = {"type": type, "sequence_number": next(numbers), **fields}
            return f"event: {type}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n".encode()

        response = {"id": f"resp_{next(self._numbers):04d}", "object": "response", "model": body["model"], "status": "in_progress"}
        yield event("response.created", response=response)
        yield event("response.in_progress", response=response)
        last = len(reply.calls) - 1 + bool(reply.thinking) + bool(reply.text or reply.refusal)
        cut_off = reply.stop is not None or reply.fault is not None
        for index, (item, deltas) in enumerate(self._items(reply)):
            yield event("response.output_item.added", output_index=index, item=item | _EMPTY[item["type"]] | {"status": "in_progress"})
            for name, fields in deltas:
                yield event(name, output_index=index, item_id=item["id"], **fields)
            if not (cut_off and index == last):
                yield event("response.output_item.done", output_index=index, item=item)
        if reply.fault == "half":
            yield b'event: response.completed\ndata: {"type":"response.comp'
            return
        if reply.fault == "error":
            yield event("error", code=reply.error_type or "server_error", message="The server had an error", param=None)
            return
        if reply.fault in ("no_end", "stall"):
            return
        read = reply.cache_read
        ending = {
            "status": "incomplete" if reply.stop else "completed",
            "incomplete_details": {"reason": reply.stop} if reply.stop else None,
            "error": None,
            "usage": {
                "input_tokens": reply.input_tokens + read + reply.cache_write,
                "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": reply.cache_write},
                "output_tokens": reply.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": reply.input_tokens + read + reply.cache_write + reply.output_tokens,
            },
        }
        yield event("response.incomplete" if reply.stop else "response.completed", response=response | ending)

    def _items(self, reply: Reply) -> list[tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]]:
        items: list[tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]] = []
        if reply.thinking:
            item: dict[str, Any] = {"type": "reasoning", "id": f"rs_{next(self._numbers):04d}", "encrypted_content": SEAL + reply.thinking}
            parts = [part for part in reply.thinking.split("\n\n") if part]
            item["summary"] = [{"type": "summary_text", "text": part} for part in parts]
            deltas: list[tuple[str, dict[str, Any]]] = []
            for number, part in enumerate(parts):
                deltas.append(("response.reasoning_summary_part.added", {"summary_index": number}))
                deltas += [
                    ("response.reasoning_summary_text.delta", {"summary_index": number, "delta": piece})
                    for piece in pieces(part, reply.chunk)
                ]
                deltas.append(("response.reasoning_summary_part.done", {"summary_index": number}))
            items.append((item, deltas))
        if reply.text or reply.refusal:
            texts = [{"type": "output_text", "text": reply.text, "annotations": []}] if reply.text else []
            refusals = [{"type": "refusal", "refusal": reply.refusal}] if reply.refusal else []
            item = {"type": "message", "id": f"msg_{next(self._numbers):04d}", "role": "assistant", "status": "completed"}
            deltas = [("response.content_part.added", {"content_index": 0})]
            deltas += [("response.output_text.delta", {"content_index": 0, "delta": piece}) for piece in pieces(reply.text, reply.chunk)]
            deltas += [("response.refusal.delta", {"content_index": 0, "delta": piece}) for piece in pieces(reply.refusal, reply.chunk)]
            items.append((item | {"content": [*texts, *refusals], "phase": "final_answer"}, deltas))
        for call in reply.calls:
            item = {"type": "function_call", "id": f"fc_{next(self._numbers):04d}", "status": "completed", "name": call.name}
            item |= {"call_id": call.id or f"call_{next(self._numbers):04d}", "arguments": call.json}
            items.append((item, [("response.function_call_arguments.delta", {"delta": piece}) for piece in pieces(call.json, reply.chunk)]))
        return items


_EMPTY: dict[str, dict[str, Any]] = {
    "reasoning": {"summary": [], "encrypted_content": None},
    "message": {"content": [], "phase": None},
    "function_call": {"arguments": ""},
}
