"""Event streams: nothing missed, nothing twice, nothing that grows."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import httpx2
import pytest

from bot.http.events import EventHub, Subscription
from bot.http.server import HttpServer
from bot.http.testing import MemoryHost
from features.contracts.chat import Address, Button
from features.contracts.errors import RetryLater
from features.contracts.events import AgentSettled, AgentStart, MessageEnd, MessageStart, MessageUpdate, TurnStart
from features.contracts.messages import AssistantMessage, TextBlock, Usage
from features.contracts.stream import TextDelta
from features.contracts.testing import FakeClock

MAIN = Address("web", "main")
OTHER = Address("web", "other")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def delta(text: str) -> MessageUpdate:
    return MessageUpdate(assistant_message_event=TextDelta(content_index=0, delta=text))


def ended(text: str) -> MessageEnd:
    message = AssistantMessage(
        content=[TextBlock(text=text)], api="a", provider="p", model="m", usage=Usage(), stop_reason="stop", timestamp=0
    )
    return MessageEnd(message=message, entry_id="e1")


async def read(subscription: Subscription) -> list[tuple[int, str, str]]:
    """All events that are there, until the stream waits or ends."""
    text = b""
    with contextlib.suppress(TimeoutError, StopAsyncIteration):
        while True:
            async with asyncio.timeout(0.02):
                text += await anext(subscription)
    return parse(text.decode())


def parse(text: str) -> list[tuple[int, str, str]]:
    found = []
    for frame in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.splitlines() if not line.startswith(":"))
        if fields:
            found.append((int(fields.get("id", 0)), fields["event"], fields["data"]))
    return found


async def test_an_event_is_told_by_its_name_and_in_its_json_form(clock: FakeClock) -> None:
    """Other programs know pi's names and fields."""
    hub = EventHub(clock)
    with hub.subscribe(MAIN) as stream:
        hub.publish(MAIN, AgentStart())
        hub.publish(MAIN, delta("a\nb"))
        hub.publish(OTHER, AgentStart())
        events = await read(stream)

    assert [name for _, name, _ in events] == ["agent_start", "message_update"]
    assert json.loads(events[1][2]) == {
        "type": "message_update",
        "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": "a\nb"},
    }
    assert events[0][0] < events[1][0]


async def test_ids_rise_over_a_restart(clock: FakeClock) -> None:
    """A page that comes back to a new host must not take its first events for old ones."""
    first = EventHub(clock)
    with first.subscribe(MAIN) as stream:
        for _ in range(500):
            first.publish(MAIN, AgentStart())
        last = (await read(stream))[-1][0]
    clock.set(clock.now() + timedelta(seconds=1))
    second = EventHub(clock)
    with second.subscribe(MAIN) as stream:
        second.publish(MAIN, AgentStart())
        assert (await read(stream))[0][0] > last


@pytest.mark.parametrize("seen", range(6))
async def test_whoever_comes_back_gets_exactly_what_was_missed(clock: FakeClock, seen: int) -> None:
    """From every point of a run."""
    hub = EventHub(clock)
    with hub.subscribe(MAIN) as stream:
        hub.publish(MAIN, AgentStart())
        for piece in "abc":
            hub.publish(MAIN, delta(piece))
        hub.publish(MAIN, ended("abc"))
        everything = await read(stream)
    hub.publish(MAIN, AgentSettled(outcome="success"))
    after = everything[seen - 1][0] if seen else everything[0][0] - 1
    with hub.subscribe(MAIN, after=after) as again:
        rest = await read(again)

    assert [event[1] for event in rest][-1] == "agent_settled"
    assert rest[:-1] == everything[seen:]


async def test_events_that_nobody_listens_to_are_not_kept_and_coming_back_says_so(clock: FakeClock) -> None:
    """A chat without a page costs nothing; a page with an old id reads the messages anew."""
    hub = EventHub(clock, linger_s=300)
    with hub.subscribe(MAIN) as stream:
        hub.publish(MAIN, AgentStart())
        last = (await read(stream))[-1][0]
    await clock.advance(299)
    hub.publish(MAIN, delta("kept"))
    with hub.subscribe(MAIN, after=last) as stream:
        assert [name for _, name, _ in await read(stream)] == ["message_update"]
    await clock.advance(301)
    hub.publish(MAIN, delta("not kept"))

    with hub.subscribe(MAIN, after=last) as stream:
        hub.publish(MAIN, AgentStart())
        assert [name for _, name, _ in await read(stream)] == ["resync", "agent_start"]


async def test_whoever_has_an_id_from_before_the_clock_was_set_back_is_told_to_read_anew(clock: FakeClock) -> None:
    """Ids begin at the time; nothing that follows would ever be later than the one that it has."""
    earlier = EventHub(clock)
    clock.set(clock.now() - timedelta(hours=1))
    hub = EventHub(clock)
    with hub.subscribe(MAIN, after=earlier.last_id) as stream:
        hub.publish(MAIN, AgentStart())

        assert [name for _, name, _ in await read(stream)] == ["resync", "agent_start"]


class PassingTime(FakeClock):
    """Moves on a millisecond whenever it is read."""

    def now(self) -> datetime:
        self.set(super().now() + timedelta(milliseconds=1))
        return super().now()


async def test_a_millisecond_that_ends_while_the_host_starts_does_not_hide_its_events() -> None:
    """The ids once began at one reading of the clock and the last id at a second: pages stayed empty until a restart."""
    hub = EventHub(PassingTime())
    with hub.subscribe(MAIN) as stream:
        hub.publish(MAIN, AgentStart())

        assert [name for _, name, _ in await read(stream)] == ["agent_start"]


async def test_where_room_is_short_the_pieces_of_complete_messages_go_first(clock: FakeClock) -> None:
    """Their message holds all that they said, so a resume is whole and small."""
    hub = EventHub(clock, ring_events=60)
    hub.touch(MAIN)
    start = hub.last_id
    for _ in range(3):
        hub.publish(MAIN, MessageStart(role="assistant"))
        for _ in range(40):
            hub.publish(MAIN, delta("x"))
        hub.publish(MAIN, ended("x" * 40))
    with hub.subscribe(MAIN, after=start) as stream:
        events = await read(stream)

    names = [name for _, name, _ in events]
    assert "resync" not in names
    assert names.count("message_end") == 3
    assert len(names) <= 60


async def test_a_reader_who_is_too_slow_is_let_go_and_told_on_return(clock: FakeClock) -> None:
    """Memory stays what it is, however slow somebody reads."""
    hub = EventHub(clock, ring_bytes=20_000)
    with hub.subscribe(MAIN) as slow, hub.subscribe(MAIN) as quick:
        await anext(slow)
        got = []
        for number in range(300):
            hub.publish(MAIN, TurnStart(turn_index=number))
            hub.publish(MAIN, delta("x" * 100))
            if number % 20 == 0:
                got += await read(quick)
        with pytest.raises(StopAsyncIteration):
            await anext(slow)
        got += await read(quick)
    assert [json.loads(data)["turnIndex"] for _, name, data in got if name == "turn_start"] == list(range(300))

    with hub.subscribe(MAIN, after=got[0][0]) as again:
        back = await read(again)
    assert back[0][1] == "resync"
    assert sum(len(data) for _, _, data in back) < 20_000


async def test_the_last_events_of_a_run_reach_the_reader_however_large(clock: FakeClock) -> None:
    """They come in one burst, before any reader had its turn."""
    hub = EventHub(clock, ring_bytes=10_000)
    with hub.subscribe(MAIN) as stream:
        await anext(stream)
        for _ in range(4):
            hub.publish(MAIN, ended("x" * 50_000))
        hub.publish(MAIN, AgentSettled(outcome="success"))

        assert [name for _, name, _ in await read(stream)] == ["message_end"] * 4 + ["agent_settled"]


async def test_a_page_that_opens_during_a_run_sees_it_from_its_start(clock: FakeClock) -> None:
    """A reload must not lose the half-written answer."""
    hub = EventHub(clock)
    with hub.subscribe(MAIN):
        hub.publish(MAIN, AgentStart())
        hub.publish(MAIN, AgentSettled(outcome="success"))
        with hub.subscribe(MAIN, current_run=True) as idle:
            assert await read(idle) == []
        hub.publish(MAIN, AgentStart())
        hub.publish(MAIN, delta("half"))
        with hub.subscribe(MAIN, current_run=True) as page, hub.subscribe(MAIN) as other:
            assert [name for _, name, _ in await read(page)] == ["agent_start", "message_update"]
            assert await read(other) == []


async def test_silent_streams_are_kept_alive_and_forgotten_chats_freed(clock: FakeClock) -> None:
    """A proxy closes what says nothing."""
    hub = EventHub(clock, keep_alive_s=15, linger_s=20)
    keeping = asyncio.create_task(hub.run())
    with hub.subscribe(MAIN) as stream:
        await anext(stream)
        await clock.advance(15)
        assert await anext(stream) == b": keep-alive\n\n"
    assert hub.listeners == 0
    await clock.advance(60)
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping


async def test_listeners_and_chats_are_bounded(clock: FakeClock) -> None:
    """Nobody fills the memory by opening streams."""
    hub = EventHub(clock, max_listeners=2, max_chats=3)
    with hub.subscribe(MAIN), hub.subscribe(OTHER), pytest.raises(RetryLater):
        hub.subscribe(MAIN)
    for number in range(50):
        hub.touch(Address("web", str(number)))
    with hub.subscribe(MAIN) as stream:
        hub.publish(MAIN, AgentStart())
        assert len(await read(stream)) == 1


@contextlib.asynccontextmanager
async def streaming(client: httpx2.AsyncClient, path: str, **headers: str) -> AsyncIterator[AsyncIterator[tuple[int, str, str]]]:
    async with client.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"

        async def events() -> AsyncIterator[tuple[int, str, str]]:
            rest = ""
            async for text in response.aiter_text():
                *frames, rest = (rest + text).split("\n\n")
                for event in parse("\n\n".join(frames)):
                    yield event

        yield events()


async def test_a_client_resumes_by_its_last_event_id(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """Over real connections: no gap and no repetition."""
    path = "/api/chats/web:main/events"
    host.events.touch(MAIN)
    async with streaming(owner, path, **{"last-event-id": str(host.events.last_id)}) as events:
        host.publish(MAIN, AgentStart(), delta("a"), delta("b"))
        first = [await anext(events), await anext(events)]
    host.publish(MAIN, delta("c"), AgentSettled(outcome="success"))
    async with streaming(owner, path, **{"last-event-id": str(first[-1][0])}) as events:
        second = [await anext(events) for _ in range(3)]

    told = [json.loads(data)["assistantMessageEvent"]["delta"] for _, name, data in first + second if name == "message_update"]
    assert told == ["a", "b", "c"]
    ids = [identifier for identifier, _, _ in first + second]
    assert ids == sorted(set(ids))
    assert (await owner.get(path, headers={"last-event-id": "x"})).status_code == 400


async def test_messages_are_told_as_they_are_listed(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """The page shows both alike."""
    async with streaming(owner, "/api/chats/web:main/events") as events:
        posted = (await owner.post("/api/chats/web:main/messages", json={"text": "hi"})).json()
        host.deliver(MAIN, "hello", answers=(posted["id"],))
        told = [await anext(events), await anext(events)]
    listed = (await owner.get("/api/chats/web:main/messages")).json()

    assert [name for _, name, _ in told] == ["received", "delivered"]
    assert [json.loads(data)["id"] for _, _, data in told] == [row["id"] for row in listed]
    assert json.loads(told[1][2]) == listed[1]


async def test_what_goes_on_and_what_reads_otherwise_is_told(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """A question that is over has no buttons any more, and says how it ended."""
    async with streaming(owner, "/api/chats/web:main/events") as events:
        host.events.doing(MAIN, "bash make, 2 min · waits for an answer")
        row = host.deliver(MAIN, "Shall I?", buttons=((Button(label="Yes", command="/answer 1 1"),),))
        host.change(MAIN, row, "Shall I?\n\nAnswered: Yes")
        told = [await anext(events) for _ in range(3)]

    assert [name for _, name, _ in told] == ["status", "delivered", "changed"]
    status, before, after = (json.loads(data) for _, _, data in told)
    assert status == {"type": "status", "line": "bash make, 2 min · waits for an answer"}
    assert before["id"] == after["id"]
    assert (len(before["buttons"]), after["buttons"], after["text"]) == (1, [], "Shall I?\n\nAnswered: Yes")


async def test_a_listener_who_leaves_is_forgotten(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """Also without a goodbye."""
    async with streaming(owner, "/api/chats/web:main/events") as events:
        host.publish(MAIN, AgentStart())
        await anext(events)
        assert host.events.listeners == 1
    async with asyncio.timeout(5):
        while host.events.listeners:  # noqa: ASYNC110 - the server notices by itself and tells nobody
            await asyncio.sleep(0.01)


async def test_a_reader_that_stops_reading_holds_no_more_than_its_share(server: HttpServer, host: MemoryHost, token: str) -> None:
    """The socket fills, the server waits for it, and the chat goes on for the others."""
    parts = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1024)
    writer.write(
        f"GET /api/chats/web:main/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode()
    )
    await reader.readuntil(b": connected")
    for _ in range(400):
        host.publish(MAIN, ended("x" * 50_000))
        await asyncio.sleep(0)
    text = b""
    async with asyncio.timeout(10):
        while chunk := await reader.read(65_536):
            text += chunk
    writer.close()

    ids = [int(found) for found in re.findall(rb"^id: (\d+)", text, re.MULTILINE)]
    assert ids == sorted(set(ids))
    assert len(ids) < 400, "it was let go, and its stream ended"
