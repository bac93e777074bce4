"""A command that needs approval, on every way in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.cli.connection import HostedChat
from bot.http.client import HostClient
from channels.console import one_answer
from features.contracts.chat import Address
from tests.e2e.rig import configured, running, with_telegram
from tests.e2e.test_host import OWNER, until
from tests.servers.telegram import Shown, TelegramServer, User, serve_telegram

ASK = "[approvals]\nbash = 'ask'\nallow_commands = ['ls *']\n"
GUEST = User(1002, "Eve")


async def question(telegram: TelegramServer, chat: int = OWNER) -> Shown:
    await telegram.until(lambda: any(shown.buttons for shown in telegram.messages(chat)))
    return next(shown for shown in telegram.messages(chat) if shown.buttons)


@asynccontextmanager
async def listening(client: HostClient, address: str) -> AsyncIterator[list[tuple[str, dict[str, object]]]]:
    """What a page of the chat is told."""
    heard: list[tuple[str, dict[str, object]]] = []

    async def listen() -> None:
        async for event in client.events(Address.parse(address)):
            heard.append((event.name, event.data))  # noqa: PERF401 - it never ends

    task = asyncio.ensure_future(listen())
    yield heard
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_in_telegram_a_button_lets_the_command_run(tmp_path: Path) -> None:
    """The question is edited into what became of it, and the next press of the same button says that it is over."""
    async with serve_telegram() as telegram, running(configured(tmp_path, with_telegram(telegram, more=ASK))):
        telegram.say(OWNER, "run: ls")
        await telegram.until(lambda: telegram.texts(OWNER))
        assert not telegram.messages(OWNER)[0].buttons, "what is allowed for all is not asked about"

        telegram.say(OWNER, "run: echo $((20+3)) > made; cat made")
        asked = await question(telegram)
        assert asked.styled("pre") == ["echo $((20+3)) > made; cat made"]
        assert [button["text"] for row in asked.buttons for button in row] == ["Allow once", "Deny"]
        data = asked.buttons[0][0]["callback_data"]
        telegram.press(OWNER, asked.id, "Allow once")
        await telegram.until(lambda: "23" in telegram.texts(OWNER)[-1])
        assert (tmp_path / "data" / "workspaces" / f"telegram-{OWNER}" / "made").read_text() == "23\n"
        await telegram.until(lambda: not asked.buttons)
        assert asked.text.endswith("Answered: Allow once")

        telegram.press(OWNER, asked.id, "", data=data)
        await telegram.until(lambda: telegram.texts(OWNER)[-1] == "This is over. Answered: Allow once")


async def test_after_a_restart_the_question_says_that_it_is_over(tmp_path: Path) -> None:
    """Its buttons are gone, the old press runs nothing, and the run goes on without."""
    async with serve_telegram() as telegram:
        config = configured(tmp_path, with_telegram(telegram, more=ASK))
        async with running(config):
            telegram.say(OWNER, "run: echo yes > made")
            old = await question(telegram)
            data = old.buttons[0][0]["callback_data"]
        async with running(config):
            await telegram.until(lambda: not old.buttons)
            assert "I was restarted before this was answered" in old.text
            telegram.press(OWNER, old.id, "", data=data)
            await telegram.until(lambda: any(text.startswith("This is over. I was restarted") for text in telegram.texts(OWNER)))
            await telegram.until(lambda: len(telegram.texts(OWNER)) == 3)
    assert not (tmp_path / "data" / "workspaces" / f"telegram-{OWNER}" / "made").exists()


async def test_always_is_for_owners_and_can_be_taken_back_in_the_chat(tmp_path: Path) -> None:
    """A guest may allow a command once, the owner for good; /approvals takes that back."""
    async with serve_telegram() as telegram, running(configured(tmp_path, with_telegram(telegram, more=ASK))):
        telegram.say(1002, "run: echo hello", user=GUEST)
        asked = await question(telegram, 1002)
        telegram.press(1002, asked.id, "Allow always for this chat", user=GUEST)
        await telegram.until(lambda: telegram.texts(1002)[-1] == "Only an owner of this host may choose that.")
        telegram.press(1002, asked.id, "Allow once", user=GUEST)
        await telegram.until(lambda: telegram.texts(1002)[-1].startswith("I ran echo hello"))

        telegram.say(OWNER, "run: echo hello")
        asked = await question(telegram)
        telegram.press(OWNER, asked.id, "Allow always for this chat")
        await telegram.until(lambda: telegram.texts(OWNER)[-1].startswith("I ran echo hello"))
        telegram.say(OWNER, "run: echo  'hello'")
        await telegram.until(lambda: telegram.texts(OWNER)[-1].startswith("I ran echo  'hello'"))
        telegram.say(OWNER, "/approvals")
        await telegram.until(lambda: telegram.messages(OWNER)[-1].buttons)
        telegram.press(OWNER, telegram.messages(OWNER)[-1].id, "Remove: echo hello")
        await telegram.until(lambda: telegram.texts(OWNER)[-1].startswith("Taken back"))


async def test_on_the_page_and_over_the_api(tmp_path: Path) -> None:
    """The question is a message with buttons, its end a change of that message, and what goes on is a line."""
    async with running(configured(tmp_path, ASK)) as (_, client), listening(client, "web:main") as heard:
        await until(lambda: heard)
        await client.post("/api/chats/web:main/messages", {"text": "run: echo hi > made"})
        await until(lambda: any(name == "delivered" and data["buttons"] for name, data in heard))
        (asked,) = [data for name, data in heard if name == "delivered"]
        buttons = {button["label"]: button["command"] for row in asked["buttons"] for button in row}  # type: ignore[attr-defined]
        assert set(buttons) == {"Allow once", "Deny"}
        assert any(name == "status" and str(data["line"]).endswith("· waits for an answer") for name, data in heard)
        await client.post("/api/chats/web:main/messages", {"text": buttons["Allow once"]})
        await until(lambda: any(name == "agent_settled" for name, _ in heard))

        await until(lambda: any(name == "changed" for name, _ in heard))
        (changed,) = [data for name, data in heard if name == "changed"]
        assert (changed["id"], changed["buttons"]) == (asked["id"], [])
        assert str(changed["text"]).endswith("Answered: Allow once")
        assert (tmp_path / "data" / "workspaces" / "web-main" / "made").exists()
        assert [line["text"] for line in await client.get("/api/chats/web:main/messages") if line["id"] == asked["id"]] == [changed["text"]]


async def test_a_single_question_on_the_command_line_is_not_asked_back(tmp_path: Path) -> None:
    """`pumice chat MESSAGE` has nobody to press anything: the answer is no, at once, and the run goes on."""
    async with running(configured(tmp_path, ASK)) as (_, client):
        chat = HostedChat(client, Address("console", "main"), attended=False)
        async with asyncio.timeout(20):
            answer = await one_answer(chat, "run: echo hi > made")
            allowed = await one_answer(chat, "run: ls -a")

        assert not (tmp_path / "data" / "workspaces" / "console-main" / "made").exists()
        assert "nobody is here to give it" in answer.text
        assert "AGENTS.md" in allowed.text
        assert [line["buttons"] for line in await client.get("/api/chats/console:main/messages") if line["role"] == "assistant"] == [[], []]


async def test_in_a_terminal_the_answer_is_typed(tmp_path: Path) -> None:
    """By a word; nothing needs to be pressed."""
    async with running(configured(tmp_path, ASK)) as (_, client), listening(client, "console:main") as heard:
        await until(lambda: heard)
        chat = HostedChat(client, Address("console", "main"))
        await chat.post("run: echo hi > made")
        await until(lambda: any(name == "delivered" for name, _ in heard))
        await chat.post("yes")
        await until(lambda: any(name == "agent_settled" for name, _ in heard))

        assert (tmp_path / "data" / "workspaces" / "console-main" / "made").exists()


async def test_a_stopped_run_is_not_waited_for(tmp_path: Path) -> None:
    """/stop while a question is open: it is over, and nothing has run."""
    async with serve_telegram() as telegram, running(configured(tmp_path, with_telegram(telegram, more=ASK))):
        telegram.say(OWNER, "run: echo hi > made")
        asked = await question(telegram)
        telegram.say(OWNER, "/stop")
        await telegram.until(lambda: not asked.buttons)

        assert asked.text.endswith("Nobody waits for this any more.")
        assert not (tmp_path / "data" / "workspaces" / f"telegram-{OWNER}" / "made").exists()


async def test_a_denied_tool_is_not_there(tmp_path: Path) -> None:
    """Not asked about, not run."""
    async with running(configured(tmp_path, "[approvals]\nbash = 'deny'\n")) as (_, client):
        answer = await one_answer(HostedChat(client, Address("console", "main")), "run: echo hi > made")

        assert not (tmp_path / "data" / "workspaces" / "console-main" / "made").exists()
        assert "no tool that runs commands" in answer.text
