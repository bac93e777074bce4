"""Approvals in a run: the gate, the buttons, and what the model reads."""

from pathlib import Path

import pytest

from bot.testing import LoopbackChat
from features.agent.testing import ScriptedProvider, answers, call
from features.approvals import ApprovalOptions
from features.contracts.chat import Address, Person
from features.contracts.messages import ToolResultMessage, message_text
from tests.bot.conversations.rig import Rig, opened

ASK = ApprovalOptions(tools={"work": "ask"})
BERT = Person(id="loop:2", name="Bert")


def working(*texts: str) -> ScriptedProvider:
    return ScriptedProvider(*(answers(call(f"c{number}", "work", text=text)) for number, text in enumerate(texts)), answers("well then"))


def result(rig: Rig, request: int = 1) -> str:
    return [message_text(message) for message in rig.provider.requests[request].messages if isinstance(message, ToolResultMessage)][-1]


async def asked(chat: LoopbackChat, count: int = 1) -> dict[str, str]:
    """The buttons of the question that is open, by what they say."""
    await chat.until(lambda: len(chat.shown) >= count and bool(chat.shown[count - 1].buttons))
    commands = [command for row in chat.shown[count - 1].buttons for command in row]
    return dict(zip(("once", "always", "deny") if len(commands) == 3 else ("once", "deny"), commands, strict=True))


async def test_a_call_waits_for_its_button(tmp_path: Path) -> None:
    """Nothing has run before; the question then says what was chosen."""
    async with opened(tmp_path, working("hard"), approvals=ASK) as rig:
        rig.chat().says("go")
        buttons = await asked(rig.chat())
        assert "May I use `work`?" in rig.chat().shown[0].text
        assert "text: hard" in rig.chat().shown[0].text
        assert rig.tool.calls == []
        rig.chat().presses(buttons["once"])
        await rig.chat().until(lambda: rig.chat().shown[-1].text == "well then")

        assert len(rig.tool.calls) == 1
        await rig.chat().until(lambda: rig.chat().shown[0].text.endswith("Answered: Allow once"))


@pytest.mark.parametrize(("typed", "said"), [("deny", "did not allow"), ("no", "did not allow"), (None, "within 300 seconds")])
async def test_a_denied_call_does_not_run_and_the_model_reads_why(tmp_path: Path, typed: str | None, said: str) -> None:
    """By word, and by nothing in time."""
    async with opened(tmp_path, working("hard"), approvals=ASK) as rig:
        rig.chat().says("go")
        await asked(rig.chat())
        if typed is not None:
            rig.chat().says(typed)
        else:
            await rig.clock.advance(301)
        await rig.chat().until(lambda: rig.chat().shown[-1].text == "well then")

        assert rig.tool.calls == []
        assert said in result(rig)


async def test_a_stopped_run_takes_its_question_with_it(tmp_path: Path) -> None:
    """And a press that comes afterwards is told so and runs nothing."""
    async with opened(tmp_path, working("hard"), approvals=ASK) as rig:
        rig.chat().says("go")
        buttons = await asked(rig.chat())
        rig.chat().says("/stop")
        await rig.chat().until(lambda: "Nobody waits for this any more." in rig.chat().shown[0].text)
        rig.chat().presses(buttons["once"])
        await rig.chat().until(lambda: any(shown.text.startswith("This is over.") for shown in rig.chat().shown))

        assert rig.tool.calls == []
        assert rig.chat().shown[0].buttons == ()


async def test_always_holds_in_the_next_run_and_only_an_owner_may_say_it(tmp_path: Path) -> None:
    """Whoever asked may allow once."""
    async with opened(tmp_path, working("one", "two"), approvals=ASK) as rig:
        chat = rig.chat("5", group=True)
        chat.says("go", sender=BERT)
        buttons = await asked(chat)
        chat.presses(buttons["always"], sender=BERT)
        await chat.until(lambda: any("Only an owner" in shown.text for shown in chat.shown))
        assert rig.tool.calls == []
        chat.presses(buttons["always"])
        await chat.until(lambda: chat.shown[-1].text == "well then")

        assert len(rig.tool.calls) == 2
        assert [grant.tool for grant in await rig.approvals.granted(Address("loop", "5"))] == ["work"]
        assert await rig.approvals.granted(Address("loop", "1")) == []


async def test_a_question_that_was_open_when_the_host_died_is_asked_anew(tmp_path: Path) -> None:
    """The call was never run; the run goes on, and what it wants is asked about again."""
    async with opened(tmp_path, working("hard"), approvals=ASK) as rig:
        rig.chat().says("go")
        await asked(rig.chat())
        rig.conversations.leave()
    async with opened(tmp_path, working("hard"), approvals=ASK) as rig:
        await rig.chat().until(lambda: any(shown.buttons for shown in rig.chat().shown))
        (again,) = [shown for shown in rig.chat().shown if shown.buttons]
        assert "May I use `work`?" in again.text
        assert rig.tool.calls == []
        rig.chat().presses(again.buttons[0][0])
        await rig.chat().until(lambda: rig.chat().shown[-1].text == "well then")

        assert len(rig.tool.calls) == 1
