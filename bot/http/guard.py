"""What every request passes before anything else sees it."""

from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.http.answers import ApiError, error_answer
from bot.http.auth import Credentials
from bot.http.jobs_api import HOOKS

__all__ = ["Guard", "HostNames"]

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_PUBLIC = frozenset({"/", "/healthz", "/readyz", "/api/login", "/api/hello"})
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


class HostNames:
    """The names under which this host may be asked.

    A page elsewhere whose name is made to lead to this machine still names itself in the Host header; that is where it is caught.
    """

    def __init__(self, bound_host: str, public_url: str = "") -> None:
        public = urlsplit(public_url)
        names = {"127.0.0.1", "localhost", "::1", bound_host.strip("[]").lower(), (public.hostname or "").lower()}
        self._names = names - {"", "0.0.0.0", "::"}  # noqa: S104 - an address to listen on is no name to be asked by
        self.public_origin = f"{public.scheme}://{public.netloc}".lower() if public.netloc else None

    def is_ours(self, host: str | None) -> bool:
        name = _host_name(host or "")
        return name is not None and name in self._names

    def is_own_origin(self, origin: str, host: str) -> bool:
        """Whether a request comes from this very page: the same name and port, or the public address."""
        parts = urlsplit(origin.lower())
        same = parts.scheme in ("http", "https") and parts.netloc == host.lower() and self.is_ours(parts.netloc)
        return same or (self.public_origin is not None and origin.lower() == self.public_origin)


def _host_name(host: str) -> str | None:
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port
    except ValueError:
        return None
    if "@" in host or (parts.path or parts.query or parts.fragment) or (port is not None and port < 1):
        return None
    return parts.hostname


class Guard:
    """Checks name, origin and credentials; puts the security headers on every answer; catches what nobody expected.

    Args:
        webhooks: paths whose requests prove themselves by a signature.
    """

    def __init__(self, app: ASGIApp, *, credentials: Credentials, names: HostNames, webhooks: Collection[str] = ()) -> None:
        self._app = app
        self._webhooks = frozenset(webhooks)
        self._credentials = credentials
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, send_guarded)
        except Exception as error:
            response = await error_answer(Request(scope), error)
            if not started:
                await response(scope, receive, send_guarded)

    def _check(self, scope: Scope) -> None:
        path: str = scope["path"]
        if path in self._webhooks:
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._names.is_ours(host):
            raise ApiError(403, f"This host is not asked as {host!r}. Use 127.0.0.1 or localhost, or set http.public_url to that name.")
        origin = headers.get("origin")
        if origin is not None and not self._names.is_own_origin(origin, host):
            raise ApiError(403, f"A page of {origin!r} may not use this host. Open the host's own page.")
        safe = scope["method"] in _SAFE
        if path in _PUBLIC or path.startswith(("/static/", HOOKS)):
            return
        by = self._credentials.judge(headers.get("authorization"), _cookie(headers, self._credentials.cookie_name))
        if by is None:
            raise ApiError(
                401,
                "This needs the HTTP token. Send it as 'Authorization: Bearer TOKEN' (it is in http.token in the data directory), "
                "or open the link that 'pumice run' prints.",
                headers={"www-authenticate": "Bearer"},
            )
        if by == "cookie" and not safe and origin is None:  # every browser says where such a request comes from
            raise ApiError(403, "A request with a cookie must name its Origin. Programs use 'Authorization: Bearer TOKEN'.")


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return None
    return cookies[name].value if name in cookies else None
