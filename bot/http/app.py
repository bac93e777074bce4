"""The application: the page, the API and the guard before both."""

from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.http.answers import ApiError, answer, error_answer
from bot.http.auth import Credentials
from bot.http.chats_api import ChatsApi
from bot.http.entry_api import EntryApi
from bot.http.guard import Guard, HostNames
from bot.http.host_view import HostView
from bot.http.jobs_api import JobsApi
from bot.http.openapi import openapi_document
from bot.http.operations import Operation, routes
from bot.http.owner_api import OwnerApi
from bot.http.sessions_api import SessionsApi
from bot.http.webhooks import webhook_routes
from channels.web import page_file
from features.contracts.chat import WebhookChannel
from features.contracts.clock import Clock
from features.contracts.errors import PumiceError

__all__ = ["build_app"]


def build_app(
    host: HostView, *, credentials: Credentials, names: HostNames, clock: Clock, identity: str, webhooks: Mapping[str, WebhookChannel]
) -> Starlette:
    """The whole HTTP side of a host.

    Args:
        identity: see ``EntryApi``.
        webhooks: the channels whose platforms call, by path.
    """
    operations = [
        *EntryApi(host, credentials, names, identity=identity).operations(),
        *ChatsApi(host, clock).operations(),
        *SessionsApi(host).operations(),
        *OwnerApi(host, clock).operations(),
        *JobsApi(host).operations(),
    ]

    async def openapi(request: Request) -> Response:
        return answer(openapi_document(operations, version=host.version))

    async def metrics(request: Request) -> Response:
        told = await host.metrics()
        if told is None:
            raise ApiError(404, "observability.prometheus is off on this host.")
        return Response(told[0], headers={"content-type": told[1]})

    operations.append(
        Operation(
            method="GET", path="/metrics", summary="What Prometheus reads.", handler=metrics, media="text/plain", errors=(404,),
        )
    )  # fmt: skip
    operations.append(Operation(method="GET", path="/api/openapi.json", summary="This document.", handler=openapi, gives=dict[str, Any]))
    app = Starlette(
        routes=[
            Route("/", page),
            Route("/static/{name}", page),
            *webhook_routes(webhooks),
            *routes(operations),
        ],
        middleware=[Middleware(Guard, credentials=credentials, names=names, webhooks=webhooks)],
        exception_handlers=dict.fromkeys((ApiError, HTTPException, PumiceError), error_answer),
    )
    app.router.redirect_slashes = False
    return app


async def page(request: Request) -> Response:
    """A file of the web page; it holds nothing of anybody."""
    file = page_file(request.path_params.get("name", "index.html"))
    if file is None:
        raise HTTPException(404)
    headers = {"etag": file.etag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)
