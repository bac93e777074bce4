"""What was sent of a session before, kept in wire form, so that the next call converts only what is new.

A transcript is a cache: losing it costs time, never correctness. It holds as bytes the part of a session that cannot change any more (see
the module ``normalise``), and knows by the messages themselves how far that reaches.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from features.contracts.clock import Clock
from features.contracts.messages import AssistantMessage, BranchSummaryMessage, Message, ToolCall, ToolResultMessage
from features.models.normalise import Legal, Target, close_end, finish, normalise_part, survives

__all__ = ["Transcript", "TranscriptCache", "WireEncoder"]

WireEncoder = Callable[[list[Legal], bool], bytes]
"""Turns normalised messages into the inside of the service's JSON list. The flag says that the stretch ends the request."""


class Transcript:
    """One session's messages for one target."""

    def __init__(self, target: Target, encode: WireEncoder) -> None:
        self.target = target
        self._encode = encode
        self._source: list[Message] = []
        self._used_ids: dict[str, int] = {}
        self._settled = bytearray()

    @property
    def size(self) -> int:
        """Bytes held, roughly: the wire form, and pointers to messages and ids that the session itself holds."""
        return 1024 + len(self._settled) + 8 * len(self._source) + 100 * len(self._used_ids)

    def pieces(self, messages: Sequence[Message]) -> list[bytes | bytearray]:
        """The inside of the service's list of messages, to be joined by the caller at once."""
        known = len(self._source)
        if known and not (len(messages) > known and survives(messages[known]) and list(messages[:known]) == self._source):
            self._source, self._used_ids, self._settled = [], {}, bytearray()  # another branch, or a compaction
            known = 0
        new = list(messages[known:])
        cut = _last_boundary(new)
        if cut:
            self._settle(new[:cut])
            new = new[cut:]
        tail = normalise_part(new, self.target, dict(self._used_ids))
        if not self._settled:
            return [self._encode(finish(tail), True)]
        return [self._settled, b",", self._encode(close_end(tail), True)]

    def _settle(self, messages: list[Message]) -> None:
        legal = normalise_part(messages, self.target, self._used_ids)
        if self._settled:
            self._settled += b","
        else:
            legal = finish(legal)
        self._settled += self._encode(legal, False)
        self._source += messages


def _last_boundary(messages: list[Message]) -> int:
    """The last surviving assistant message that has the user's side before it; 0 if there is none."""
    for index in range(len(messages) - 1, 0, -1):
        if survives(messages[index]) and _user_side_before(messages, index):
            return index
    return 0


def _user_side_before(messages: list[Message], index: int) -> bool:
    for earlier in reversed(messages[:index]):
        if isinstance(earlier, AssistantMessage):
            if survives(earlier):
                return any(isinstance(block, ToolCall) for block in earlier.content)
        elif isinstance(earlier, BranchSummaryMessage):
            if earlier.summary.strip():
                return True
        elif not isinstance(earlier, ToolResultMessage):
            return True
    return False


class TranscriptCache:
    """The transcripts of the sessions that called last.

    Bounded in sessions, bytes and idle time, because a provider is not told when a session leaves the host.
    """

    def __init__(
        self, encode: WireEncoder, clock: Clock, *, max_sessions: int = 256, max_bytes: int = 8 << 20, idle_s: float = 1800
    ) -> None:
        self._encode = encode
        self._clock = clock
        self._max_sessions = max_sessions
        self._max_bytes = max_bytes
        self._idle_s = idle_s
        self._held: OrderedDict[str, tuple[Transcript, float, int]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def size(self) -> int:
        return self._bytes

    def pieces(self, session_id: str, target: Target, messages: Sequence[Message]) -> list[bytes | bytearray]:
        """What ``Transcript.pieces`` gives. Without a session id nothing is kept."""
        if not session_id:
            return Transcript(target, self._encode).pieces(messages)
        transcript = self._take(session_id)
        if transcript is None or transcript.target != target:
            transcript = Transcript(target, self._encode)
        pieces = transcript.pieces(messages)
        self._put(session_id, transcript)
        return pieces

    def clear(self) -> None:
        self._held.clear()
        self._bytes = 0

    def _take(self, session_id: str) -> Transcript | None:
        held = self._held.pop(session_id, None)
        if held is None:
            return None
        self._bytes -= held[2]
        return held[0]

    def _put(self, session_id: str, transcript: Transcript) -> None:
        now = self._clock.monotonic()
        self._held[session_id] = (transcript, now, transcript.size)
        self._bytes += transcript.size
        while self._held:
            oldest, (_, used_at, _) = next(iter(self._held.items()))
            if len(self._held) <= self._max_sessions and self._bytes <= self._max_bytes and now - used_at <= self._idle_s:
                return
            self._take(oldest)
