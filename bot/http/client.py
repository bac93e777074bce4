"""Talks to the host that runs on a data directory, for the commands of this machine."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import msgspec

from bot.http.entry_proof import prove
from features.contracts.chat import Address
from features.contracts.errors import OperatorMustAct, PumiceError, UserMustAct

if TYPE_CHECKING:
    import httpx2

__all__ = ["HostClient", "ServerEvent"]

_CONNECT_SECONDS = 5.0
_RECONNECTS = 20
_RECONNECT_SECONDS = 0.5


class ServerEvent(msgspec.Struct, frozen=True):
    """One event of a chat. ``data`` is decoded JSON."""

    id: int
    name: str
    data: dict[str, Any]


class HostClient:
    """A connection to a running host; use it as a context manager.

    Raises, from every call:
        UserMustAct: the host refused what was asked; its text says why.
        OperatorMustAct: the host went away or does not take the token.
    """

    def __init__(self, url: str, token: str) -> None:
        import httpx2

        self.url = url
        self._http = httpx2.AsyncClient(
            base_url=url,
            headers={"authorization": f"Bearer {token}"},
            timeout=httpx2.Timeout(60.0, connect=_CONNECT_SECONDS),
            trust_env=False,  # a proxy of the environment must not see the token
        )

    @classmethod
    async def connect(cls, data_dir: Path, *, token: str | None = None) -> "HostClient":
        """The host of a data directory.

        Args:
            token: the configured one; without it ``data_dir/http.token`` holds it.

        Raises:
            OperatorMustAct: none runs there.
        """
        found = await cls.find(data_dir, token=token)
        if found is None:
            raise OperatorMustAct(f"no host is running on {data_dir}. Start it with 'pumice run'.")
        return found

    @classmethod
    async def find(cls, data_dir: Path, *, token: str | None = None) -> "HostClient | None":
        """The host of a data directory, None where none runs.

        The token is shown only to a process that proves to be the host which wrote ``http.url``: after a crash another program may have
        its port.
        """
        try:
            url, identity = (data_dir / "http.url").read_text().split()
            token = token or (data_dir / "http.token").read_text().strip()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise OperatorMustAct(f"{data_dir / 'http.url'} cannot be read: {error}. Run this as the user who runs the host.") from None
        return cls(url, token) if await _is_host(url, identity) else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._http.aclose()

    async def get(self, path: str, **query: str) -> Any:
        return await self._call("GET", path, query=query)

    async def download(self, path: str, **query: str) -> bytes:
        return (await self._request("GET", path, query=query)).content

    async def post(self, path: str, body: Any) -> Any:
        return await self._call("POST", path, body=body)

    async def delete(self, path: str) -> Any:
        return await self._call("DELETE", path)

    async def events(self, address: Address) -> AsyncGenerator[ServerEvent, None]:
        """A chat's events as they come, over lost connections; the first is ``connected``, once nothing more can be missed.

        ``connected`` comes again after each reconnect.
        """
        import httpx2

        failures = 0
        after: int | None = None
        while True:
            try:
                async with aclosing(self._stream(address, after)) as stream:
                    async for event in stream:
                        failures = 0
                        after = event.id if event.id > 0 else after
                        yield event
            except httpx2.TransportError:
                failures += 1
            if failures >= _RECONNECTS:
                raise OperatorMustAct(f"the host at {self.url} went away. Look at its log, and start it with 'pumice run'.")
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _stream(self, address: Address, after: int | None) -> AsyncGenerator[ServerEvent, None]:
        import httpx2

        headers = {"last-event-id": str(after)} if after is not None else {}
        path = chat_path(address, "events")
        timeout = httpx2.Timeout(60.0, connect=_CONNECT_SECONDS)  # the host speaks every 15 s
        async with self._http.sse(path, headers=headers, timeout=timeout, max_event_size=None) as source:
            if source.response.status_code != HTTPStatus.OK:
                await source.response.aread()
                raise self._refusal(source.response)
            yield ServerEvent(0, "connected", {})
            async for event in source:
                yield ServerEvent(int(event.id or 0), event.event, msgspec.json.decode(event.data))

    async def _call(self, method: str, path: str, *, query: dict[str, str] | None = None, body: Any = None) -> Any:
        response = await self._request(method, path, query=query, body=body)
        return msgspec.json.decode(response.content) if response.content else None

    async def _request(self, method: str, path: str, *, query: dict[str, str] | None = None, body: Any = None) -> "httpx2.Response":
        import httpx2

        content = msgspec.json.encode(body) if body is not None else None
        headers = {"content-type": "application/json"} if content is not None else {}
        try:
            response = await self._http.request(method, path, params=query, content=content, headers=headers)
        except httpx2.TransportError as error:
            raise OperatorMustAct(f"the host at {self.url} does not answer ({type(error).__name__}). Start it with 'pumice run'.") from None
        if not response.is_success:
            raise self._refusal(response)
        return response

    def _refusal(self, response: "httpx2.Response") -> PumiceError:
        try:
            text = str(msgspec.json.decode(response.content)["error"])
        except (msgspec.DecodeError, KeyError, TypeError):
            text = f"the host answered {response.status_code}."
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            return OperatorMustAct(f"the host at {self.url} does not take the token. Use the configuration that it was started with.")
        return UserMustAct(text)


def chat_path(address: Address, rest: str) -> str:
    """The path of something of a chat."""
    return f"/api/chats/{quote(str(address), safe=':')}/{rest}"


async def _is_host(url: str, identity: str) -> bool:
    import httpx2

    nonce = secrets.token_urlsafe(24)
    try:
        async with httpx2.AsyncClient(timeout=_CONNECT_SECONDS, trust_env=False) as http:
            response = await http.get(f"{url}/api/hello", params={"nonce": nonce})
            said = msgspec.json.decode(response.content)
    except (httpx2.TransportError, msgspec.DecodeError):
        return False
    return isinstance(said, dict) and secrets.compare_digest(str(said.get("proof")), prove(identity, nonce))
