"""The ways in: health, the login, and the proof that this is the host which wrote ``http.url``."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bot.http.answers import ApiError, answer, read_json
from bot.http.auth import COOKIE_SECONDS, LINK_SECONDS, Credentials
from bot.http.entry_proof import prove
from bot.http.guard import HostNames
from bot.http.host_view import HostView
from bot.http.operations import Operation, Parameter
from bot.http.requests import Login

__all__ = ["EntryApi"]


class ShownChannel(msgspec.Struct, frozen=True):
    state: Literal["starting", "working", "degraded", "stopped"]
    detail: str
    last_event_at: datetime | None


class ShownHealth(msgspec.Struct, frozen=True):
    status: Literal["ok", "degraded", "starting", "stopping"]
    version: str
    channels: dict[str, ShownChannel]


class LoginLink(msgspec.Struct, frozen=True):
    url: str
    expires_in: Annotated[int, msgspec.Meta(description="seconds")]


class Hello(msgspec.Struct, frozen=True):
    proof: str


class EntryApi:
    """
    Args:
        identity: secret of this running host; it stands in ``http.url``, which only the same user can read.
    """

    def __init__(self, host: HostView, credentials: Credentials, names: HostNames, *, identity: str) -> None:
        self._host = host
        self._credentials = credentials
        self._names = names
        self._identity = identity

    def operations(self) -> list[Operation]:
        nonce = Parameter(name="nonce", description="Up to 200 characters of the caller's choice.")
        return [
            Operation(
                method="GET", path="/healthz", summary="How the host is; 200 while it lives.", handler=self.healthz,
                gives=ShownHealth, public=True,
            ),
            Operation(
                method="GET", path="/readyz", summary="200 when every channel works, else 503.", handler=self.readyz,
                gives=ShownHealth, public=True, errors=(503,),
            ),
            Operation(
                method="GET", path="/api/hello", summary="Proves to a program of the same user that this is its host.",
                handler=self.hello, gives=Hello, public=True, parameters=(nonce,), errors=(400,),
            ),
            Operation(
                method="POST", path="/api/login", summary="Exchange a one-time link's secret, or the token, for a cookie.",
                handler=self.login, takes=Login, status=204, public=True, errors=(400, 401),
            ),
            Operation(method="POST", path="/api/logout", summary="Take the cookie away.", handler=self.logout, status=204),
            Operation(method="POST", path="/api/login-link", summary="A fresh one-time link.", handler=self.login_link, gives=LoginLink),
        ]  # fmt: skip

    async def healthz(self, request: Request) -> Response:
        return answer(self._health())

    async def readyz(self, request: Request) -> Response:
        health = self._health()
        return answer(health, 200 if health.status == "ok" else 503)

    async def hello(self, request: Request) -> Response:
        nonce = request.query_params.get("nonce", "")
        if not 1 <= len(nonce) <= 200:
            raise ApiError(400, "nonce has 1 to 200 characters.")
        return answer(Hello(prove(self._identity, nonce)))

    async def login(self, request: Request) -> Response:
        login = await read_json(request, Login, limit=10_000)
        if login.secret is not None and not self._credentials.redeem(login.secret):
            raise ApiError(401, "This link was used or is older than ten minutes. Get a new one by 'pumice run', or enter the token.")
        if login.secret is None and not self._credentials.is_token(login.token or ""):
            raise ApiError(401, "That is not the token. It is in the file http.token in the data directory.")
        response = Response(status_code=204)
        response.set_cookie(
            self._credentials.cookie_name,
            self._credentials.new_cookie(),
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="strict",
            secure=self._base(request).startswith("https:"),
        )
        return response

    async def logout(self, request: Request) -> Response:
        response = Response(status_code=204)
        response.delete_cookie(self._credentials.cookie_name, httponly=True, samesite="strict")
        return response

    async def login_link(self, request: Request) -> Response:
        return answer(LoginLink(f"{self._base(request)}/#login={self._credentials.new_link()}", LINK_SECONDS))

    def _base(self, request: Request) -> str:
        host = request.headers["host"]
        public = self._names.public_origin
        return public if public is not None and public.endswith(f"//{host.lower()}") else f"{request.url.scheme}://{host}"

    def _health(self) -> ShownHealth:
        health = self._host.health()
        deaf = any(not channel.working for channel in health.channels.values())
        shown = {name: ShownChannel(c.state, c.detail, c.last_event_at) for name, c in health.channels.items()}
        if health.state != "running":
            return ShownHealth(health.state, self._host.version, shown)
        return ShownHealth("degraded" if deaf else "ok", self._host.version, shown)
