"""What extensions keep on the branch: their state, their texts for the model, and which tools are off.

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

__all__ = ["BranchState", "StatePort"]

RESERVED = "pumice."
_STATE = "pumice.state"
_MODEL_CONTEXT = "pumice.model_context"
_TOOLS_OFF = "pumice.tools_off"
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
        self._tools_off: tuple[str, ...] = ()

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
        if self._values.get((extension, key)) == raw:
            return
        self._check_room(extension, len(raw), key)
        await self._port.add_entry(_STATE, {"extension": extension, "key": key, "value": value})
        self._follow()
        self._values[extension, key] = raw

    async def delete(self, extension: str, key: str) -> None:
        self._follow()
        if (extension, key) in self._values:
            await self._port.add_entry(_STATE, {"extension": extension, "key": key, "deleted": True})
            self._follow()
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
            self._check_room(extension, len(text.encode()), id)
        await self._port.add_entry(_MODEL_CONTEXT, {"extension": extension, "id": id, "text": text, "place": place})
        self._follow()
        self._take_context(extension, id, text, place, self._now())

    def system_prompt_sections(self, extensions: frozenset[str]) -> list[str]:
        self._follow()
        return [text for (owner, _), (place, text, _) in self._contexts.items() if place == "system_prompt" and owner in extensions]

    def context_messages(self, extensions: frozenset[str]) -> list[Message]:
        self._follow()
        return [
            CustomMessage(custom_type=f"{owner}.{id}", content=text, display=False, timestamp=timestamp)
            for (owner, id), (place, text, timestamp) in self._contexts.items()
            if place == "message" and owner in extensions
        ]

    # Tools

    @property
    def tools_off(self) -> tuple[str, ...]:
        self._follow()
        return self._tools_off

    async def set_tools_off(self, names: Sequence[str]) -> None:
        if tuple(names) != self.tools_off:
            await self._port.add_entry(_TOOLS_OFF, {"names": list(names)})
            self._follow()
            self._tools_off = tuple(names)

    # The branch

    def _follow(self) -> None:
        """Read the branch, if it is another one than before."""
        if self._port.messages is self._seen:
            return
        self._seen = self._port.messages
        self._values, self._contexts, self._tools_off = {}, {}, ()
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
            case "pumice.tools_off", {"names": list(names)}:
                self._tools_off = tuple(name for name in names if isinstance(name, str))
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

    def _check_room(self, extension: str, size: int, name: str) -> None:
        held = sum(len(raw) for (owner, key), raw in self._values.items() if owner == extension and key != name)
        held += sum(len(text) for (owner, id), (_, text, _) in self._contexts.items() if owner == extension and id != name)
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
