"""Whose code runs in this task: a handler or a tool that a session waits for, or a command."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Literal, Protocol

from features.contracts.extension_events import ExtensionEvent

__all__ = ["Session", "at_work", "begins", "owner_at_work", "tool_at_work", "waiting_for"]


class Session(Protocol):
    """A session, as far as it matters whether two are the same."""

    @property
    def owner(self) -> bool: ...


class _Work:
    __slots__ = ("event", "kind", "outer", "over", "owner", "session")

    def __init__(self, kind: "_Kind", session: Session, owner: bool, event: type[ExtensionEvent] | None, outer: "_Work | None") -> None:
        self.kind = kind
        self.session = session
        self.owner = owner
        self.event = event
        self.outer = outer
        self.over = False


_Kind = Literal["handler", "tool", "command"]
# A task that is started within inherits this, and by `over` it is free once what it came from has returned.
_current: ContextVar[_Work | None] = ContextVar("extension_at_work", default=None)


@contextmanager
def begins(kind: _Kind, session: Session, *, owner: bool, event: type[ExtensionEvent] | None = None) -> Iterator[None]:
    """Mark what runs within, and the tasks that it starts."""
    work = _Work(kind, session, owner, event, _current.get())
    token = _current.set(work)
    try:
        yield
    finally:
        work.over = True
        _current.reset(token)


def tool_at_work(session: Session, *, owner: bool) -> AbstractContextManager[None]:
    """Mark what runs within as a tool that the session waits for."""
    return begins("tool", session, owner=owner)


def _chain() -> Iterator[_Work]:
    work = _current.get()
    while work is not None:
        if not work.over:
            yield work
        work = work.outer


def waiting_for(session: Session, event: type[ExtensionEvent] | None = None) -> str | None:
    """What of the session waits for this task, in words; None where nothing does and calls back into it are safe.

    Args:
        event: only handlers of this event count.
    """
    for work in _chain():
        if work.session is session and work.kind != "command" and event in (None, work.event):
            return "a running tool" if work.event is None else f"a handler of {work.event.name}"
    return None


def owner_at_work() -> bool | None:
    """Whether whoever caused this is an owner of the host; None where it is nobody's doing, such as a timer's."""
    return next((work.owner for work in _chain()), None)


def at_work() -> Session | None:
    """The session whose handler, tool or command this task belongs to."""
    return next((work.session for work in _chain()), None)
