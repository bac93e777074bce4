"""Topics between the extensions of one session."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from features.extensions.handlers import Handler
from features.extensions.instance import Instance

__all__ = ["Topics"]

_MAX_SUBSCRIBERS = 128
_MAX_TOPIC_CHARS = 128
_MAX_DEPTH = 8
_depth: ContextVar[int] = ContextVar("extension_bus_depth", default=0)


class Topics:
    """
    Args:
        deliver: hands a payload to one handler; whatever that does, it returns.
    """

    def __init__(self, deliver: Callable[[Handler, str, Any], Awaitable[None]]) -> None:
        self._deliver = deliver
        self._handlers: list[tuple[str, Handler]] = []

    def check(self, topic: str, handler: Callable[[Any], Awaitable[None]]) -> None:
        if not 0 < len(topic) <= _MAX_TOPIC_CHARS:
            raise ValueError(f"a topic has 1 to {_MAX_TOPIC_CHARS} characters")
        if not callable(handler):
            raise ValueError(f"{handler!r} is no function")
        if len(self._handlers) >= _MAX_SUBSCRIBERS:
            raise ValueError(f"{_MAX_SUBSCRIBERS} handlers listen to topics of this session already")

    def subscribe(self, instance: Instance, topic: str, handler: Callable[[Any], Awaitable[None]]) -> Callable[[], None]:
        item = topic, Handler(instance, handler, 0)
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
            for listened, handler in tuple(self._handlers):
                if listened == topic and handler.instance.active:
                    await self._deliver(handler, topic, payload)
        finally:
            _depth.reset(token)
