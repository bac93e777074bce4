"""The Slack Web API, as far as Pumice uses it: one session, no hidden retries, errors by what they mean."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from channels.slack.options import SlackOptions

__all__ = ["Flooded", "Me", "SlackApi", "SlackRefusal", "SlackUnreachable"]

_TIMEOUT_S = 30.0
_CONNECTIONS = 64
_quiet = logging.getLogger("pumice.slack.sdk")
_quiet.setLevel(logging.CRITICAL)  # it logs what it raises, bodies included


class SlackRefusal(Exception):
    """Slack answered, and the answer is no.

    ``code`` is Slack's word for it; ``needed`` the missing scope where that is the trouble; ``status`` the HTTP status.
    """

    def __init__(self, method: str, code: str, *, needed: str = "", status: int = 200) -> None:
        super().__init__(f"{method}: {code}" + (f" (needs the scope {needed})" if needed else ""))
        self.method = method
        self.code = code
        self.needed = needed
        self.status = status


class Flooded(SlackRefusal):
    """Slack asks for a pause of ``seconds``."""

    def __init__(self, method: str, seconds: float) -> None:
        super().__init__(method, "ratelimited", status=429)
        self.seconds = seconds


class SlackUnreachable(Exception):
    """No answer. ``sent`` says whether Slack may have taken the call."""

    def __init__(self, method: str, reason: str, *, sent: bool) -> None:
        super().__init__(f"{method}: {reason}")
        self.sent = sent


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """The bot as auth.test tells it; ``scopes`` is what its token may do, empty where Slack does not say."""

    team_id: str
    user_id: str
    bot_id: str
    team: str = ""
    name: str = ""
    scopes: frozenset[str] = frozenset()


class SlackApi:
    """Calls by their documented names. Every error is one of this module's."""

    def __init__(self, options: SlackOptions) -> None:
        self._options = options
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self.client = AsyncWebClient(
            token=options.bot_token, base_url=options.api_url, timeout=int(_TIMEOUT_S), retry_handlers=[], logger=_quiet
        )

    async def close(self) -> None:
        self._closed = True
        session, self._session, self.client.session = self._session, None, None
        if session is not None:
            await session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        """Opened when first needed, and anew where it was lost.

        Raises:
            SlackUnreachable: after ``close``.
        """
        if self._closed:
            raise SlackUnreachable("any call", "the connection was closed", sent=False)
        if self._session is None or self._session.closed:
            timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S, connect=10.0)
            self._session = aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=_CONNECTIONS))
        return self._session

    async def call(self, method: str, *, token: str | None = None, form: bool = False, **arguments: Any) -> dict[str, Any]:
        """Call a method.

        Args:
            form: the method takes no JSON.

        Raises:
            SlackRefusal, Flooded, SlackUnreachable.
        """
        self.client.session = self.session
        given = {name: value for name, value in arguments.items() if value is not None}
        headers = {"Authorization": f"Bearer {token}"} if token is not None else None
        try:
            if form:
                answer = await self.client.api_call(method, params=given, headers=headers)
            else:
                answer = await self.client.api_call(method, json=given, headers=headers)
        except SlackApiError as error:
            raise _refusal(method, error) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unreachable(method, error) from None
        return {**answer.data, "_scopes": answer.headers.get("x-oauth-scopes", "")}  # type: ignore[dict-item]

    async def me(self) -> Me:
        told = await self.call("auth.test")
        return Me(
            team_id=told["team_id"],
            user_id=told["user_id"],
            bot_id=told.get("bot_id", ""),
            team=told.get("team", ""),
            name=told.get("user", ""),
            scopes=frozenset(scope.strip() for scope in told["_scopes"].split(",") if scope.strip()),
        )

    async def socket_url(self) -> str:
        told = await self.call("apps.connections.open", token=self._options.app_token)
        return str(told["url"])

    async def upload(self, path: Path, name: str) -> str:
        """Bring a file to Slack; gives its id, with which it is then put into a conversation."""
        size = (await asyncio.to_thread(path.stat)).st_size
        place = await self.call("files.getUploadURLExternal", form=True, filename=name, length=size)
        try:
            with path.open("rb") as content:
                async with self.session.post(place["upload_url"], data=content) as answer:
                    if answer.status == 429:
                        raise Flooded("upload", _seconds(answer.headers.get("Retry-After")))
                    if answer.status != 200:
                        raise SlackRefusal("upload", f"HTTP {answer.status}", status=answer.status)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SlackUnreachable("upload", _words(error), sent=False) from None  # nobody sees it before it is completed
        return str(place["file_id"])


def _refusal(method: str, error: SlackApiError) -> SlackRefusal:
    answer: Any = error.response
    status = int(getattr(answer, "status_code", 0) or getattr(answer, "status", 0) or 0)
    headers: Any = getattr(answer, "headers", {}) or {}
    data: Any = getattr(answer, "data", {})
    code = str(data.get("error", "")) if isinstance(data, dict) else ""
    if status == 429 or code in ("ratelimited", "rate_limited"):
        return Flooded(method, _seconds(headers.get("Retry-After")))
    needed = str(data.get("needed", "")) if isinstance(data, dict) else ""
    return SlackRefusal(method, code or f"HTTP {status}", needed=needed, status=status)


def _unreachable(method: str, error: Exception) -> SlackUnreachable:
    return SlackUnreachable(method, _words(error), sent=not isinstance(error, aiohttp.ClientConnectorError))


def _words(error: Exception) -> str:
    """Without addresses: a socket's address is a secret."""
    return {aiohttp.ClientConnectorError: "cannot connect", TimeoutError: "no answer in time"}.get(type(error), type(error).__name__)


def _seconds(written: str | None) -> float:
    try:
        return max(1.0, float(written or ""))
    except ValueError:
        return 5.0
