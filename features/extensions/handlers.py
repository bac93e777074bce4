"""Who listens to which event, in order."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from features.contracts.extension_events import ExtensionEvent
from features.extensions.instance import Instance

__all__ = ["Handler", "Handlers"]

MOST_PRIORITY = 1_000_000


class Handler:
    """One function of one extension. ``failures`` are those in a row."""

    def __init__(self, instance: Instance, run: Callable[[Any], Awaitable[None]], priority: int) -> None:
        self.instance = instance
        self.run = run
        self.priority = priority
        self.failures = 0


class Handlers:
    """By event: higher priority first, then in the order of loading, then of registration."""

    def __init__(self) -> None:
        self._by_event: dict[type[ExtensionEvent], tuple[Handler, ...]] = {}

    def __contains__(self, event: type[ExtensionEvent]) -> bool:
        return event in self._by_event

    def of(self, event: type[ExtensionEvent]) -> Sequence[Handler]:
        return self._by_event.get(event, ())

    def add(self, event: type[ExtensionEvent], handler: Handler) -> Callable[[], None]:
        handlers = (*self._by_event.get(event, ()), handler)
        self._by_event[event] = tuple(sorted(handlers, key=lambda one: (-one.priority, one.instance.order)))

        def remove() -> None:
            left = tuple(other for other in self._by_event.get(event, ()) if other is not handler)
            if left:
                self._by_event[event] = left
            else:
                self._by_event.pop(event, None)

        return remove

    def events_of(self, instance: Instance) -> set[type[ExtensionEvent]]:
        return {event for event, handlers in self._by_event.items() if any(handler.instance is instance for handler in handlers)}
