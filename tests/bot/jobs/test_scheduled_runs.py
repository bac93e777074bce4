"""Scheduled runs in chats: delivered where they belong, in order, once, or silently."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import pytest

from features.agent.testing import ScriptedProvider, Step, answers, call, fails, hangs
from features.approvals import ApprovalOptions
from features.contracts.chat import DeliveryRefused
from features.contracts.database import Database, Transaction
from features.contracts.errors import OperatorMustAct
from features.contracts.messages import ToolCall, ToolResultMessage, message_text
from features.contracts.testing import FakeClock
from features.scheduler.job import Job
from tests.bot.conversations.rig import Rig, eventually, opened
from tests.bot.conversations.test_busy import Gated

T = TypeVar("T")


def created(call_id: str = "c", **arguments: object) -> Step:
    """The model makes a job with the schedule tool."""
    return asks(call_id, action="create", **arguments)


def asks(call_id: str, **arguments: object) -> Step:
    """The model calls the schedule tool with something else, also with an ``id`` of its own."""
    return answers(ToolCall(id=call_id, name="schedule", arguments=arguments))


async def scheduled(rig: Rig, words: str, *, chat: str = "1") -> Job:
    """Somebody types ``/schedule``, and reads the answer."""
    rig.chat(chat).says(f"/schedule {words}")
    assert "**Job" in (await rig.chat(chat).answer()).text
    return (await rig.scheduler.book.list())[-1]


async def run_of(rig: Rig, job: Job) -> tuple[str, str] | None:
    """How the last run of a job ended, and its delivery; None while it is not over."""
    last = (await rig.scheduler.book.get(job.id)).last_run
    return None if last is None else (last.state, last.delivery)


async def until_over(rig: Rig, job: Job, *expected: str) -> None:
    async with asyncio.timeout(20):
        while (await run_of(rig, job)) != expected:  # noqa: ASYNC110 - the database sets no event
            await asyncio.sleep(0.005)


async def test_a_scheduled_prompt_is_answered_in_its_chat(tmp_path: Path) -> None:
    """One answer, in the chat's own session; the model knows that this is no person; the log shows no message of one."""
    async with opened(tmp_path, ScriptedProvider(answers("Stretch now!"), answers("Yes?"))) as rig:
        job = await scheduled(rig, "in 20 minutes remind me to stretch")
        await rig.clock.advance(20 * 60)
        answer = await rig.chat().answer()
        await until_over(rig, job, "done", "delivered")
        rig.chat().says("hm")
        await rig.chat().answer()

        assert (answer.text, answer.edits) == ("Stretch now!", 0)
        [prompt] = rig.prompts(0)
        assert prompt.startswith("(Scheduled job 1, due Monday 5 January 2026, 09:20, UTC. Nobody is at the keyboard.")
        assert prompt.endswith("\nremind me to stretch")
        assert rig.prompts(1)[-1] == "hm"
        assert len(rig.prompts(1)) == 2
        assert await rig.inbox_states() == ["answered"] * 3


async def test_an_answer_that_is_exactly_silent_delivers_nothing(tmp_path: Path) -> None:
    """Not even a draft; what only mentions the word is delivered."""
    provider = ScriptedProvider(answers("[SILENT]"), answers("I say [SILENT] aloud."))
    async with opened(tmp_path, provider, stream=True, verbose="full") as rig:
        job = await scheduled(rig, "every 10 minutes look")
        await rig.clock.advance(10 * 60)
        await until_over(rig, job, "silent", "none")
        assert len(rig.chat().shown) == 1
        assert await rig.inbox_states() == ["answered", "answered"]
        await rig.clock.advance(10 * 60)

        assert (await rig.chat().answer()).text == "I say [SILENT] aloud."


async def test_whoever_writes_during_a_silent_run_gets_an_answer(tmp_path: Path) -> None:
    """The silence is the job's, not the person's."""
    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work")), answers("[SILENT]"))) as rig:
        tool = Gated(rig)
        await scheduled(rig, "in 1 minute look")
        await rig.clock.advance(60)
        await tool.begun.wait()
        rig.chat().says("are you there?")
        await eventually(lambda: rig.conversation().status().queued == 1)
        tool.go_on.set()

        assert "nothing more to say" in (await rig.chat().answer()).text


async def test_a_due_prompt_waits_for_what_goes_on_and_joins_nothing(tmp_path: Path) -> None:
    """Also where messages of people steer; it has an answer of its own, after theirs."""
    provider = ScriptedProvider(answers(call("c", "work")), answers("Done with yours."), answers("And the job's."))
    async with opened(tmp_path, provider) as rig:
        tool = Gated(rig)
        await scheduled(rig, "in 1 minute look")
        rig.chat().says("work")
        await tool.begun.wait()
        await rig.clock.advance(60)
        await eventually(lambda: len(rig.conversation()._pending.held) == 1)
        tool.go_on.set()

        assert [(await rig.chat().answer()).text for _ in range(2)] == ["Done with yours.", "And the job's."]
        assert len(rig.prompts(1)) == 1


async def test_a_job_answers_to_its_topic(tmp_path: Path) -> None:
    """Another topic of the same chat hears nothing, but sees it in the list."""
    async with opened(tmp_path, ScriptedProvider(answers("Here."))) as rig:
        topic, other = rig.channel.chat("1", "77"), rig.channel.chat("1", "78")
        topic.says("/schedule in 1 minute look")
        await topic.answer()
        other.says("/jobs")
        assert "look" in (await other.answer()).text
        await rig.clock.advance(60)

        assert (await topic.answer()).text == "Here."
        assert len(other.shown) == 1


async def test_a_job_may_have_a_session_of_its_own(tmp_path: Path) -> None:
    """Its answer comes into the chat; the chat's session knows nothing of it, and a running one is not waited for."""
    provider = ScriptedProvider(
        created(when="in 1 minute", prompt="look", isolated=True), answers("It is set."), answers(call("w", "work")), answers("Alone."),
        answers("Done."),
    )  # fmt: skip
    async with opened(tmp_path, provider) as rig:
        tool = Gated(rig)
        rig.chat().says("look by yourself in a minute")
        assert "I made a job" in (await rig.chat().answer()).text
        assert (await rig.chat().answer()).text == "It is set."
        rig.chat().says("work")
        await tool.begun.wait()
        await rig.clock.advance(60)
        assert (await rig.chat().answer()).text == "Alone."
        tool.go_on.set()
        assert (await rig.chat().answer()).text == "Done."
        await rig.idle()

        assert rig.provider.requests[3].session_id != rig.provider.requests[4].session_id
        assert len(rig.prompts(3)) == 1
        assert rig.prompts(4) == ["look by yourself in a minute", "work"]
        assert [summary.name for summary in await rig.store.list("job:1")] == ["Job 1: look"]
        assert await rig.inbox_states() == ["answered"] * 3


async def test_a_failing_job_says_so_each_time_and_pauses_after_five(tmp_path: Path) -> None:
    """And then says that, once."""
    async with opened(tmp_path, ScriptedProvider(*[fails("auth")] * 5)) as rig:
        job = await scheduled(rig, "every hour look")
        for _ in range(5):
            await rig.clock.advance(3600)
            assert "does not accept this host's key" in (await rig.chat().answer()).text
        notice = await rig.chat().answer()

        assert "failed 5 times in a row and is paused" in notice.text
        assert notice.buttons == ((f"/job {job.id} resume", f"/job {job.id} remove"),)
        assert (await rig.scheduler.book.get(job.id)).state == "paused"


async def test_what_comes_late_says_so(tmp_path: Path) -> None:
    """To the person, above the answer."""
    clock = FakeClock()
    async with opened(tmp_path, ScriptedProvider(), clock=clock) as rig:
        await scheduled(rig, "at 9:30 stretch")
    await clock.advance(3 * 3600)
    async with opened(tmp_path, ScriptedProvider(answers("Stretch.")), clock=clock) as rig:
        answer = await rig.chat().answer()

        assert answer.text == "(Due Monday 5 January 2026, 09:30; 2 h 30 min late.)\n\nStretch."


async def test_a_run_that_was_cut_is_told_and_not_run_again(tmp_path: Path) -> None:
    """Part of it may have been done; a button runs it once more."""
    async with opened(tmp_path, ScriptedProvider(hangs())) as rig:
        job = await scheduled(rig, "in 1 minute order pizza")
        await rig.clock.advance(60)
        await rig.asked(1)
    provider = ScriptedProvider(answers("Ordered."))
    async with opened(tmp_path, provider) as rig:
        told = await rig.chat().answer()
        await rig.idle()
        assert "order pizza" in told.text
        assert "was at work when this host stopped" in told.text
        assert provider.requests == []
        assert (await run_of(rig, job)) == ("cut", "none")
        rig.chat().presses(told.buttons[0][0])
        texts = {(await rig.chat().answer()).text for _ in range(2)}

        assert texts == {"Job 1 runs now.", "Ordered."}


async def test_an_isolated_run_that_was_cut_is_told_too(tmp_path: Path) -> None:
    """In the chat that it would have answered to."""
    provider = ScriptedProvider(created(when="in 1 minute", prompt="order pizza", isolated=True), answers("It is set."), hangs())
    async with opened(tmp_path, provider) as rig:
        rig.chat().says("go")
        await rig.chat().answer()
        await rig.chat().answer()
        await rig.clock.advance(60)
        await rig.asked(3)
    async with opened(tmp_path, ScriptedProvider()) as rig:
        assert "was at work when this host stopped" in (await rig.chat().answer()).text
        await rig.idle()
        assert len(rig.chat().shown) == 1


async def test_a_cut_run_that_somebody_had_joined_goes_on(tmp_path: Path) -> None:
    """The person is owed an answer."""
    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work")), hangs())) as rig:
        tool = Gated(rig)
        await scheduled(rig, "in 1 minute look")
        await rig.clock.advance(60)
        await tool.begun.wait()
        rig.chat().says("and tell me the weather")
        await eventually(lambda: rig.conversation().status().queued == 1)
        tool.go_on.set()
        await rig.asked(2)
    async with opened(tmp_path, ScriptedProvider(answers("It rains."))) as rig:
        assert (await rig.chat().answer()).text == "It rains."
        await rig.idle()
        assert len(rig.chat().shown) == 1


async def test_a_run_that_had_not_begun_when_the_host_died_runs_then(tmp_path: Path) -> None:
    """It waited in the chat behind another; nobody has lost it, and it runs once."""
    async with opened(tmp_path, ScriptedProvider(hangs())) as rig:
        job = await scheduled(rig, "in 1 minute look")
        rig.chat().says("work")
        await rig.asked(1)
        await rig.clock.advance(60)
        await eventually(lambda: len(rig.conversation()._pending.held) == 1)
    async with opened(tmp_path, ScriptedProvider(answers("Yours."), answers("The job's."))) as rig:
        assert [(await rig.chat().answer()).text for _ in range(2)] == ["Yours.", "The job's."]
        await until_over(rig, job, "done", "delivered")


class Dying:
    """A database of which, once ``armed``, the n-th write and all later ones never reach the disk."""

    def __init__(self, writes: int) -> None:
        self.armed = False
        self.died = False
        self._left = writes

    def wrap(self, database: Database) -> Database:
        self._database = database
        return self

    async def write(self, work: Callable[[Transaction], T]) -> T:
        self._left -= self.armed
        if self._left < 0:
            self.died = True
            raise OperatorMustAct("the host is dead")
        return await self._database.write(work)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        return await self._database.read(work)


async def until_state(rig: Rig, job: Job, state: str) -> None:
    async with asyncio.timeout(20):
        while (await rig.scheduler.book.get(job.id)).state != state:  # noqa: ASYNC110 - the database sets no event
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("writes", range(8))
async def test_wherever_the_host_dies_a_job_runs_at_most_once_and_is_never_forgotten(tmp_path: Path, writes: int) -> None:
    """Between any two commits of claim, prompt, answer and delivery: the chat reads the answer, or that the run was cut."""
    clock = FakeClock()
    async with opened(tmp_path, ScriptedProvider(), clock=clock) as rig:
        job = await scheduled(rig, "in 1 minute order pizza")
    first, again = ScriptedProvider(answers("Ordered.")), ScriptedProvider(answers("Ordered."))
    dying = Dying(writes)
    async with opened(tmp_path, first, clock=clock, wrap=dying.wrap) as rig:
        dying.armed = True
        await clock.advance(60)
        for _ in range(200):
            await asyncio.sleep(0.002)
            if dying.died or (await rig.scheduler.book.get(job.id)).state == "done":
                break
        await clock.advance(0)
        seen = [each.text for each in rig.chat().shown]
    async with opened(tmp_path, again, clock=clock) as rig:
        await until_state(rig, job, "done")
        await rig.idle()
        later = [(each.text, each.possible_duplicate) for each in rig.chat().shown]

    texts = [*seen, *(text for text, duplicate in later if not (duplicate and text in seen))]
    told = [text for text in texts if "was at work when this host stopped" in text]
    answered = [text for text in texts if text == "Ordered."]
    assert len(answered) + len(told) == 1, (seen, later)
    assert len(again.requests) <= (0 if told or seen else 1)


async def test_a_chat_that_is_gone_parks_its_jobs_until_somebody_writes_there(tmp_path: Path) -> None:
    """The platform refuses the answer for good."""
    async with opened(tmp_path, ScriptedProvider(answers("Hello?"))) as rig:
        job = await scheduled(rig, "every hour look")
        rig.channel.before_send = [DeliveryRefused("the bot was blocked")]
        await rig.clock.advance(3600)
        await until_over(rig, job, "done", "refused")
        await until_state(rig, job, "parked")
        await rig.clock.advance(5 * 3600)

        assert (await rig.scheduler.book.get(job.id)).reason == "the bot was blocked"
        assert len(rig.provider.requests) == 1


# The tool


async def test_the_agent_makes_a_job_and_the_chat_reads_of_it_with_a_button_to_remove_it(tmp_path: Path) -> None:
    """The tool answers with time, weekday, zone and the next three runs, so that the model can check itself."""
    async with opened(tmp_path, ScriptedProvider(created(when="every weekday at 9:30", prompt="sum up"), answers("It is set."))) as rig:
        rig.chat().says("sum up my mail every working day")
        announced = await rig.chat().answer()
        await rig.chat().answer()
        [result] = [each for each in rig.provider.requests[1].messages if isinstance(each, ToolResultMessage)]

        assert "I made a job." in announced.text
        assert announced.buttons == (("/job 1 remove",),)
        assert "Monday 5 January 2026, 09:30; Tuesday 6 January 2026, 09:30; Wednesday 7 January 2026, 09:30" in message_text(result)
        assert "it is Monday 5 January 2026, 09:00 (UTC) now" in message_text(result)
        rig.chat().presses("/job 1 remove")
        assert "removed" in (await rig.chat().answer()).text
        assert await rig.scheduler.book.list() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"when": "2026-01-05 08:00", "prompt": "x"}, "has passed; it is Monday 05 January 2026, 09:00 (UTC) now"),
        ({"when": "whenever", "prompt": "x"}, "every weekday at 09:00"),
        ({"when": "every 5 seconds", "prompt": "x"}, "60 seconds"),
        ({"when": "at 10:00 sharp", "prompt": "x"}, "'sharp'"),
        ({"when": "every hour", "prompt": "x", "quiet_hours": "late"}, "quiet hours"),
        ({"when": "every hour", "prompt": "x", "ends": "every day at 9"}, "'ends'"),
        ({"prompt": "x"}, "'when' is missing"),
        ({"when": "cron 0 0 31 2 *", "prompt": "x"}, "never comes"),
    ],
)
async def test_the_tool_says_what_was_wrong(tmp_path: Path, arguments: dict[str, str], said: str) -> None:
    """In words from which the model can go on; nothing is made."""
    async with opened(tmp_path, ScriptedProvider(created(**arguments), answers("Sorry."))) as rig:
        rig.chat().says("go")
        await rig.chat().answer()
        [result] = [each for each in rig.provider.requests[1].messages if isinstance(each, ToolResultMessage)]

        assert result.is_error
        assert said in message_text(result)
        assert await rig.scheduler.book.list() == []


async def test_the_tool_changes_lists_and_removes(tmp_path: Path) -> None:
    """Only what is given changes."""
    provider = ScriptedProvider(
        created("1", when="every day at 9", prompt="sum up", ends="2026-02-01 12:00"),
        asks("2", action="update", id="1", when="every day at 10", quiet_hours=""),
        asks("3", action="pause", id="1"),
        asks("4", action="list"),
        asks("5", action="resume", id="1"),
        asks("6", action="remove", id="7"),
        answers("Done."),
    )  # fmt: skip
    async with opened(tmp_path, provider) as rig:
        rig.chat().says("go")
        for _ in range(3):
            await rig.chat().answer()
        results = [message_text(each) for each in rig.provider.requests[-1].messages if isinstance(each, ToolResultMessage)]
        [job] = await rig.scheduler.book.list()

        assert "every day at 10:00" in results[1]
        assert "paused" in results[3]
        assert "no job '7'" in results[5]
        assert (job.definition.text, job.state, job.next_at) == ("sum up", "active", datetime.fromisoformat("2026-01-05T10:00+00:00"))
        assert job.definition.ends_at == datetime.fromisoformat("2026-02-01T12:00+00:00")


async def test_a_job_may_make_one_more_and_that_none(tmp_path: Path) -> None:
    """Or they would multiply while nobody looks."""
    provider = ScriptedProvider(
        answers(call("1", "schedule", action="create", when="in 1 minute", prompt="second")), answers("One more."),
        answers(call("2", "schedule", action="create", when="in 1 minute", prompt="third")), answers("No more."),
    )  # fmt: skip
    async with opened(tmp_path, provider) as rig:
        await scheduled(rig, "in 1 minute first")
        await rig.clock.advance(60)
        assert "I made a job" in (await rig.chat().answer()).text
        assert (await rig.chat().answer()).text == "One more."
        await rig.idle()
        await rig.clock.advance(60)
        assert (await rig.chat().answer()).text == "No more."
        [result] = [each for each in rig.provider.requests[3].messages if isinstance(each, ToolResultMessage)][1:]

        assert "makes no further ones" in message_text(result)


async def test_a_condition_is_looked_at_until_it_comes_true_and_then_no_more(tmp_path: Path) -> None:
    """In sessions of its own; silence means not yet."""
    provider = ScriptedProvider(
        created(condition="the parcel has arrived", prompt="tell me"), answers("I watch."), answers("[SILENT]"), answers("It is here!")
    )
    async with opened(tmp_path, provider) as rig:
        rig.chat().says("tell me when the parcel is there")
        await rig.chat().answer()
        await rig.chat().answer()
        [job] = await rig.scheduler.book.list()
        await rig.clock.advance(600)
        await until_over(rig, job, "silent", "none")
        await rig.clock.advance(600)
        assert (await rig.chat().answer()).text == "It is here!"
        await until_over(rig, job, "done", "delivered")
        await rig.clock.advance(6000)

        assert "Find out whether this holds now: the parcel has arrived" in rig.prompts(2)[0]
        assert len(provider.requests) == 4
        done = await rig.scheduler.book.get(job.id)
        assert (done.state, done.reason) == ("done", "it happened")


async def test_a_zone_change_moves_the_jobs_of_the_chat(tmp_path: Path) -> None:
    """Said with ``/timezone``."""
    async with opened(tmp_path, ScriptedProvider()) as rig:
        job = await scheduled(rig, "every day at 12 eat")
        rig.chat().says("/timezone Asia/Tokyo")

        assert "follows it" in (await rig.chat().answer()).text
        assert (await rig.scheduler.book.get(job.id)).next_at == datetime.fromisoformat("2026-01-06T03:00+00:00")


async def test_two_chats_keep_their_jobs_apart(tmp_path: Path) -> None:
    """By their numbers too."""
    async with opened(tmp_path, ScriptedProvider()) as rig:
        await scheduled(rig, "every day at 12 secret")
        rig.chat("2").says("/job 1 remove")

        assert "no job '1'" in (await rig.chat("2").answer()).text
        rig.chat("2").says("/jobs")
        assert "secret" not in (await rig.chat("2").answer()).text


async def test_a_watcher_needs_the_approval_that_its_command_would_need(tmp_path: Path) -> None:
    """What the person reads and allows is the script itself; without an answer there is no job."""
    provider = ScriptedProvider(
        created("1", when="every hour", prompt="tell me", script="curl -s https://example.org/news"), answers("It is set."),
        created("2", when="every hour", prompt="tell me", script="rm -rf ."), answers("Then not."),
    )  # fmt: skip
    async with opened(tmp_path, provider, approvals=ApprovalOptions(tools={"bash": "ask"})) as rig:
        chat = rig.chat()
        chat.says("watch the news")
        await chat.until(lambda: bool(chat.shown and chat.shown[0].buttons))
        assert "curl -s https://example.org/news" in chat.shown[0].text
        assert await rig.scheduler.book.list() == []
        chat.presses(chat.shown[0].buttons[0][0])
        await chat.until(lambda: chat.shown[-1].text == "It is set.")
        [job] = await rig.scheduler.book.list()
        assert job.definition.script == "curl -s https://example.org/news"
        chat.says("and clean up")
        await chat.until(lambda: "rm -rf" in chat.shown[-1].text)
        chat.says("no")
        await chat.until(lambda: chat.shown[-1].text == "Then not.")

        assert await rig.scheduler.book.list() == [job]


async def test_a_job_that_nobody_attends_gets_no_approval(tmp_path: Path) -> None:
    """There is nobody to ask in the middle of the night; the model reads that."""
    provider = ScriptedProvider(answers(call("c", "work")), answers("I may not."))
    async with opened(tmp_path, provider, approvals=ApprovalOptions(tools={"work": "ask"})) as rig:
        await scheduled(rig, "in 1 minute work")
        await rig.clock.advance(60)

        assert (await rig.chat().answer()).text == "I may not."
        assert rig.tool.calls == []
