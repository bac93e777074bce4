"""The books of a run: consumed and answered in the commits that store the entries."""

from pathlib import Path
from typing import Literal

from bot.delivery.run_books import RunBooks, RunStart
from features.contracts.agent import RunFailure, RunOutcome
from features.contracts.messages import AssistantMessage, StopReason, TextBlock, ToolCall, Usage, UserMessage
from features.contracts.sessions import MessageEntry, TransactionWork
from tests.bot.delivery.rig import Rig, eventually, opened


class Books:
    """Runs books as the agent does: each entry is stored together with what the journal gives."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.more = False
        self.usage: list[AssistantMessage] = []
        self.books = RunBooks(rig.chat().address, rig.outbox, ids=lambda: "e-1234", usage=self._spent, more_to_come=lambda: self.more)
        self.books.session_id = "s1"
        self.entries = 0

    def _spent(self, message: AssistantMessage) -> TransactionWork:
        return lambda transaction: self.usage.append(message)

    async def user(self, *ids: str, run: str = "r1") -> None:
        await self._entry(run, UserMessage(content="x", timestamp=0), ids)

    async def assistant(self, text: str, *, stop: StopReason = "stop", calls: bool = False, run: str = "r1") -> None:
        content: list[TextBlock | ToolCall] = [TextBlock(text=text)] if text else []
        if calls:
            content.append(ToolCall(id="c", name="bash", arguments={}))
        message = AssistantMessage(content=[*content], api="a", provider="p", model="m", usage=Usage(), stop_reason=stop, timestamp=0)
        await self._entry(run, message, ())

    async def _entry(self, run: str, message: UserMessage | AssistantMessage, ids: tuple[str, ...]) -> None:
        self.entries += 1
        entry = MessageEntry(id=f"x{self.entries}", parent_id=None, timestamp="", message=message)
        work = self.books(run, entry, ids)
        assert work is not None
        await self.rig.database.write(work)

    async def take(self, text: str) -> str:
        await self.rig.inbox.accept([self.rig.chat().message(text)])
        return self.rig.handed[-1].id


def outcome(text: str, how: Literal["success", "error", "aborted"] = "success", failure: RunFailure | None = None) -> RunOutcome:
    return RunOutcome(run_id="r1", outcome=how, text=text, source_ids=(), usage=Usage(), failure=failure)


async def test_a_plain_turn_costs_four_commits(tmp_path: Path) -> None:
    """Accepted; taken in; answered, with its row in the outbox and its cost; sent."""
    async with opened(tmp_path) as rig:
        books = Books(rig)
        before = rig.database.commits
        message = await books.take("hello")
        books.books.begin(RunStart())
        await books.user(message)
        assert await rig.inbox_states() == ["consumed"]
        await books.assistant("hi")
        assert (await rig.inbox_states(), await rig.outbox_states()) == (["answered"], ["sending"])
        await books.books.settle(outcome("hi"), asked=(message,))
        assert (await rig.chat().answer()).text == "hi"
        await eventually(lambda: rig.outbox.idle)

        assert rig.database.commits == before + 4
        assert len(books.usage) == 1
        assert await rig.rows("SELECT answers, run_id FROM outbox") == [(f'["{message}"]', "r1")]


async def test_an_answer_that_gets_more_is_one_row(tmp_path: Path) -> None:
    """Somebody steered after the first answer: the row waits, grows and lists both messages."""
    async with opened(tmp_path) as rig:
        books = Books(rig)
        one = await books.take("one")
        await books.user(one)
        await books.assistant("first")
        two = await books.take("two")
        await books.user(two)
        assert await rig.outbox_states() == ["held"]
        await books.assistant("second")
        await books.books.settle(outcome("first\n\nsecond"))

        assert (await rig.chat().answer()).text == "first\n\nsecond"
        [(answers,)] = await rig.rows("SELECT answers FROM outbox")
        assert answers == f'["{one}","{two}"]'


async def test_text_beside_tool_calls_is_no_answer(tmp_path: Path) -> None:
    """Thinking aloud between tools is not what the person is owed."""
    async with opened(tmp_path) as rig:
        books = Books(rig)
        await books.user(await books.take("hello"))
        await books.assistant("let me look", calls=True, stop="toolUse")

        assert await rig.outbox_states() == []
        assert await rig.inbox_states() == ["consumed"]


async def test_an_empty_answer_is_never_silent(tmp_path: Path) -> None:
    """A run of tools alone ends with a word."""
    async with opened(tmp_path) as rig:
        books = Books(rig)
        await books.user(await books.take("hello"))
        await books.assistant("")
        await books.books.settle(outcome(""))

        assert (await rig.chat().answer()).text.startswith("Done.")
        assert await rig.inbox_states() == ["answered"]


async def test_a_failure_is_told_in_words_with_the_id_that_the_log_has(tmp_path: Path) -> None:
    """What had been said stays; the rest is for whoever runs the host."""
    async with opened(tmp_path) as rig:
        books = Books(rig)
        message = await books.take("hello")
        await books.user(message)
        await books.assistant("half an ans", stop="error")
        assert await rig.inbox_states() == ["consumed"]
        await books.books.settle(outcome("half an ans", "error", RunFailure(kind="overloaded", message="529 secret detail")))
        text = (await rig.chat().answer()).text

        assert text.startswith("half an ans\n\n")
        assert "overloaded" in text
        assert "e-1234" in text
        assert "529" not in text
        assert await rig.rows("SELECT outcome FROM outbox") == [("error",)]


async def test_a_stopped_run_says_so_where_nothing_was_said(tmp_path: Path) -> None:
    """Each run ends in exactly one message."""
    async with opened(tmp_path) as rig:
        books = Books(rig)
        await books.user(await books.take("hello"))
        await books.assistant("", stop="aborted")
        await books.books.settle(outcome("", "aborted"))

        assert (await rig.chat().answer()).text.startswith("Stopped")
        assert await rig.outbox_states() in (["sending"], ["sent"])


async def test_a_parked_run_owes_nothing_yet(tmp_path: Path) -> None:
    """The host ends in the middle; the next start goes on with it, so its message is not answered."""
    async with opened(tmp_path) as rig:
        books = Books(rig)
        await books.user(await books.take("hello"))
        books.books.parked = True
        await books.assistant("half", stop="aborted")
        await books.books.settle(outcome("half", "aborted"))

        assert await rig.inbox_states() == ["consumed"]
        assert await rig.outbox_states() == []


async def test_a_run_that_could_not_take_its_prompt_answers_all_the_same(tmp_path: Path) -> None:
    """The prompt could not be stored; its message is not left without a word."""
    async with opened(tmp_path) as rig:
        books = Books(rig)
        message = await books.take("hello")
        await books.books.settle(outcome("", "error", RunFailure(kind="storage", message="full")), asked=(message,))

        assert "disk" in (await rig.chat().answer()).text
        assert await rig.inbox_states() == ["answered"]


async def test_a_draft_becomes_the_answer(tmp_path: Path) -> None:
    """What streamed into a message ends as that message."""
    async with opened(tmp_path) as rig:
        books = Books(rig)
        view = rig.channel.live(rig.chat().address, reply_to=None, opened=books.books.draft_shown)
        await books.user(await books.take("hello"))
        assert await books.books.intend_draft()
        view.show("h")
        await books.assistant("hi")
        books.books.draft_left(await view.close())
        await books.books.settle(outcome("hi"))
        answer = await rig.chat().answer()

        assert (answer.text, answer.edits) == ("hi", 1)
        assert len(rig.chat().shown) == 1


async def test_the_answer_of_a_resumed_run_takes_the_place_of_the_cut_one(tmp_path: Path) -> None:
    """The draft that the dead host left on show is replaced, and its row is gone."""
    async with opened(tmp_path) as rig:
        books = Books(rig)
        message = await books.take("hello")
        await books.user(message)
        await books.books.intend_draft()
        rig.channel.live(rig.chat().address, reply_to=None, opened=books.books.draft_shown).show("hi th")
        left = rig.chat().shown
        await eventually(lambda: rig.outbox.idle)
    async with opened(tmp_path) as rig:
        rig.chat().shown += left
        [cut] = (await rig.outbox.recover()).values()
        [unfinished] = await rig.inbox.unfinished()
        books = Books(rig)
        books.books.begin(RunStart(run_id="r1-again", answers=unfinished.message_ids, draft=cut.draft, replaces=cut.run_ids))
        assert not await books.books.intend_draft()
        await books.assistant("hi there", run="r2")
        await books.books.settle(outcome("hi there"))
        answer = await rig.chat().answer()

        assert (answer.text, answer.possible_duplicate, answer.edits) == ("hi there", False, 1)
        assert await rig.rows("SELECT run_id, answers FROM outbox") == [("r2", f'["{message}"]')]


async def test_a_resumed_run_that_shows_a_draft_of_its_own_leaves_one_row(tmp_path: Path) -> None:
    """It may show one before its first entry tells its id; what was noted until then goes with the answer."""
    async with opened(tmp_path) as rig:
        books = Books(rig)
        message = await books.take("hello")
        await books.user(message)
    async with opened(tmp_path) as rig:
        [unfinished] = await rig.inbox.unfinished()
        books = Books(rig)
        books.books.begin(RunStart(run_id="r1-again", answers=unfinished.message_ids))
        view = rig.channel.live(rig.chat().address, reply_to=None, opened=books.books.draft_shown)
        assert await books.books.intend_draft()
        await books.assistant("let me look", calls=True, stop="toolUse", run="r2")
        view.show("hi")
        await eventually(lambda: rig.outbox.idle)
        assert await rig.rows("SELECT draft_ref FROM outbox") == [(rig.chat().shown[0].ref,)]
        await books.assistant("hi there", run="r2")
        books.books.draft_left(await view.close())
        await books.books.settle(outcome("hi there"))
        await rig.chat().answer()

        assert await rig.rows("SELECT run_id FROM outbox") == [("r2",)]
        assert len(rig.chat().shown) == 1
