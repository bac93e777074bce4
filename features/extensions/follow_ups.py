"""Prompts of extensions that wait until the run has settled."""

from collections import OrderedDict, deque
from typing import NamedTuple

__all__ = ["FollowUp", "FollowUps"]

_MAX_WAITING = 32
_MAX_REMEMBERED = 256
_MAX_ID_CHARS = 128
_MAX_IN_A_ROW = 16


class FollowUp(NamedTuple):
    extension: str
    id: str
    text: str
    owner: bool


class FollowUps:
    """At most 32 wait; an id is taken once, as long as it is among the last 256; 16 runs follow each other without a person's word."""

    def __init__(self) -> None:
        self._waiting: deque[FollowUp] = deque()
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._in_a_row = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, item: FollowUp) -> bool:
        """False where the id was taken before, or there is no room.

        Raises:
            ValueError: the id or the text is none.
        """
        if not 0 < len(item.id) <= _MAX_ID_CHARS:
            raise ValueError(f"a follow-up's id has 1 to {_MAX_ID_CHARS} characters")
        if not item.text.strip():
            raise ValueError("a follow-up needs a text")
        key = item.extension, item.id
        if key in self._known or len(self._waiting) >= _MAX_WAITING:
            return False
        self._known[key] = None
        if len(self._known) > _MAX_REMEMBERED:
            self._known.popitem(last=False)
        self._waiting.append(item)
        return True

    def take(self) -> FollowUp | None:
        """The next one; None where none waits, or as many have followed each other as may."""
        if not self._waiting or self.exhausted:
            return None
        self._in_a_row += 1
        return self._waiting.popleft()

    def put_back(self, item: FollowUp) -> None:
        """Return what was taken and could not be begun."""
        self._in_a_row -= 1
        self._waiting.appendleft(item)

    def chain(self) -> bool:
        """A run begins because of another without having waited here; False where as many have followed each other as may."""
        if self.exhausted:
            return False
        self._in_a_row += 1
        return True

    @property
    def exhausted(self) -> bool:
        return self._in_a_row >= _MAX_IN_A_ROW

    def somebody_spoke(self) -> None:
        """A run begins that no extension asked for."""
        self._in_a_row = 0

    def drop(self, extension: str | None = None) -> list[FollowUp]:
        """Forget what waits, of one extension or of all."""
        gone = [item for item in self._waiting if extension in (None, item.extension)]
        self._waiting = deque(item for item in self._waiting if item not in gone)
        return gone
