"""What extensions keep on the branch: their state, and their texts for the model.

Each change is a custom entry, so that it follows the branch: whoever goes back to an earlier entry finds what held then.
"""

import unicodedata
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

import msgspec

from features.contracts.clock import unix_ms
from features.contracts.messages import CustomMessage, Message
from features.contracts.sessions import CustomEntry, SessionEntry

__all__ = ["RESERVED", "BranchState", "StatePort"]

RESERVED = "pumice."
_STATE = "pumice.state"
_MODEL_CONTEXT = "pumice.model_context"
_MAX_KEY_CHARS = 256
_MAX_ENTRY_BYTES = 64 * 1024
_MAX_EXTENSION_BYTES = 4 * 1024 * 1024

Place = Literal["system_prompt", "message"]
_encode = msgspec.json.Encoder(order="sorted").encode


class StatePort(Protocol):
    """What of the session this needs. ``messages`` is another list when the branch has become another one."""

    @property
    def messages(self) -> Sequence[Message]: ...

    def branch(self) -> Sequence[SessionEntry]: ...

    async def add_entry(self, custom_type: str, data: Any) -> str: ...

    def clean(self, value: Any) -> Any: ...


class BranchState:
    """Read anew from the branch whenever that is another one; until then a change here is one entry and one place in memory.

    A value that is there already is not written again. What an extension that is not loaded has left stays, unseen.
    """

    def __init__(self, port: StatePort, now: Callable[[], int]) -> None:
        self._port = port
        self._now = now
        self._seen: Sequence[Message] | None = None
        self._values: dict[tuple[str, str], bytes] = {}
        self._contexts: dict[tuple[str, str], tuple[Place, str, int]] = {}

    # State

    def get(self, extension: str, key: str, default: Any) -> Any:
        self._follow()
        raw = self._values.get((extension, key))
        return default if raw is None else msgspec.json.decode(raw)

    async def set(self, extension: str, key: str, value: Any) -> None:
        _check_name("state key", key)
        raw = self._written(value)
        value = msgspec.json.decode(raw)
        self._follow()
        present = self._values.get((extension, key), b"")
        if present == raw:
            return
        self._check_room(extension, len(raw), len(present))
        if await self._add(_STATE, {"extension": extension, "key": key, "value": value}):
            self._values[extension, key] = raw

    async def delete(self, extension: str, key: str) -> None:
        self._follow()
        if (extension, key) in self._values and await self._add(_STATE, {"extension": extension, "key": key, "deleted": True}):
            self._values.pop((extension, key), None)

    # What the model reads

    async def set_context(self, extension: str, id: str, text: str | None, place: Place) -> None:
        _check_name("model context id", id)
        if place not in ("system_prompt", "message"):
            raise ValueError(f"place is {place!r}; it must be 'system_prompt' or 'message'")
        self._follow()
        present = self._contexts.get((extension, id))
        if text is None:
            if present is None:
                return
        else:
            text = msgspec.json.decode(self._written(text))
            assert isinstance(text, str)
            if present is not None and present[:2] == (place, text):
                return
            self._check_room(extension, len(text.encode()), 0 if present is None else len(present[1].encode()))
        if await self._add(_MODEL_CONTEXT, {"extension": extension, "id": id, "text": text, "place": place}):
            self._take_context(extension, id, text, place, self._now())

    def system_prompt_sections(self, extensions: frozenset[str]) -> list[str]:
        self._follow()
        return [text for (owner, _), (place, text, _) in self._contexts.items() if place == "system_prompt" and owner in extensions]

    def context_messages(self, extensions: frozenset[str]) -> list[CustomMessage]:
        self._follow()
        return [
            CustomMessage(custom_type=f"{owner}.{context}", content=text, display=False, timestamp=timestamp)
            for (owner, context), (place, text, timestamp) in self._contexts.items()
            if place == "message" and owner in extensions
        ]

    async def append(self, custom_type: str, data: Any) -> str:
        """An entry of an extension's own, for whoever looks at the branch; gives its id."""
        return await self._port.add_entry(custom_type, msgspec.json.decode(self._written(data)))

    # The branch

    async def _add(self, custom_type: str, data: Any) -> bool:
        """Store a change; False where the branch has become another one meanwhile, and is read anew."""
        await self._port.add_entry(custom_type, data)
        return self._port.messages is self._seen

    def _follow(self) -> None:
        """Read the branch, if it is another one than before."""
        if self._port.messages is self._seen:
            return
        self._seen = self._port.messages
        self._values, self._contexts = {}, {}
        for entry in self._port.branch():
            if isinstance(entry, CustomEntry) and entry.custom_type.startswith(RESERVED):
                self._replay(entry)

    def _replay(self, entry: CustomEntry) -> None:
        match entry.custom_type, entry.data:
            case "pumice.state", {"extension": str(extension), "key": str(key), "deleted": True}:
                self._values.pop((extension, key), None)
            case "pumice.state", {"extension": str(extension), "key": str(key), "value": value}:
                self._values[extension, key] = _encode(value)
            case "pumice.model_context", {"extension": str(extension), "id": str(id), "text": str() | None as text, "place": place}:
                self._take_context(extension, id, text, "system_prompt" if place == "system_prompt" else "message", _time(entry))
            case _:
                pass  # of a later version, or not ours

    def _take_context(self, extension: str, id: str, text: str | None, place: Place, timestamp: int) -> None:
        key = extension, id
        if text is None:
            self._contexts.pop(key, None)
        else:
            self._contexts[key] = place, text, timestamp  # the same id keeps its first place

    def _written(self, value: Any) -> bytes:
        try:
            raw = _encode(self._port.clean(msgspec.json.decode(_encode(value))))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"only JSON values can be kept: {error}") from None
        if len(raw) > _MAX_ENTRY_BYTES:
            raise ValueError(f"{len(raw)} bytes are more than the {_MAX_ENTRY_BYTES} that one entry may have")
        return raw

    def _check_room(self, extension: str, size: int, replaced: int) -> None:
        held = sum(len(raw) for (owner, _), raw in self._values.items() if owner == extension) - replaced
        held += sum(len(text.encode()) for (owner, _), (_, text, _) in self._contexts.items() if owner == extension)
        if held + size > _MAX_EXTENSION_BYTES:
            raise ValueError(f"this extension keeps {held} bytes here already; {_MAX_EXTENSION_BYTES} are all that it may")


def _time(entry: CustomEntry) -> int:
    try:
        return unix_ms(datetime.fromisoformat(entry.timestamp))
    except ValueError:
        return 0


def _check_name(what: str, name: str) -> None:
    if not 0 < len(name) <= _MAX_KEY_CHARS or any(unicodedata.category(char) == "Cc" for char in name):
        raise ValueError(f"{name[:80]!r} is no {what}; use 1 to {_MAX_KEY_CHARS} characters, no control characters")
