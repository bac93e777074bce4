"""Extensions for the tests of sessions."""

from collections.abc import Awaitable, Callable
from typing import Any

from features.contracts.events import ExtensionError, SessionEvent
from features.contracts.extension_events import EXTENSION_EVENTS, ExtensionEvent, MessageEnding, MessageStarted
from features.contracts.extensions import ExtensionApi, ExtensionSpec

__all__ = ["Recorder", "errors", "extension", "listening"]


class Recorder:
    """Hears everything; ``words`` is it in short, ``events`` are the events themselves."""

    def __init__(self) -> None:
        self.events: list[ExtensionEvent] = []
        self.words: list[str] = []
        self.api: ExtensionApi | None = None

    def spec(self, name: str = "recorder", priority: int = 0) -> ExtensionSpec:
        async def activate(api: ExtensionApi) -> None:
            self.api = api
            for event in EXTENSION_EVENTS:
                api.on(event, self._hear)

        return ExtensionSpec(name=name, activate=activate, priority=priority)

    def names(self) -> list[str]:
        return [event.name for event in self.events]

    async def _hear(self, event: ExtensionEvent) -> None:
        self.events.append(event)
        self.words.append(_word(event))


def _word(event: ExtensionEvent) -> str:
    if isinstance(event, MessageStarted):
        return f"message_start({event.role})"
    if isinstance(event, MessageEnding):
        return f"message_end({type(event.message).__name__.removesuffix('Message').lower()})"
    call = getattr(event, "call", None)
    return f"{event.name}({call.id})" if call is not None else event.name


def extension(activate: Callable[[ExtensionApi], Awaitable[None]], name: str = "one", priority: int = 0, **config: Any) -> ExtensionSpec:
    return ExtensionSpec(name=name, activate=activate, priority=priority, config=config)


def listening(event: type[Any], handler: Callable[[Any], Any], name: str = "one", priority: int = 0) -> ExtensionSpec:
    """An extension with one handler."""

    async def activate(api: ExtensionApi) -> None:
        api.on(event, handler)

    return extension(activate, name, priority)


def errors(events: list[SessionEvent]) -> list[tuple[str, str, str]]:
    return [(event.extension, event.event, event.error) for event in events if isinstance(event, ExtensionError)]
