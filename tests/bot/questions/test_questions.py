"""Questions to the person, through a chat that has buttons."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from bot.migrations import all_migrations
from features.agent.testing import ScriptedProvider, answers
from features.contracts.chat import Person
from features.contracts.ui import UserInterface
from features.storage import Database
from tests.bot.conversations.rig import eventually, opened
from tests.bot.questions.asking import asking

BERT = Person(id="loop:2", name="Bert")
CARL = Person(id="loop:3", name="Carl")


async def test_a_button_answers_and_the_question_says_what_was_answered(tmp_path: Path) -> None:
    """Buttons that linger would be pressed again."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?", "It takes **long**.")) as it:
        it.chat.says("go")
        shown = await it.asked("Shall I?")
        assert shown.text == "Shall I?\n\nIt takes **long**."
        ((yes, _),) = shown.buttons
        it.chat.presses(yes)

        assert await it.over() == [True]
        await it.chat.until(lambda: not shown.buttons)
        assert shown.text.endswith("\n\nAnswered: Yes")
        await it.asked("well then")
        await it.rig.idle()
        assert await it.rig.inbox_states() == ["answered", "answered"]


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("2", "green tea"), ("Green Tea", "green tea"), ("black", "black coffee, hot"), ("3.", "black coffee, hot"), ("water!", "water")],
)
async def test_a_choice_can_be_typed(tmp_path: Path, typed: str, answer: str) -> None:
    """By its number or its words; a terminal and a car have no buttons."""
    options = ("water", "green tea", "black coffee, hot")
    async with asking(tmp_path, lambda ui: ui.select("What to drink?", options)) as it:
        it.chat.says("go")
        shown = await it.asked("drink")
        assert [len(row) for row in shown.buttons] == [1, 1, 1]
        it.chat.says(typed)

        assert await it.over() == [answer]


async def test_what_answers_no_question_joins_the_run_as_ever(tmp_path: Path) -> None:
    """A question takes no words that are not its own."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?")) as it:
        it.chat.says("go")
        shown = await it.asked("Shall I?")
        it.chat.says("what would it cost?")
        await it.rig.arrived(2)
        it.chat.presses(shown.buttons[0][1])
        await it.asked("well then")

        assert it.got == [False]
        assert it.rig.prompts(1) == ["go", "what would it cost?"]


async def test_the_next_message_is_the_line_that_was_asked_for(tmp_path: Path) -> None:
    """The model hears it from whoever asked and not as a message too."""
    async with asking(tmp_path, lambda ui: ui.input("What is it called?", "Sunrise")) as it:
        it.chat.says("go")
        shown = await it.asked("called?")
        assert shown.text == "What is it called?\n\nYour next message is the answer, like: Sunrise."
        it.chat.says("  Moonset ")

        assert await it.over() == ["Moonset"]
        await it.asked("well then")
        assert it.rig.prompts(1) == ["go"]
        await it.rig.idle()
        assert await it.rig.inbox_states() == ["answered", "answered"]
        assert shown.text.endswith("Answered.")


async def test_a_command_is_no_answer(tmp_path: Path) -> None:
    """/stop stops."""
    async with asking(tmp_path, lambda ui: ui.input("What is it called?")) as it:
        it.chat.says("go")
        shown = await it.asked("called?")
        it.chat.says("/stop")
        await it.chat.until(lambda: "Nobody waits" in shown.text)

        assert it.got == []


async def test_what_was_said_before_the_question_is_no_answer(tmp_path: Path) -> None:
    """It waited on the platform; a yes to something else must not allow this."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?")) as it:
        earlier = it.rig.clock.now()
        await it.rig.clock.advance(60)
        it.chat.says("go")
        shown = await it.asked("Shall I?")
        it.chat.says("yes", sent_at=earlier)
        await it.rig.arrived(2)
        it.chat.presses(shown.buttons[0][1])

        assert await it.over() == [False]


async def test_no_answer_in_time_is_the_safe_answer(tmp_path: Path) -> None:
    """And the question says that it was too late."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?", timeout_s=300)) as it:
        it.chat.says("go")
        shown = await it.asked("Shall I?")
        await it.rig.clock.advance(299)
        assert it.got == []
        await it.rig.clock.advance(2)

        assert await it.over() == [False]
        await it.chat.until(lambda: not shown.buttons)
        assert shown.text.endswith("No answer in 5 minutes, so it counts as no.")


async def test_a_late_press_is_told_what_became_of_the_question(tmp_path: Path) -> None:
    """Never that it was taken."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?", timeout_s=60)) as it:
        it.chat.says("go")
        shown = await it.asked("Shall I?")
        yes = shown.buttons[0][0]
        await it.rig.clock.advance(61)
        await it.over()
        it.chat.presses(yes)

        said = await it.asked("This is over.")
        assert said.text == "This is over. No answer in 1 minute, so it counts as no."
        assert it.got == [False]


async def test_of_two_presses_the_first_counts_and_the_second_is_told_so(tmp_path: Path) -> None:
    """Also while the first is still being written down."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?")) as it:
        it.chat.says("go")
        shown = await it.asked("Shall I?")
        yes, no = (button for row in shown.buttons for button in row)
        it.chat.presses(yes)
        it.chat.presses(no)

        assert await it.over() == [True]
        assert (await it.asked("This is over.")).text == "This is over. Answered: Yes"


async def test_a_question_ends_with_its_run(tmp_path: Path) -> None:
    """/stop leaves nothing that could still be answered."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?")) as it:
        it.chat.says("go")
        shown = await it.asked("Shall I?")
        yes = shown.buttons[0][0]
        it.chat.says("/stop")
        await it.chat.until(lambda: not shown.buttons)
        assert shown.text.endswith("Nobody waits for this any more.")
        it.chat.presses(yes)

        assert (await it.asked("This is over.")).text == "This is over. Nobody waits for this any more."
        assert it.got == []


async def test_after_a_restart_a_question_is_over_and_its_button_says_why(tmp_path: Path) -> None:
    """Nobody waits any more for what the last process asked."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?")) as it:
        it.chat.says("go")
        yes = (await it.asked("Shall I?")).buttons[0][0]
        it.rig.conversations.leave()
    async with opened(tmp_path, ScriptedProvider(answers("where was I"))) as rig:
        rig.chat().presses(yes)
        await rig.chat().until(lambda: any(shown.text.startswith("This is over. I was restarted") for shown in rig.chat().shown))
        await rig.idle()

        assert await rig.rows("SELECT state FROM questions") == [("closed",)]


async def test_a_killed_process_leaves_no_open_question(tmp_path: Path) -> None:
    """The next one ends what it finds."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?")) as it:
        it.chat.says("go")
        await it.asked("Shall I?")
    async with Database(tmp_path / "state.db", all_migrations()) as database:  # as kill -9 would have left it
        await database.write(lambda t: t.execute("UPDATE questions SET state = 'open', ending = ''"))
    async with opened(tmp_path, ScriptedProvider(answers("where was I"))) as rig:
        ((state, ending),) = await rig.rows("SELECT state, ending FROM questions")
        assert state != "open"
        assert ending.startswith("I was restarted")


async def test_in_a_group_others_may_not_answer(tmp_path: Path) -> None:
    """Neither by button nor by word; they are told once."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?"), group=True) as it:
        group = it.chat
        group.says("go", sender=BERT)
        shown = await it.asked("Shall I?")
        yes, no = shown.buttons[0]
        for _ in range(3):
            group.presses(yes, sender=CARL)
        await it.asked("Only whoever asked me")
        group.says("yes", sender=CARL)
        await it.rig.arrived(5)
        assert it.got == []
        group.presses(no, sender=BERT)

        assert await it.over() == [False]
        await group.until(lambda: shown.text.endswith("Bert: No"))
        assert len([shown for shown in group.shown if "Only whoever" in shown.text]) == 1


async def test_an_owner_may_answer_for_others(tmp_path: Path) -> None:
    """Whoever runs the host has the last word."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?"), group=True) as it:
        it.chat.says("go", sender=BERT)
        shown = await it.asked("Shall I?")
        it.chat.presses(shown.buttons[0][0])

        assert await it.over() == [True]


async def test_some_options_are_for_owners(tmp_path: Path) -> None:
    """Whoever asked may choose among the others; a plain yes never means one that is kept for owners."""
    options = ("Allow once", "Allow always", "Deny")
    async with asking(tmp_path, lambda ui: ui.select("May I?", options, owners_only=["Allow always"]), group=True) as it:
        it.chat.says("go", sender=BERT)
        shown = await it.asked("May I?")
        it.chat.presses(shown.buttons[0][1], sender=BERT)
        await it.asked("Only an owner")
        assert it.got == []
        it.chat.says("yes", sender=BERT)

        assert await it.over() == ["Allow once"]


async def test_of_two_presses_the_first_counts(tmp_path: Path) -> None:
    """Both arrive at once; the second is told."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?")) as it:
        it.chat.says("go")
        yes, no = (await it.asked("Shall I?")).buttons[0]
        it.chat.presses(no)
        it.chat.presses(yes)

        assert await it.over() == [False]
        await it.asked("This is over")


async def test_a_word_that_could_mean_two_questions_is_asked_about(tmp_path: Path) -> None:
    """Better than the wrong one."""
    async with asking(tmp_path, lambda ui: ui.confirm("First?"), lambda ui: ui.confirm("Second?")) as it:
        it.chat.says("go")
        first, second = await it.asked("First?"), await it.asked("Second?")
        it.chat.says("yes")
        await it.asked("More than one question is open")
        it.chat.presses(second.buttons[0][0])
        await it.over()
        it.chat.presses(first.buttons[0][1])

        assert await it.over(2) == [True, False]


async def test_where_nobody_looks_nothing_is_asked(tmp_path: Path) -> None:
    """A question on a command line gets its answer, and the safe answer to whatever it would have asked."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?")) as it:
        it.rig.channel.arrive([msgspec.structs.replace(it.chat.message("go"), attended=False)])

        assert await it.over() == [False]
        await it.asked("well then")
        assert [shown.text for shown in it.chat.shown] == ["well then"]


async def test_a_platform_that_cannot_edit_is_told_in_words(tmp_path: Path) -> None:
    """People must see that it is over."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?", timeout_s=60)) as it:
        it.rig.channel.edits_buttons = False
        it.chat.says("go")
        await it.asked("Shall I?")
        await it.rig.clock.advance(61)

        await it.chat.until(lambda: any(shown.text.startswith("No answer in") for shown in it.chat.shown))


async def test_a_question_that_is_over_before_it_could_be_sent_loses_its_buttons(tmp_path: Path) -> None:
    """The platform was away meanwhile."""
    async with asking(tmp_path, lambda ui: ui.confirm("Shall I?", timeout_s=60)) as it:
        it.rig.channel.gate.clear()
        it.chat.says("go")
        await it.stored()
        await it.rig.clock.advance(61)
        assert await it.over() == [False]
        it.rig.channel.gate.set()

        shown = await it.asked("Shall I?")
        await it.chat.until(lambda: not shown.buttons and "No answer" in shown.text)


async def test_a_long_list_is_chosen_from_by_number(tmp_path: Path) -> None:
    """Fifty buttons are none."""
    async with asking(tmp_path, lambda ui: ui.select("Which?", [f"thing {n}" for n in range(1, 51)])) as it:
        it.chat.says("go")
        shown = await it.asked("Which?")
        assert not shown.buttons
        assert "50. thing 50" in shown.text
        it.chat.says("42")

        assert await it.over() == ["thing 42"]


async def test_too_many_questions_at_a_time_get_the_safe_answer(tmp_path: Path) -> None:
    """A chat is not filled by a loop."""
    questions = [lambda ui, n=n: ui.confirm(f"Question {n}?", timeout_s=600) for n in range(10)]
    async with asking(tmp_path, *questions) as it:
        it.chat.says("go")
        await it.over(2)
        await it.asked("Question 7?")

        assert it.got == [False, False]
        it.chat.says("/stop")
        await it.rig.idle()


async def test_a_choice_of_nothing_is_not_asked(tmp_path: Path) -> None:
    async with asking(tmp_path, lambda ui: ui.select("Which?", [])) as it:
        it.chat.says("go")

        assert await it.over() == [None]


async def test_a_status_stands_beside_what_the_run_does(tmp_path: Path) -> None:
    """One line a key, until it is taken away."""
    done = asyncio.Event()

    async def show(ui: UserInterface) -> None:
        ui.status("build", "building\n3 of 9")
        await done.wait()
        ui.status("build", None)

    async with asking(tmp_path, show) as it:
        it.chat.says("go")
        await eventually(lambda: "work 0 · building 3 of 9" in it.rig.channel.status)
        done.set()
        await it.over()
        await it.rig.idle()

        assert "building" not in (it.rig.channel.status[-1] or "")


async def test_a_notice_is_a_message_of_its_own(tmp_path: Path) -> None:
    """Not a part of the answer."""
    async with asking(tmp_path, lambda ui: ui.notify("Disk is nearly full.", "warning")) as it:
        it.chat.says("go")

        assert (await it.asked("Disk")).text == "⚠️ Disk is nearly full."
        await it.asked("well then")
