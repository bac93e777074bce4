"""How the commands of this machine reach a host."""

import base64
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from bot.http.client import HostClient, chat_path
from channels.console import ConsoleEvent, ConsoleMessage
from features.contracts.chat import Address, ChatCommand
from features.contracts.errors import UserMustAct

__all__ = ["HostedChat", "encoded_files"]

_MOST_BYTES = 50_000_000


class HostedChat:
    """One chat of a running host; implements ``ConsoleConnection``.

    Args:
        attended: whether somebody is there to answer questions.
    """

    def __init__(self, client: HostClient, address: Address, *, attended: bool = True) -> None:
        self._client = client
        self._address = address
        self._attended = attended

    async def post(self, text: str, files: Sequence[Path] = ()) -> str:
        body = {"text": text, "attended": self._attended, **encoded_files(files, images=True)}
        posted = await self._client.post(chat_path(self._address, "messages"), body)
        return str(posted["id"])

    async def events(self) -> AsyncGenerator[ConsoleEvent, None]:
        async with aclosing(self._client.events(self._address)) as events:
            async for event in events:
                yield ConsoleEvent(event.name, event.data)

    async def messages(self) -> Sequence[ConsoleMessage]:
        return msgspec.convert(await self._client.get(chat_path(self._address, "messages")), list[ConsoleMessage])

    async def commands(self) -> Sequence[ChatCommand]:
        return msgspec.convert(await self._client.get("/api/commands"), list[ChatCommand])

    async def send(self, text: str, files: Sequence[Path]) -> None:
        """Deliver something into the chat."""
        await self._client.post(chat_path(self._address, "send"), {"text": text, **encoded_files(files)})

    async def set_model(self, reference: str) -> None:
        await self._client.post(chat_path(self._address, "model"), {"model": reference})


def encoded_files(paths: Sequence[Path], *, images: bool = False) -> dict[str, Any]:
    """Files as a request carries them; with ``images``, pictures are told apart so that the model sees them.

    Raises:
        UserMustAct: one cannot be read, or all together are larger than 50 MB.
    """
    found: dict[str, list[Any]] = {"files": []} | ({"images": []} if images else {})
    size = 0
    for path in paths:
        try:
            size += path.stat().st_size
            if size > _MOST_BYTES:
                raise UserMustAct(f"{path} is too much: at most 50 MB can be sent at once.")
            data = path.read_bytes()
        except OSError as error:
            raise UserMustAct(f"{path} cannot be read: {error.strerror}.") from None
        mime_type = _mime_type(data)
        entry = {"name": path.name, "data": base64.b64encode(data).decode(), "mimeType": mime_type}
        found["images" if images and mime_type in _IMAGES else "files"].append(entry)
    return found


_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def _mime_type(data: bytes) -> str | None:
    import filetype  # type: ignore[import-untyped]

    return str(found) if (found := filetype.guess_mime(data)) else None
