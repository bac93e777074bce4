"""The events of each chat, kept a while so that a listener who lost the connection misses nothing."""

import asyncio
from bisect import bisect_right
from itertools import count
from types import TracebackType
from typing import Self

import msgspec

from bot.http.chat_log import ChatLogRow, shown
from features.contracts.chat import Address
from features.contracts.clock import Clock, unix_ms
from features.contracts.errors import RetryLater
from features.contracts.events import AgentSettled, AgentStart, MessageEnd, MessageUpdate, SessionEvent, ToolExecutionUpdate

__all__ = ["EventHub", "Subscription"]

_CHUNK_BYTES = 65_536
_RING_FLOOR = 16  # kept whatever their size: the last events of a run come in one burst and may be large
_KEEP_ALIVE = b": keep-alive\n\n"
_GAP = b'event: resync\ndata: {"type":"resync"}\n\n'


class EventHub:
    """Publishes the events of every chat to whoever listens.

    Ids rise over all chats and over restarts: they start at Unix ms times 1000. Events are encoded once, and only for a chat that somebody
    listens to or did a short while ago. A chat keeps its last ``ring_events`` and ``ring_bytes``; where that is not enough, the pieces of
    messages that are complete go first, then the oldest. A listener who is further behind than what is kept is let go: its stream ends, and
    when it comes back with its last id, ``resync`` tells it to read the messages anew.

    Args:
        linger_s: how long a chat's events are kept after the last listener left.
        keep_alive_s: how often a silent stream gets a comment, so that nobody between closes it.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        ring_events: int = 4000,
        ring_bytes: int = 4_000_000,
        linger_s: float = 300.0,
        keep_alive_s: float = 15.0,
        max_chats: int = 256,
        max_listeners: int = 128,
    ) -> None:
        self._clock = clock
        self._ring_events = ring_events
        self._ring_bytes = ring_bytes
        self._linger_s = linger_s
        self._keep_alive_s = keep_alive_s
        self._max_chats = max_chats
        self._max_listeners = max_listeners
        self.last_id = unix_ms(clock.now()) * 1000
        self._ids = count(self.last_id + 1)
        self._rings: dict[Address, _Ring] = {}
        self._encoder = msgspec.json.Encoder()
        self._closed = False

    @property
    def listeners(self) -> int:
        """How many streams are open."""
        return sum(len(ring.listeners) for ring in self._rings.values())

    def publish(self, address: Address, event: SessionEvent) -> None:
        """Tell a session event of a chat."""
        ring = self._wanted(address)
        if ring is None:
            return
        name = type(event).__struct_config__.tag
        assert isinstance(name, str)
        identifier = self._add(ring, name, event, piece=isinstance(event, MessageUpdate | ToolExecutionUpdate))
        if isinstance(event, AgentStart):
            ring.run_started = identifier
        elif isinstance(event, AgentSettled):
            ring.run_started = None
        elif isinstance(event, MessageEnd):
            ring.complete_through = identifier

    def delivered(self, address: Address, row: ChatLogRow) -> None:
        """Tell that a message of the outbox is in the chat."""
        self._tell_row(address, "delivered", row)

    def changed(self, address: Address, row: ChatLogRow) -> None:
        """Tell that a delivered message reads otherwise now: its buttons are gone, and it says why."""
        self._tell_row(address, "changed", row)

    def doing(self, address: Address, line: str | None) -> None:
        """Tell in a line what goes on in a chat: the tools that run, for how long, and whether a question waits."""
        ring = self._wanted(address)
        if ring is not None:
            self._add(ring, "status", {"type": "status", "line": line}, piece=True)

    def received(self, address: Address, row: ChatLogRow) -> None:
        """Tell that a person's message was accepted."""
        self._tell_row(address, "received", row)

    def touch(self, address: Address) -> None:
        """Keep a chat's events from now on: somebody is about to listen."""
        self._ring(address).touched_at = self._clock.monotonic()

    def subscribe(self, address: Address, *, after: int | None = None, current_run: bool = False) -> "Subscription":
        """Listen to a chat: what follows the event ``after``; without it what is new, or all of the run that is going on.

        Raises:
            RetryLater: too many listen already.
        """
        if self.listeners >= self._max_listeners:
            raise RetryLater(f"{self._max_listeners} event streams are open already; close one and try again")
        ring = self._ring(address)
        start = self.last_id if after is None else after
        if after is None and current_run and ring.run_started is not None:
            start = ring.run_started - 1
        return Subscription(self, ring, start)

    async def run(self) -> None:
        """Keep silent streams alive and forget chats that nobody listens to, until cancelled."""
        while True:
            await self._clock.sleep(self._keep_alive_s)
            for address, ring in list(self._rings.items()):
                ring.keep_alive()
                if not self._is_wanted(ring):
                    del self._rings[address]

    def close(self) -> None:
        """End every stream; what was published before is still handed over."""
        self._closed = True
        for ring in self._rings.values():
            ring.wake()

    @property
    def closed(self) -> bool:
        return self._closed

    def left(self, ring: "_Ring") -> None:
        ring.touched_at = self._clock.monotonic()

    def _tell_row(self, address: Address, name: str, row: ChatLogRow) -> None:
        ring = self._wanted(address)
        if ring is not None:
            self._add(ring, name, shown(address, row), piece=False)

    def _add(self, ring: "_Ring", name: str, data: object, *, piece: bool) -> int:
        identifier = self.last_id = next(self._ids)
        frame = b"id: %d\nevent: %b\ndata: %b\n\n" % (identifier, name.encode(), self._encoder.encode(data))
        ring.add(identifier, frame, piece=piece)
        ring.trim(self._ring_events, self._ring_bytes)
        ring.wake()
        return identifier

    def _is_wanted(self, ring: "_Ring") -> bool:
        return bool(ring.listeners) or self._clock.monotonic() - ring.touched_at < self._linger_s

    def _wanted(self, address: Address) -> "_Ring | None":
        ring = self._rings.get(address)
        if ring is None or self._is_wanted(ring):
            return ring
        del self._rings[address]
        return None

    def _ring(self, address: Address) -> "_Ring":
        ring = self._wanted(address)
        if ring is None:
            if len(self._rings) >= self._max_chats:
                self._forget_oldest()
            ring = self._rings[address] = _Ring(self.last_id, self._clock.monotonic())
        return ring

    def _forget_oldest(self) -> None:
        silent = [(ring.touched_at, address) for address, ring in self._rings.items() if not ring.listeners]
        if silent:
            del self._rings[min(silent)[1]]


class _Ring:
    """The last events of one chat. Nothing up to ``lost_through`` is known here."""

    def __init__(self, lost_through: int, now: float) -> None:
        self.lost_through = lost_through
        self.touched_at = now
        self.run_started: int | None = None
        self.complete_through = 0
        self.listeners: set[Subscription] = set()
        self._ids: list[int] = []
        self._frames: list[bytes] = []
        self._pieces: set[int] = set()
        self._bytes = 0

    def add(self, identifier: int, frame: bytes, *, piece: bool) -> None:
        self._ids.append(identifier)
        self._frames.append(frame)
        self._bytes += len(frame)
        if piece:
            self._pieces.add(identifier)

    def trim(self, most_events: int, most_bytes: int) -> None:
        if len(self._ids) <= most_events and self._bytes <= most_bytes:
            return
        self._drop_complete_pieces()
        if len(self._ids) <= most_events and self._bytes <= most_bytes:
            return
        gone = 0
        while len(self._ids) - gone > _RING_FLOOR and (  # a quarter more than needed, so that the lists move rarely
            len(self._ids) - gone > most_events * 3 // 4 or self._bytes > most_bytes * 3 // 4
        ):
            self._bytes -= len(self._frames[gone])
            self._pieces.discard(self._ids[gone])
            gone += 1
        if gone:
            self.lost_through = self._ids[gone - 1]
            del self._ids[:gone], self._frames[:gone]

    def after(self, identifier: int) -> tuple[bytes, int]:
        """The events after one, a chunk at most, and the last one's id; nothing where there are none."""
        start = end = bisect_right(self._ids, identifier)
        size = 0
        while end < len(self._ids) and size < _CHUNK_BYTES:
            size += len(self._frames[end])
            end += 1
        return b"".join(self._frames[start:end]), self._ids[end - 1] if end > start else identifier

    def wake(self) -> None:
        for listener in self.listeners:
            listener.wake()

    def keep_alive(self) -> None:
        for listener in self.listeners:
            listener.keep_alive()

    def _drop_complete_pieces(self) -> None:
        """The message that follows them holds all that they said."""
        gone = {identifier for identifier in self._pieces if identifier < self.complete_through}
        if not gone:
            return
        kept = [(i, frame) for i, frame in zip(self._ids, self._frames, strict=True) if i not in gone]
        self._ids = [i for i, _ in kept]
        self._frames = [frame for _, frame in kept]
        self._bytes = sum(map(len, self._frames))
        self._pieces -= gone


class Subscription:
    """One open stream: chunks of encoded events, in order, none twice. Holds no events itself, so a slow reader costs nothing.

    Use as a context manager; leaving it ends the listening.
    """

    def __init__(self, hub: EventHub, ring: _Ring, after: int) -> None:
        self._hub = hub
        self._ring = ring
        self._last = after
        self._greeting = b": connected\n\n"
        if not ring.lost_through <= after <= hub.last_id:  # a later id is of an earlier life, before the machine's clock was set back
            self._greeting += _GAP
            self._last = ring.lost_through
        self._woken = asyncio.Event()
        self._keep_alive = False
        ring.listeners.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ring.listeners.discard(self)
        self._hub.left(self._ring)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._greeting:
            greeting, self._greeting = self._greeting, b""
            return greeting
        while self._last >= self._ring.lost_through:
            chunk, self._last = self._ring.after(self._last)
            if chunk:
                self._keep_alive = False
                return chunk
            if self._hub.closed:
                break
            if self._keep_alive:
                self._keep_alive = False
                return _KEEP_ALIVE
            self._woken.clear()
            await self._woken.wait()
        raise StopAsyncIteration

    def wake(self) -> None:
        self._woken.set()

    def keep_alive(self) -> None:
        self._keep_alive = True
        self._woken.set()
