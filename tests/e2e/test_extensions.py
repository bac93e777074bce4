"""Extensions of a whole host: found, trusted, switched, loaded again, through a real chat."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.clock import SystemClock
from bot.host import Host
from bot.testing import LoopbackChannel, LoopbackChat, Shown
from features.contracts.chat import Person
from tests.e2e.rig import configured, running

GOOD = "async def activate(api):\n    pass\n"
GUEST = Person(id="telegram:2", name="Bert")
CONFIG = """
processes.sandbox = "none"
[access]
owners = ["telegram:1"]
allow = ["telegram:2"]
groups = ["telegram:-100"]
"""


@asynccontextmanager
async def host(folder: Path, text: str = "") -> AsyncIterator[tuple[Host, LoopbackChannel]]:
    loop = LoopbackChannel("telegram", clock=SystemClock())
    async with running(configured(folder, CONFIG + text), channels=[loop]) as (working, _):
        yield working, loop


def own_folder(working: Host, name: str) -> Path:
    folder = working.config.host.data_dir / "workspaces" / name / ".pumice" / "extensions"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def says(chat: LoopbackChat, text: str, sender: Person | None = None) -> Shown:
    """The answer to it."""
    chat.says(text, sender=sender)
    return await chat.answer()


async def presses(chat: LoopbackChat, shown: Shown, command: str) -> Shown:
    (button,) = [one for row in shown.buttons for one in row if one.startswith(command)]
    chat.presses(button)
    return await chat.answer()


async def test_a_chats_own_extension_runs_once_an_owner_trusts_it(tmp_path: Path) -> None:
    """The chat is told of it; the decision outlives a restart, and ends with the next change of the file."""
    async with host(tmp_path) as (working, loop):
        (own_folder(working, "telegram-1") / "mine.py").write_text(GOOD)
        chat = loop.chat("1")
        chat.says("hello")
        said = {(await chat.answer()).text for _ in range(2)}
        assert "This extension in this chat's folder does not run before an owner trusts what it holds now: `mine`." in said

        listed = await says(chat, "/extensions")
        assert "- `mine` untrusted: waits for an owner" in listed.text
        trusted = await presses(chat, listed, "/extensions trust")
        assert trusted.text.startswith("`mine` is trusted as it is now; if it changes, I ask again.\n\n- `mine` active")
    async with host(tmp_path) as (working, loop):
        chat = loop.chat("1")
        assert "- `mine` active" in (await says(chat, "/extensions")).text
        (own_folder(working, "telegram-1") / "mine.py").write_text(GOOD + "# changed\n")

        assert "- `mine` untrusted: waits for an owner" in (await says(chat, "/extensions")).text


async def test_a_guest_can_look_and_not_decide(tmp_path: Path) -> None:
    """Whoever may talk here may not let code run here."""
    async with host(tmp_path) as (working, loop):
        (own_folder(working, "telegram-1") / "mine.py").write_text(GOOD)
        chat = loop.chat("1")
        listed = await says(chat, "/extensions")
        assert (await says(chat, "/extensions", GUEST)).buttons == ()
        (trust,) = [one for row in listed.buttons for one in row if "trust" in one]

        assert (await says(chat, trust, GUEST)).text == "Only an owner may do that."
        assert "untrusted" in (await says(chat, "/extensions")).text


async def test_without_a_sandbox_a_groups_own_do_not_run(tmp_path: Path) -> None:
    """What they start would not be confined, and others than owners talk there."""
    async with host(tmp_path) as (working, loop):
        (own_folder(working, "telegram--100") / "mine.py").write_text(GOOD)
        chat = loop.chat("-100", group=True)
        listed = await says(chat, "/extensions")

        assert "- `mine` untrusted: without a sandbox on this machine" in listed.text
        assert not any("trust" in button for row in listed.buttons for button in row)


async def test_owners_hear_at_the_start_what_is_broken_and_mend_it_without_a_restart(tmp_path: Path) -> None:
    """The host works meanwhile."""
    (tmp_path / "bad.py").write_text("def def")
    (tmp_path / "fine.py").write_text(GOOD)
    async with host(tmp_path, "[extensions]\npaths = ['bad.py', 'fine.py']\n") as (_, loop):
        chat = loop.chat("1")
        told = (await chat.answer()).text
        assert "without these extensions" in told
        assert "syntax error in bad.py, line 1" in told
        listed = (await says(chat, "/extensions")).text
        assert "- `bad` failed: syntax error in bad.py, line 1" in listed
        assert "- `fine` active" in listed

        (tmp_path / "bad.py").write_text(GOOD)
        assert (await says(chat, "/reload")).text.startswith("Loaded again.\n\n- `bad` active")
        (tmp_path / "bad.py").write_text("def def")
        assert "- `bad` active (its new version fails, so the one before is at work: " in (await says(chat, "/extensions reload")).text


async def test_an_owner_switches_one_off_in_a_chat(tmp_path: Path) -> None:
    """There alone, and across a restart."""
    (tmp_path / "fine.py").write_text(GOOD)
    for shown in ("active", "disabled in this chat"):
        async with host(tmp_path, "[extensions]\npaths = ['fine.py']\n") as (_, loop):
            listed = await says(loop.chat("1"), "/extensions")
            assert f"- `fine` {shown}" in listed.text
            if shown == "active":
                assert "- `fine` disabled in this chat" in (await presses(loop.chat("1"), listed, "/extensions disable")).text
            assert "- `fine` active" in (await says(loop.chat("3"), "/extensions", Person(id="telegram:1", name="Anna"))).text


@pytest.mark.parametrize("name", ["approvals", "hooks", "pins"])
async def test_nobody_takes_a_name_of_the_hosts_own(tmp_path: Path, name: str) -> None:
    """An extension that passes for the approvals could let anything through."""
    (tmp_path / f"{name}.py").write_text(GOOD)
    async with host(tmp_path, f"[extensions]\npaths = ['{name}.py']\n") as (_, loop):
        assert "its name is that of the host itself" in (await loop.chat("1").answer()).text
