"""The pace that all senders share."""

import asyncio
from contextlib import suppress
from itertools import pairwise

import pytest

from channels.telegram.flood_gate import FloodGate
from features.contracts.testing import FakeClock

Taken = list[tuple[str, float]]


async def take(gate: FloodGate, clock: FakeClock, chat: str, taken: Taken) -> None:
    await gate.turn(chat)
    taken.append((chat, clock.monotonic()))


def queue(gate: FloodGate, clock: FakeClock, chats: list[str], taken: Taken) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(take(gate, clock, chat, taken)) for chat in chats]


async def finished(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_one_chat_gets_one_a_second_in_order() -> None:
    """Telegram's own limit, used to more than 90 %: what is sent a second apart may arrive closer."""
    clock = FakeClock()
    gate, taken = FloodGate(clock, per_second=30), Taken()
    tasks = queue(gate, clock, ["1"] * 10, taken)
    await clock.advance(10)

    assert len(taken) == 10
    assert all(later[1] - earlier[1] >= 1 for earlier, later in pairwise(taken))
    await finished(tasks)


async def test_a_group_gets_twenty_a_minute() -> None:
    """In any minute, also across two."""
    clock = FakeClock()
    gate, taken = FloodGate(clock, per_second=30), Taken()
    tasks = queue(gate, clock, ["-5"] * 45, taken)
    await clock.advance(200)
    times = [at for _, at in taken]

    assert len(times) == 45
    assert all(later - earlier > 60 for earlier, later in zip(times, times[20:], strict=False))
    await finished(tasks)


async def test_the_whole_bot_uses_its_thirty_a_second() -> None:
    """200 chats, five messages each: nobody starves, and the limit is used to nearly 90 %, for what is sent evenly arrives in bunches."""
    clock = FakeClock()
    gate, taken = FloodGate(clock, per_second=30), Taken()
    tasks = queue(gate, clock, [str(chat) for chat in range(1, 201)] * 5, taken)
    await clock.advance(1000 / 30 / 0.89)
    times = [at for _, at in taken]

    assert len(taken) == 1000
    assert all(later - earlier >= 1 for earlier, later in zip(times, times[30:], strict=False))
    await finished(tasks)


async def test_a_pause_holds_up_its_own_chat_alone() -> None:
    """Telegram bans a chat, not the bot."""
    clock = FakeClock()
    gate, taken = FloodGate(clock, per_second=30), Taken()
    gate.close("1", 100)
    tasks = queue(gate, clock, ["1", "2"], taken)
    await clock.advance(1)

    assert [chat for chat, _ in taken] == ["2"]
    assert gate.closed_for("1") == pytest.approx(99)

    await clock.advance(99)

    assert [chat for chat, _ in taken] == ["2", "1"]
    await finished(tasks)


async def test_a_pause_that_is_asked_for_while_waiting_is_kept() -> None:
    """The refusal may come while others already queue."""
    clock = FakeClock()
    gate, taken = FloodGate(clock, per_second=30), Taken()
    tasks = queue(gate, clock, ["1", "1"], taken)
    await clock.advance(0.5)
    gate.close("1", 50)
    await clock.advance(10)

    assert len(taken) == 1

    await clock.advance(45)

    assert len(taken) == 2
    await finished(tasks)


async def test_a_preview_takes_a_free_turn_or_none() -> None:
    """It never waits, and never comes before a final text that does."""
    clock = FakeClock()
    gate, taken = FloodGate(clock, per_second=30), Taken()

    assert gate.free("1")
    assert not gate.free("1")

    tasks = queue(gate, clock, ["1", "1"], taken)
    await clock.advance(1.1)

    assert len(taken) == 1
    assert not gate.free("1")

    await clock.advance(3)

    assert gate.free("1")
    await finished(tasks)


async def test_previews_step_back_when_the_whole_bot_is_busy() -> None:
    """Typing indicators too: they would only make it worse."""
    clock = FakeClock()
    gate, taken = FloodGate(clock, per_second=30), Taken()
    tasks = queue(gate, clock, [str(chat) for chat in range(1, 100)], taken)
    await clock.advance(1)

    assert not gate.free("900")
    assert not gate.quiet("900")

    await clock.advance(5)

    assert gate.free("900")
    assert gate.quiet("900")
    await finished(tasks)


async def test_without_a_pace_nothing_waits_but_for_a_pause() -> None:
    """``max_sends_per_second = 0``: only what Telegram itself asks for."""
    clock = FakeClock()
    gate, taken = FloodGate(clock, per_second=0), Taken()
    tasks = queue(gate, clock, ["1"] * 50 + ["-2"] * 50, taken)
    await clock.advance(0)

    assert len(taken) == 100
    assert gate.free("1")
    assert gate.free("1")

    gate.close("1", 5)

    assert not gate.free("1")
    await finished(tasks)


async def test_who_gives_up_waiting_leaves_the_turn_to_the_next() -> None:
    """A host that stops cancels its senders."""
    clock = FakeClock()
    gate, taken = FloodGate(clock, per_second=30), Taken()
    first, second, third = queue(gate, clock, ["1", "1", "1"], taken)
    await clock.advance(0.5)
    await finished([second])
    await clock.advance(1)

    assert len(taken) == 2
    await finished([first, third])


async def test_what_is_known_of_chats_is_bounded() -> None:
    """A bot meets more people than it should remember."""
    clock = FakeClock()
    gate = FloodGate(clock, per_second=30)
    for chat in range(5000):
        await clock.advance(0.1)
        gate.free(str(chat))

    assert len(gate._chats) <= 1001
