"""OpenAI's Chat Completions API on a loopback port, as strict as the real one.

In a process of its own, for benchmarks: ``python -m tests.servers.openai --port 8802 --delay 0.5``; it answers every request.
"""

import argparse
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import count
from typing import Any

from starlette.responses import Response

from tests.servers.openai_rules import validate
from tests.servers.script import Call, Failure, ModelServer, Refused, Reply, Step, error_response, pieces
from tests.servers.serving import run

__all__ = ["Call", "Failure", "OpenAIServer", "Reply"]


class OpenAIServer(ModelServer):
    """``url`` is the root; the SDK's base URL is ``url + "/v1"``.

    ``compatible`` makes it one of the other servers: no key needed, none of the fields that only OpenAI knows.
    """

    path = "/v1/chat/completions"
    api_key = "sk-test-openai-key"
    _numbers = count(1)

    def __init__(
        self,
        script: Sequence[Step] = (),
        *,
        respond: Callable[[dict[str, Any]], Step] | None = None,
        record: bool = True,
        compatible: bool = False,
    ) -> None:
        super().__init__(script, respond=respond, record=record)
        self._compatible = compatible

    def authenticate(self, headers: Mapping[str, str]) -> None:
        if not self._compatible and headers.get("authorization") != f"Bearer {self.api_key}":
            raise Refused("Incorrect API key provided.", status=401, code="invalid_api_key")

    def validate(self, body: dict[str, Any]) -> None:
        validate(body, compatible=self._compatible)

    def _refuse(self, refused: Refused) -> Response:
        error = {"message": str(refused), "type": refused.type, "param": None, "code": refused.code}
        return error_response(Failure(status=refused.status), {"error": error}, {})

    def failure(self, failure: Failure) -> Response:
        error = {"message": failure.message, "type": failure.type, "param": None, "code": failure.type or None}
        return error_response(failure, {"error": error}, {"x-request-id": f"req_{next(self._numbers):04d}"})

    async def events(self, reply: Reply, body: dict[str, Any]) -> AsyncIterator[bytes]:
        base = {
            "id": f"chatcmpl-{next(self._numbers):04d}",
            "object": "chat.completion.chunk",
            "created": 1_767_600_000,
            "model": body["model"],
        }
        for delta in self._deltas(reply):
            yield _chunk(base, delta)
        if reply.fault == "half":
            yield b'data: {"id":"chatcmpl-1","obj'
            return
        if reply.fault == "error":
            yield _data({"error": {"message": "The server had an error", "type": reply.error_type or "server_error", "code": None}})
            return
        if reply.fault in ("no_end", "stall"):
            return
        yield _chunk(base, {}, finish=reply.stop or ("tool_calls" if reply.calls else "stop"))
        if (body.get("stream_options") or {}).get("include_usage"):
            prompt = reply.input_tokens + reply.cache_read + reply.cache_write
            usage = {
                "prompt_tokens": prompt,
                "completion_tokens": reply.output_tokens,
                "total_tokens": prompt + reply.output_tokens,
                "prompt_tokens_details": {"cached_tokens": reply.cache_read, "cache_write_tokens": reply.cache_write},
                "completion_tokens_details": {"reasoning_tokens": 0},
            }
            yield _data({**base, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    def _deltas(self, reply: Reply) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
        deltas += [{"reasoning_content": piece} for piece in pieces(reply.thinking, reply.chunk)]
        deltas += [{"content": piece} for piece in pieces(reply.text, reply.chunk)]
        deltas += [{"refusal": piece} for piece in pieces(reply.refusal, reply.chunk)]
        for index, call in enumerate(reply.calls):
            function = {"name": call.name, "arguments": ""}
            start = {"index": index, "id": call.id or f"call_{next(self._numbers):04d}", "type": "function", "function": function}
            deltas.append({"tool_calls": [start]})
            deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces(call.json, reply.chunk)]
        return deltas


def _chunk(base: dict[str, Any], delta: dict[str, Any], finish: str | None = None) -> bytes:
    return _data({**base, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}], "usage": None})


def _data(content: Any) -> bytes:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n".encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer begins")
    parser.add_argument("--text", default="This is the answer.")
    parser.add_argument("--chunk", type=int, default=16, help="characters in each delta")
    options = parser.parse_args()
    reply = Reply(text=options.text, delay_s=options.delay, chunk=options.chunk)
    run(OpenAIServer(respond=lambda body: reply, record=False).app, options.port)


if __name__ == "__main__":
    main()
