"""Where platforms call: each request proves itself to its channel, by a signature or a secret."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from features.contracts.chat import WebhookChannel

__all__ = ["webhook_routes"]

_MAX_BYTES = 1024 * 1024


def webhook_routes(channels: Mapping[str, WebhookChannel]) -> list[Route]:
    return [Route(path, _Endpoint(channel).answer, methods=["POST"]) for path, channel in channels.items()]


class _Endpoint:
    def __init__(self, channel: WebhookChannel) -> None:
        self._channel = channel

    async def answer(self, request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_BYTES:
                return Response("too large", 413)
        answer = await self._channel.webhook(bytes(body), request.headers)
        return Response(answer.body, answer.status, media_type=answer.content_type)
