"""A Telegram group becomes a supergroup: another id for the same people and the same talk."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.access import Access
from bot.place_moves import PlaceMoves
from features.contracts.chat import Address
from tests.e2e.rig import configured, running, with_anthropic, with_telegram
from tests.servers.anthropic import AnthropicServer
from tests.servers.script import Reply
from tests.servers.telegram import TelegramServer, User, serve_telegram
from workspaces import Workspaces

OLD, NEW, ANNA = -77, -1001234567, User(1001, "Anna")
MENTION = "@pumice_bot"


def remembering(body: dict[str, Any]) -> Reply:
    """Says what it was told before, so that one can see what it knows."""
    said = [str(each["content"]) for each in body["messages"] if each["role"] == "user"]
    return Reply(text=f"{len(said)} said, blue: {'blue' in said[0]}")


def group(telegram: TelegramServer, model: AnthropicServer) -> str:
    return with_telegram(telegram).replace("[channels", f'groups = ["telegram:{OLD}"]\n[channels', 1) + with_anthropic(model)


async def until_said(telegram: TelegramServer, chat: int, part: str) -> str:
    await telegram.until(lambda: any(part in text for text in telegram.texts(chat)))
    return next(text for text in telegram.texts(chat) if part in text)


async def test_everything_follows_the_group(tmp_path: Path) -> None:
    """The talk, the settings, the jobs, the files and the admission; also after a restart."""
    async with serve_telegram() as telegram, AnthropicServer(respond=remembering) as model:
        config = configured(tmp_path, group(telegram, model))
        async with running(config) as (host, client):
            telegram.say(OLD, f"{MENTION} my colour is blue", user=ANNA)
            await until_said(telegram, OLD, "1 said, blue: True")
            telegram.say(OLD, "/busy collect", user=ANNA)
            await until_said(telegram, OLD, "collect")
            telegram.say(OLD, "/schedule every day at 9 look around", user=ANNA)
            await until_said(telegram, OLD, "look around")
            folder = config.host.data_dir / "workspaces" / "telegram--77"
            (folder / "notes.txt").write_text("ours")
            telegram.upgrade(OLD, NEW, user=ANNA)
            telegram.say(NEW, f"{MENTION} and now?", user=ANNA)
            await until_said(telegram, NEW, "2 said, blue: True")
            telegram.say(NEW, "/jobs", user=ANNA)
            await until_said(telegram, NEW, "look around")

            jobs = await client.get("/api/jobs")
            assert [job["chat"] for job in jobs] == [f"telegram:{NEW}"]
            assert (await host._settings.get(Address("telegram", str(NEW)))).busy == "collect"
            assert (folder.parent / f"telegram-{NEW}" / "notes.txt").read_text() == "ours"
            assert [chat["address"] for chat in await client.get("/api/chats")] == [f"telegram:{NEW}"]
        async with running(config):
            telegram.say(NEW, f"{MENTION} still there?", user=ANNA)
            await until_said(telegram, NEW, "3 said, blue: True")

    assert not [text for text in telegram.texts(NEW) if "not admitted" in text]


async def test_an_answer_that_is_on_its_way_follows_too(tmp_path: Path) -> None:
    """The bot hears of the move only by the refusal of what it sends; nothing is lost and nothing doubled."""
    async with (
        serve_telegram() as telegram,
        AnthropicServer(respond=lambda body: Reply(text="late words", delay_s=0.3)) as model,
        running(configured(tmp_path, group(telegram, model))),
    ):
        telegram.say(OLD, f"{MENTION} take your time", user=ANNA)
        await telegram.until(lambda: telegram.called("sendChatAction", chat=OLD))
        telegram.world.messages[NEW] = {}
        telegram.upgrade(OLD, NEW, told=False)
        await until_said(telegram, NEW, "late words")
        telegram.say(NEW, f"{MENTION} once more", user=ANNA)
        await telegram.until(lambda: len(telegram.texts(NEW)) == 2)

    assert telegram.texts(NEW) == ["late words", "late words"]
    assert telegram.texts(OLD) == []


async def test_a_run_that_goes_on_during_the_move_answers_in_the_new_group(tmp_path: Path) -> None:
    """Parked and taken up again: the question is asked once more of the model and answered once."""
    async with (
        serve_telegram() as telegram,
        AnthropicServer(respond=lambda body: Reply(text="slow words", delay_s=0.4)) as model,
        running(configured(tmp_path, group(telegram, model))),
    ):
        telegram.say(OLD, f"{MENTION} think", user=ANNA)
        await telegram.until(lambda: telegram.called("sendChatAction", chat=OLD))
        telegram.upgrade(OLD, NEW, user=ANNA)
        await until_said(telegram, NEW, "slow words")

    assert [text for text in telegram.texts(NEW) if "slow words" in text] == ["slow words"]


class Died(Exception):
    """Stands for the end of the process at that instant."""


Steps = {
    "before the rows": (Access, "move_place"),
    "before the folder": (Workspaces, "move"),
    "before it is remembered": (PlaceMoves, "_remember"),
}


@pytest.mark.parametrize("step", Steps)
async def test_a_move_that_was_cut_is_finished_at_the_next_start(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the host ends, the group goes on as one."""
    died = asyncio.Event()
    loop = asyncio.get_running_loop()

    def dies(self: object, old: Address, new: Address) -> None:
        loop.call_soon_threadsafe(died.set)
        raise Died

    async with serve_telegram() as telegram, AnthropicServer(respond=remembering) as model:
        config = configured(tmp_path, group(telegram, model))
        async with running(config):
            telegram.say(OLD, f"{MENTION} my colour is blue", user=ANNA)
            await until_said(telegram, OLD, "1 said")
            with monkeypatch.context() as patch:
                patch.setattr(*Steps[step], dies)
                telegram.upgrade(OLD, NEW, user=ANNA)
                telegram.say(NEW, f"{MENTION} and now?", user=ANNA)
                await asyncio.wait_for(died.wait(), 10)
        async with running(config):
            await until_said(telegram, NEW, "2 said, blue: True")

    assert (config.host.data_dir / "workspaces" / f"telegram-{NEW}" / "AGENTS.md").exists()
