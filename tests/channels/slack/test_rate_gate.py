"""The pace of a workspace."""

import asyncio

from channels.slack.rate_gate import RateGate
from features.contracts.testing import FakeClock


async def test_a_conversation_gets_a_message_a_second_in_order_and_others_do_not_wait() -> None:
    """One a second is what Slack takes."""
    clock = FakeClock()
    gate = RateGate(clock, paced=True)
    sent: list[tuple[str, float]] = []

    async def post(name: str, conversation: str) -> None:
        await gate.turn("chat.postMessage", conversation)
        sent.append((name, clock.monotonic()))

    began = clock.monotonic()
    tasks = [asyncio.create_task(post(f"{conversation}{number}", conversation)) for number in range(3) for conversation in "ab"]
    for _ in range(40):
        await clock.advance(0.1)
    await asyncio.gather(*tasks)

    assert [name for name, _ in sent if name[0] == "a"] == ["a0", "a1", "a2"]
    assert all(later - earlier >= 1 for (_, earlier), (_, later) in zip(sent[0:4:2], sent[2:6:2], strict=True))
    assert sent[1][1] == began


async def test_a_method_never_gets_more_than_its_share_of_any_minute() -> None:
    """Fifty edits for the whole workspace."""
    clock = FakeClock()
    gate = RateGate(clock, paced=True)
    at: list[float] = []

    async def edit(number: int) -> None:
        await gate.turn("chat.update", f"C{number}")
        at.append(clock.monotonic())

    tasks = [asyncio.create_task(edit(number)) for number in range(120)]
    while not all(task.done() for task in tasks):
        await clock.advance(1)

    assert max(sum(1 for each in at if start <= each < start + 60) for start in at) <= 50
    assert max(at) - min(at) < 260


async def test_a_pause_holds_up_that_conversation_alone() -> None:
    """Or that method, for all that is no message."""
    clock = FakeClock()
    gate = RateGate(clock, paced=False)
    gate.close("chat.postMessage", "C1", 30)
    gate.close("chat.update", "C1", 10)

    assert gate.closed_for("chat.postMessage", "C1") == 30
    assert gate.closed_for("chat.postMessage", "C2") == 0
    assert not gate.spare("chat.update", "C9")
    await asyncio.wait_for(gate.turn("chat.postMessage", "C2"), 1)
    waiting = asyncio.create_task(gate.turn("chat.postMessage", "C1"))
    await clock.advance(29)
    assert not waiting.done()
    await clock.advance(1.1)
    await asyncio.wait_for(waiting, 1)


async def test_previews_take_nothing_from_finals() -> None:
    """They stop while enough is left, and while anybody waits."""
    gate = RateGate(FakeClock(), paced=True)
    taken = sum(gate.spare("chat.update", "C1") for _ in range(100))

    assert 5 < taken <= 28
    await asyncio.wait_for(gate.turn("chat.update", "C1"), 1)


async def test_a_conversations_second_counts_from_the_call_and_not_from_the_queue() -> None:
    """Where the whole workspace waits for its next minute, two messages of one chat must not go out together."""
    clock = FakeClock()
    gate = RateGate(clock, paced=True)
    waiting = [asyncio.create_task(gate.turn("chat.postMessage", f"D{number}")) for number in range(400)]
    waiting.append(asyncio.create_task(gate.turn("chat.postMessage", "D399")))
    times: list[float] = []
    for task in waiting[-2:]:
        task.add_done_callback(lambda _: times.append(clock.monotonic()))
    for _ in range(1400):
        await clock.advance(0.1)

    assert len(times) == 2
    assert times[1] - times[0] >= 1.0
