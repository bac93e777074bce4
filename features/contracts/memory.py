"""What a place remembers: its notes, and all that was said in it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

import msgspec

__all__ = ["MEMORY_BYTES", "MEMORY_FILE", "LogPage", "LoggedText", "PlaceLog"]

MEMORY_FILE = "MEMORY.md"
MEMORY_BYTES = 16 * 1024
"""So much of the file is in the system prompt, and no note is added beyond it."""


class LoggedText(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was said. ``address`` is the place or a topic in it; ``name`` is empty for the agent."""

    id: str
    address: str
    role: Literal["person", "agent"]
    name: str
    text: str
    at: datetime


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first. ``more_before`` is the id to go on before, None where everything was looked at."""

    messages: tuple[LoggedText, ...]
    more_before: str | None


class PlaceLog(Protocol):
    """Contract.

    - It holds every message of a place, both ways, whatever became of the sessions; another place's are never found.
    - ``search`` finds messages that hold all ``words``, in any case, as parts of words too; without words it finds all.
    - It looks at a bounded number of messages and says in ``more_before`` where it stopped.
    """

    async def search(
        self,
        place: str,
        words: Sequence[str],
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        before: str | None = None,
        limit: int,
    ) -> LogPage: ...

    async def message(self, place: str, message_id: str) -> LoggedText | None: ...
