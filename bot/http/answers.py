"""What requests bring and what they are answered: JSON in, JSON out, errors with a text that says what to do."""

import logging
import secrets
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from features.contracts.errors import OperatorMustAct, PumiceError, RetryLater, UserMustAct

__all__ = ["ApiError", "answer", "error_answer", "read_json"]

T = TypeVar("T")
log = logging.getLogger("pumice.http")
_encoder = msgspec.json.Encoder()


class ApiError(Exception):
    """A request that cannot be met."""

    def __init__(self, status: int, text: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers


class ErrorText(msgspec.Struct, frozen=True):
    error: str


def answer(data: Any, status: int = 200, *, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(_encoder.encode(data), status, headers, media_type="application/json")


async def read_json(request: Request, shape: type[T], *, limit: int) -> T:
    """The body as ``shape``.

    Raises:
        ApiError: 413 when it is longer than ``limit`` bytes, 400 when it is no such JSON; the text names the place.
    """
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_long(limit)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise _too_long(limit)
    except ClientDisconnect:
        raise ApiError(400, "The request ended before its body was complete.") from None
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, f"The body is not the JSON that is expected here: {error}.") from None


def _too_long(limit: int) -> ApiError:
    return ApiError(413, f"The body is too long: at most {limit // 1_000_000} MB are taken here.")


async def error_answer(request: Request, error: Exception) -> Response:
    """Every error as JSON. What is nobody's fault outside is logged under an id that the answer names."""
    match error:
        case ApiError():
            return answer(ErrorText(str(error)), error.status, headers=error.headers)
        case HTTPException():
            return answer(ErrorText(_sentence(error.status_code, request)), error.status_code, headers=dict(error.headers or {}))
        case UserMustAct():
            return answer(ErrorText(str(error)), 400)
        case RetryLater():
            seconds = max(1, round(error.after.total_seconds())) if error.after else 5
            return answer(ErrorText(str(error)), 503, headers={"retry-after": str(seconds)})
        case OperatorMustAct():
            return answer(ErrorText(str(error)), 503)
        case PumiceError():
            return answer(ErrorText(str(error)), 409)
    identifier = secrets.token_hex(4)
    log.error("request failed", exc_info=error, extra={"facts": {"id": identifier, "method": request.method, "path": request.url.path}})
    return answer(ErrorText(f"Something went wrong in the host; its log tells more under {identifier}."), 500)


def _sentence(status: int, request: Request) -> str:
    match status:
        case 404:
            return f"There is nothing at {request.url.path!r}. /api/openapi.json lists what there is."
        case 405:
            return f"{request.method} is not possible at {request.url.path!r}."
        case _:
            return HTTPStatus(status).phrase
