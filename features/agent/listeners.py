"""Who hears what a session tells."""

import logging
from collections.abc import Callable

from features.contracts.events import SessionEvent

__all__ = ["Listeners"]

log = logging.getLogger("pumice.agent")


class Listeners:
    """Calls every listener, in the order they came, on the loop. One that raises is logged and disturbs neither the run nor the others."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[SessionEvent], None]] = {}

    def add(self, listener: Callable[[SessionEvent], None]) -> Callable[[], None]:
        """Returns what takes it away again."""
        key = object()
        self._listeners[key] = listener

        def remove() -> None:
            self._listeners.pop(key, None)

        return remove

    def clear(self) -> None:
        self._listeners.clear()

    def emit(self, event: SessionEvent) -> None:
        for listener in tuple(self._listeners.values()):
            try:
                listener(event)
            except Exception:
                log.exception("session listener failed", extra={"facts": {"event": type(event).__name__}})
