"""Google's Gemini API on a loopback port, as strict as the real one."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from itertools import count
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tests.servers.google_rules import validate
from tests.servers.script import Call, Failure, ModelServer, Refused, Reply, error_response, pieces

__all__ = ["SIGNATURE", "Call", "Failure", "GoogleServer", "Reply"]

SIGNATURE = base64.b64encode(b"a thought of this service").decode()

_STATES = {
    "overloaded_error": (503, "UNAVAILABLE"),
    "rate_limit_error": (429, "RESOURCE_EXHAUSTED"),
    "api_error": (500, "INTERNAL"),
    "server_error": (500, "INTERNAL"),
}
"""How this service says what a script names in the words of another."""


class GoogleServer(ModelServer):
    """``url`` is the base URL. The model's name, which stands in the address, is put into each recorded body as ``model``."""

    path = "/v1/models/{model}:streamGenerateContent"
    api_key = "AIza-test-google-key"
    _numbers = count(1)

    def authenticate(self, headers: Mapping[str, str]) -> None:
        if headers.get("x-goog-api-key") != self.api_key:
            raise Refused("API key not valid. Please pass a valid API key.", type="INVALID_ARGUMENT", code="API_KEY_INVALID")

    def locate(self, request: Request, body: dict[str, Any]) -> None:
        if request.query_params.get("alt") != "sse":
            raise Refused("only alt=sse is spoken here")
        if "model" in body:
            raise Refused('Invalid JSON payload received. Unknown name "model": Cannot find field.', type="INVALID_ARGUMENT")
        body["model"] = request.path_params["model"]

    def validate(self, body: dict[str, Any]) -> None:
        validate(body)

    def _refuse(self, refused: Refused) -> Response:
        error: dict[str, Any] = {"code": refused.status, "message": str(refused), "status": refused.type}
        if refused.code:
            error["details"] = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": refused.code}]
        return error_response(Failure(status=refused.status), {"error": error}, {})

    def failure(self, failure: Failure) -> Response:
        content = {"error": {"code": failure.status, "message": failure.message, "status": failure.type or "UNKNOWN"}}
        return error_response(failure, content, {})

    async def events(self, reply: Reply, body: dict[str, Any]) -> AsyncIterator[bytes]:
        response_id = f"resp-{next(self._numbers)}"

        def chunk(parts: list[dict[str, Any]], finish: str | None = None) -> bytes:
            candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
            if finish is not None:
                candidate["finishReason"] = finish
            if not parts:
                del candidate["content"]
            usage = {
                "promptTokenCount": reply.input_tokens + reply.cache_read,
                "cachedContentTokenCount": reply.cache_read,
                "candidatesTokenCount": reply.output_tokens if finish else 1,
                "thoughtsTokenCount": 0,
            }
            return _data({"candidates": [candidate], "usageMetadata": usage, "modelVersion": body["model"], "responseId": response_id})

        if reply.refusal:
            yield _data({"promptFeedback": {"blockReason": reply.refusal}, "usageMetadata": {"promptTokenCount": reply.input_tokens}})
            return
        parts = self._parts(reply)
        for part in parts:
            yield chunk([part])
        if reply.fault == "half":
            yield b'data: {"candidates": [{"content": {"par'
            return
        if reply.fault == "error":
            code, status = _STATES[reply.error_type or "overloaded_error"]
            error = {"code": code, "message": "The answer cannot be finished.", "status": status}
            yield _data({"error": error})
            return
        if reply.fault in ("no_end", "stall"):
            return
        yield chunk([], reply.stop or "STOP")

    def _parts(self, reply: Reply) -> list[dict[str, Any]]:
        parts = [{"text": piece, "thought": True} for piece in pieces(reply.thinking, reply.chunk)]
        parts += [{"text": piece} for piece in pieces(reply.text, reply.chunk)]
        signed = bool(reply.thinking)
        if signed and not reply.calls:
            parts.append({"text": "", "thoughtSignature": SIGNATURE})
        for number, call in enumerate(reply.calls):
            function: dict[str, Any] = {"name": call.name, "args": json.loads(call.json)}
            if call.id:
                function["id"] = call.id
            part: dict[str, Any] = {"functionCall": function}
            if signed and number == 0:
                part["thoughtSignature"] = SIGNATURE
            parts.append(part)
        return parts


def _data(content: Any) -> bytes:
    return f"data: {json.dumps(content, ensure_ascii=False)}\r\n\r\n".encode()
