"""Topics between the extensions of one session."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

__all__ = ["Topics"]

Handler = Callable[[Any], Awaitable[None]]
Deliver = Callable[[str, str, Handler, Any], Awaitable[None]]

_MAX_SUBSCRIBERS = 128
_MAX_TOPIC_CHARS = 128
_MAX_DEPTH = 8
_depth: ContextVar[int] = ContextVar("extension_bus_depth", default=0)


class Topics:
    """
    Args:
        deliver: hands a payload to one handler of an extension; whatever that does, it returns.
    """

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._handlers: list[tuple[str, str, Handler]] = []

    def subscribe(self, extension: str, topic: str, handler: Handler) -> Callable[[], None]:
        if not 0 < len(topic) <= _MAX_TOPIC_CHARS:
            raise ValueError(f"a topic has 1 to {_MAX_TOPIC_CHARS} characters")
        if len(self._handlers) >= _MAX_SUBSCRIBERS:
            raise ValueError(f"{_MAX_SUBSCRIBERS} handlers listen to topics of this session already")
        item = extension, topic, handler
        self._handlers.append(item)

        def remove() -> None:
            self._handlers = [other for other in self._handlers if other is not item]

        return remove

    async def publish(self, topic: str, payload: Any) -> None:
        """Hand it to everybody who listens, one after another.

        Raises:
            ValueError: handlers publish because of each other without an end.
        """
        depth = _depth.get()
        if depth >= _MAX_DEPTH:
            raise ValueError(f"{topic!r} was published by {_MAX_DEPTH} handlers because of each other")
        token = _depth.set(depth + 1)
        try:
            for extension, listened, handler in tuple(self._handlers):
                if listened == topic:
                    await self._deliver(extension, topic, handler, payload)
        finally:
            _depth.reset(token)
