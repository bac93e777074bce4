"""Anthropic's Messages API on a loopback port, as strict as the real one.

In a process of its own, for benchmarks: ``python -m tests.servers.anthropic --port 8801 --delay 0.5``; it answers every request.
"""

import argparse
import json
from collections.abc import AsyncIterator, Mapping
from itertools import count
from typing import Any

from starlette.responses import Response

from tests.servers.anthropic_rules import validate
from tests.servers.script import Call, Failure, ModelServer, Refused, Reply, error_response, pieces
from tests.servers.serving import run

__all__ = ["AnthropicServer", "Call", "Failure", "Reply"]

SIGNATURE = "sig-real-thinking"


class AnthropicServer(ModelServer):
    path = "/v1/messages"
    api_key = "sk-ant-test-key"
    _numbers = count(1)

    def authenticate(self, headers: Mapping[str, str]) -> None:
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if given != self.api_key:
            raise Refused("invalid x-api-key", status=401, type="authentication_error")
        if "anthropic-version" not in headers:
            raise Refused("anthropic-version: header is required")

    def validate(self, body: dict[str, Any]) -> None:
        validate(body)

    def failure(self, failure: Failure) -> Response:
        request_id = f"req_{next(self._numbers):04d}"
        error = {"type": failure.type or "api_error", "message": failure.message}
        content = {"type": "error", "error": error, "request_id": request_id}
        return error_response(failure, content, {"request-id": request_id})

    async def events(self, reply: Reply, body: dict[str, Any]) -> AsyncIterator[bytes]:
        usage = {
            "input_tokens": reply.input_tokens,
            "cache_creation_input_tokens": reply.cache_write,
            "cache_read_input_tokens": reply.cache_read,
            "output_tokens": 1,
        }
        message = {
            "id": f"msg_{next(self._numbers):04d}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield _event("message_start", message=message)
        yield _event("ping")
        for block in self._blocks(reply):
            for data in block:
                yield data
        if reply.fault == "half":
            yield b'event: content_block_delta\ndata: {"type":"content_block_del'
            return
        if reply.fault == "error":
            error = {"type": reply.error_type or "overloaded_error", "message": "Overloaded"}
            yield _event("error", error=error)
            return
        if reply.fault in ("no_end", "stall"):
            return
        stop = reply.stop or ("tool_use" if reply.calls else "end_turn")
        details = {"type": "refusal", "category": "bio", "explanation": reply.refusal} if stop == "refusal" else None
        delta = {"stop_reason": stop, "stop_sequence": None, "stop_details": details}
        yield _event("message_delta", delta=delta, usage={"output_tokens": reply.output_tokens})
        yield _event("message_stop")

    def _blocks(self, reply: Reply) -> list[list[bytes]]:
        blocks: list[list[bytes]] = []
        if reply.thinking:
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(reply.thinking, reply.chunk)]
            opening = {"type": "thinking", "thinking": "", "signature": ""}
            blocks.append(_block(len(blocks), opening, [*deltas, {"type": "signature_delta", "signature": SIGNATURE}]))
        if reply.text:
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(reply.text, reply.chunk)]
            blocks.append(_block(len(blocks), {"type": "text", "text": ""}, deltas))
        for call in reply.calls:
            start: dict[str, Any] = {
                "type": "tool_use",
                "id": call.id or f"toolu_{next(self._numbers):04d}",
                "name": call.name,
                "input": {},
            }
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(call.json, reply.chunk)]]
            blocks.append(_block(len(blocks), start, deltas))
        return blocks


def _block(index: int, start: dict[str, Any], deltas: list[dict[str, str]]) -> list[bytes]:
    return [
        _event("content_block_start", index=index, content_block=start),
        *(_event("content_block_delta", index=index, delta=delta) for delta in deltas),
        _event("content_block_stop", index=index),
    ]


def _event(type: str, **fields: Any) -> bytes:
    return f"event: {type}\ndata: {json.dumps({'type': type, **fields}, ensure_ascii=False)}\n\n".encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer begins")
    parser.add_argument("--text", default="This is the answer.")
    parser.add_argument("--chunk", type=int, default=16, help="characters in each delta")
    options = parser.parse_args()
    reply = Reply(text=options.text, delay_s=options.delay, chunk=options.chunk)
    run(AnthropicServer(respond=lambda body: reply, record=False).app, options.port)


if __name__ == "__main__":
    main()
