"""Extensions in a chat: their commands, what they want said, and that everything is answered exactly once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from features.agent.testing import ScriptedProvider, answers, call, hangs
from features.contracts.chat import Address, ChatCommand, InboundMessage, Person
from features.contracts.errors import UserMustAct
from features.contracts.extension_events import (
    AgentSettled,
    BeforeSessionDelete,
    BeforeSessionSwitch,
    GateEvent,
    InputReceived,
    MessageEnding,
    SessionShutdown,
    SessionStarted,
    SessionSwitched,
)
from features.contracts.extensions import CommandResult, ExtensionApi, ExtensionCommand, ExtensionSpec
from features.contracts.messages import UserMessage
from features.pins import Pins
from tests.bot.conversations.rig import Rig, eventually, opened
from tests.features.agent.recording import extension, listening


def acting(**commands: Any) -> ExtensionSpec:
    """An extension whose commands are functions of its API and the arguments."""

    async def activate(api: ExtensionApi) -> None:
        for name, act in commands.items():

            async def run(arguments: str, act: Any = act) -> CommandResult | None:
                said = await act(api, arguments)
                return None if said is None else CommandResult(text=said)

            api.register_command(ExtensionCommand(name=name, description=f"Does {name}.", run=run))

    return extension(activate)


async def prompts(api: ExtensionApi, arguments: str) -> None:
    await api.prompt(arguments)


async def sends(api: ExtensionApi, arguments: str) -> None:
    await api.send_message("note", arguments, details={"loud": True})


async def echoes(api: ExtensionApi, arguments: str) -> str:
    return f"echo {arguments}".strip()


async def answered_once(rig: Rig) -> None:
    """Nothing waits, and every message that was taken in is answered by exactly one row."""
    await rig.idle()
    assert set(await rig.inbox_states()) <= {"answered", "skipped"}
    rows = [row[0] for row in await rig.rows("SELECT answers FROM outbox WHERE answers <> '[]'")]
    assert len(rows) == len(set(rows))


async def test_a_command_of_an_extension_acts_at_once_and_is_in_the_help(tmp_path: Path) -> None:
    """Also as the first thing that is said after a start, and while an answer is being written."""
    provider = ScriptedProvider(hangs("I am"))
    async with opened(tmp_path, provider, extensions=(acting(echo=echoes),)) as rig:
        chat = rig.chat()
        chat.says("/echo a  b")
        assert (await chat.answer()).text == "echo a  b"
        chat.says("hello")
        await rig.asked(1)
        chat.says("/echo")
        assert (await chat.answer()).text == "echo"
        chat.says("/help")
        while "- `/echo` Does echo." not in (await chat.answer()).text:
            pass  # help is long, and comes in parts
        chat.says("/help echo")
        assert (await chat.answer()).text == "`/echo`\nDoes echo."
        chat.says("/stop")
        await chat.answer()
        await chat.answer()
        await answered_once(rig)


async def test_a_prompt_of_an_extension_is_a_run_with_one_answer(tmp_path: Path) -> None:
    """While another run goes on it waits and joins nothing; it never becomes part of what people say."""
    provider = ScriptedProvider(answers("first"), answers("for people"), answers("for the extension"))
    async with opened(tmp_path, provider, extensions=(acting(go=prompts),), busy="collect") as rig:
        chat = rig.chat()
        rig.channel.gate.clear()
        chat.says("/go on with it")
        await rig.asked(1)
        chat.says("one")
        chat.says("/go again")
        rig.channel.gate.set()
        assert (await chat.answer()).text == "first"
        assert {(await chat.answer()).text, (await chat.answer()).text} == {"for people", "for the extension"}
        await answered_once(rig)

    assert rig.prompts(0) == ["on with it"]
    assert sorted(rig.prompts(2)) == ["again", "on with it", "one"]


async def test_a_message_of_an_extension_is_shown_as_its_renderer_makes_it_and_starts_a_run(tmp_path: Path) -> None:
    """The model reads the text, people read the rendering, and the run has one answer."""

    async def activate(api: ExtensionApi) -> None:
        api.register_renderer("note", lambda text, details: f"**{text}**!" if details["loud"] else text)

        async def run(arguments: str) -> None:
            await sends(api, arguments)

        api.register_command(ExtensionCommand(name="send", description="Sends.", run=run))

    provider = ScriptedProvider(answers("I see."))
    async with opened(tmp_path, provider, extensions=(extension(activate),)) as rig:
        chat = rig.chat()
        chat.says("/send look here")
        assert (await chat.answer()).text == "**look here**!"
        assert (await chat.answer()).text == "I see."
        await answered_once(rig)

    [message] = provider.requests[0].messages
    assert getattr(message, "content", "") == "look here"


async def test_a_message_during_a_run_joins_it(tmp_path: Path) -> None:
    """One run, one answer."""

    async def activate(api: ExtensionApi) -> None:
        async def once(event: MessageEnding) -> None:
            if isinstance(event.message, UserMessage):
                await sends(api, "by the way")

        api.on(MessageEnding, once)

    provider = ScriptedProvider(answers("both"))
    async with opened(tmp_path, provider, extensions=(extension(activate),)) as rig:
        chat = rig.chat()
        chat.says("hello")
        assert (await chat.answer()).text == "by the way"
        assert (await chat.answer()).text == "both"
        await answered_once(rig)

    assert [getattr(message, "content", "") for message in provider.requests[0].messages] == ["hello", "by the way"]


async def test_follow_ups_run_after_each_other_and_end(tmp_path: Path) -> None:
    """Sixteen in a row at most, then a person's word is waited for; each has its own answer."""

    async def activate(api: ExtensionApi) -> None:
        async def again(event: AgentSettled) -> None:
            counted.append(1)
            assert api.follow_up(f"n{len(counted)}", f"more {len(counted)}")

        api.on(AgentSettled, again)

    counted: list[int] = []
    provider = ScriptedProvider(*[answers(f"a{number}") for number in range(17)], answers("again"), *[answers("x")] * 16)
    async with opened(tmp_path, provider, extensions=(extension(activate),)) as rig:
        chat = rig.chat()
        chat.says("hello")
        assert [(await chat.answer()).text for _ in range(17)] == [f"a{number}" for number in range(17)]
        await rig.idle()
        assert len(provider.requests) == 17
        chat.says("go on")
        for _ in range(17):
            await chat.answer()
        await answered_once(rig)

    assert rig.prompts(17)[-1] == "go on"
    assert rig.prompts(18)[-1] == "more 17"


async def test_input_that_an_extension_swallows_is_answered_by_its_reply_or_by_nothing(tmp_path: Path) -> None:
    """And what it changes is what the model reads; a steering message too."""

    async def hears(event: InputReceived) -> None:
        if event.text == "ping":
            event.mark_handled("pong")
        elif event.text == "hush":
            event.mark_handled()
        else:
            event.text = event.text.upper()

    provider = ScriptedProvider(answers(call("t1", "work")), answers("done"))
    async with opened(tmp_path, provider, extensions=(listening(InputReceived, hears),)) as rig:
        chat = rig.chat()
        chat.says("ping")
        assert (await chat.answer()).text == "pong"
        chat.says("hush")
        chat.says("hello")
        assert (await chat.answer()).text == "done"
        await answered_once(rig)

    assert rig.prompts(0) == ["HELLO"]


async def test_a_gate_keeps_people_in_their_session(tmp_path: Path) -> None:
    """A refusal changes nothing: the session stays, the run goes on."""

    async def no(event: GateEvent) -> None:
        event.cancel("not now")

    async def activate(api: ExtensionApi) -> None:
        api.on(BeforeSessionSwitch, no)
        api.on(BeforeSessionDelete, no)

    provider = ScriptedProvider(hangs("I am"))
    async with opened(tmp_path, provider, extensions=(extension(activate),)) as rig:
        chat = rig.chat()
        chat.says("hello")
        await rig.asked(1)
        session = await rig.conversation().session()
        for act in (rig.conversation().moves.start_new(), rig.conversation().moves.delete(session.id)):
            with pytest.raises(UserMustAct, match="not now"):
                await act
        assert session.running
        assert (await rig.conversation().session()) is session
        await rig.conversation().stop()


async def test_a_session_hears_of_its_beginning_and_its_end(tmp_path: Path) -> None:
    """With the reason."""
    heard: list[str] = []

    async def activate(api: ExtensionApi) -> None:
        async def note(event: Any) -> None:
            heard.append(f"{event.name} {event.reason}")

        for event in (SessionStarted, SessionShutdown, SessionSwitched):
            api.on(event, note)

    async with opened(tmp_path, ScriptedProvider(), extensions=(extension(activate),)) as rig:
        first = (await rig.conversation().session()).id
        await rig.conversation().moves.start_new()
        await rig.conversation().moves.resume(first)
        await rig.conversation().take_up_extensions()
        await rig.conversation().moves.delete(first)

    assert heard == [
        "session_start startup",
        "session_start new",
        "session_shutdown switch",
        "session_switch new",
        "session_start resume",
        "session_shutdown switch",
        "session_switch resume",
        "session_shutdown reload",
        "session_start reload",
        "session_shutdown delete",
    ]


async def test_what_an_extension_wanted_is_done_after_a_crash_and_once(tmp_path: Path) -> None:
    """A prompt that was accepted, and a message whose run was cut."""
    provider = ScriptedProvider(hangs("half"))
    async with opened(tmp_path, provider, extensions=(acting(send=sends, go=prompts),)) as rig:
        rig.chat().says("/send look")
        await rig.asked(1)
        rig.chat().says("/go on")
        await eventually(lambda: rig.taken == 4)
        await asyncio.sleep(0)
    provider = ScriptedProvider(answers("seen"), answers("done"))
    async with opened(tmp_path, provider, extensions=(acting(send=sends, go=prompts),)) as rig:
        chat = rig.chat()
        texts = [(await chat.answer()).text for _ in range(2)]
        while texts[-1] != "done":
            texts.append((await chat.answer()).text)
        await answered_once(rig)

    assert texts[-2:] == ["seen", "done"]
    assert rig.prompts(1) == ["on"]


async def test_a_wish_for_a_session_that_is_left_is_dropped(tmp_path: Path) -> None:
    """It would be said into a conversation that it knows nothing of."""
    async with opened(tmp_path, ScriptedProvider()) as rig:
        wish = InboundMessage(
            key="extension:1",
            address=Address("loop", "1"),
            sender=Person(id="extension:one", name="one"),
            text="too late",
            sent_at=rig.clock.now(),
            kind="extension",
            session="left",
        )
        await rig.inbox.take_own(wish, owner=True)
        await rig.idle()

        assert await rig.inbox_states() == ["skipped"]


async def test_what_extensions_may_leave_waiting_is_bounded(tmp_path: Path) -> None:
    """An extension that asks without end is told to stop asking."""

    async def floods(api: ExtensionApi, arguments: str) -> None:
        for number in range(100):
            await api.prompt(f"{number}")

    async with opened(tmp_path, ScriptedProvider(hangs("I am")), extensions=(acting(go=floods),)) as rig:
        chat = rig.chat()
        chat.says("hello")
        await rig.asked(1)
        chat.says("/go")
        assert "32 prompts of extensions wait in this chat already" in (await chat.answer()).text
        await rig.conversation().park()


async def test_a_pin_is_in_the_next_request(tmp_path: Path) -> None:
    """From the chat into the system prompt."""
    provider = ScriptedProvider(answers("a"))
    async with opened(tmp_path, provider, extensions=(Pins().spec(),)) as rig:
        chat = rig.chat()
        chat.says("/pin be brief")
        assert (await chat.answer()).text == "Pinned as number 1."
        chat.says("hello")
        await chat.answer()

    assert provider.requests[0].system_prompt.endswith("- be brief")


async def test_menus_learn_the_commands_of_extensions(tmp_path: Path) -> None:
    """Once a session with them has been opened."""
    learned: list[ChatCommand] = []
    provider = ScriptedProvider(answers("a"))
    async with opened(tmp_path, provider, extensions=(acting(echo=echoes),), learn=learned.extend) as rig:
        chat = rig.chat()
        chat.says("hello")
        await chat.answer()

    assert "echo" in [command.name for command in learned]
