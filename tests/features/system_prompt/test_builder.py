"""What the model is told first."""

import logging
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from features.agent.testing import FunctionTool
from features.contracts.tools import Tool
from features.system_prompt import SystemPromptBuilder, SystemPromptFacts


async def prompt(workspace: Path, *names: str, builder: SystemPromptBuilder | None = None, **facts: object) -> str:
    given: dict[str, object] = {"date": date(2026, 1, 5), "time_zone": "Europe/Vienna", "chat": "A private chat on Telegram.", **facts}
    tools: Sequence[Tool] = [FunctionTool(name) for name in names]
    return await (builder or SystemPromptBuilder()).build(SystemPromptFacts(workspace=workspace, tools=tools, **given))  # type: ignore[arg-type]


async def test_the_same_facts_give_the_same_text(tmp_path: Path) -> None:
    """A service caches the beginning of what it is sent."""
    (tmp_path / "AGENTS.md").write_text("Be kind.")

    assert await prompt(tmp_path, "read", "bash") == await prompt(tmp_path, "read", "bash")


async def test_the_next_day_changes_nothing_but_the_end(tmp_path: Path) -> None:
    """The date comes last, and there is no time in it."""
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    today, tomorrow = await prompt(tmp_path, "read"), await prompt(tmp_path, "read", date=date(2026, 1, 6))

    assert today.splitlines()[-1].startswith("Today is Monday, 2026-01-05, in the time zone Europe/Vienna")
    assert today.splitlines()[:-1] == tomorrow.splitlines()[:-1]


async def test_everything_stands_in_order(tmp_path: Path) -> None:
    """Who it is, what it can, how it works, what this chat wants, where it is."""
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    (tmp_path / "MEMORY.md").write_text("Ada likes tea.")
    text = await prompt(tmp_path, "read", extra="The host says hello.")
    parts = ["Pumice", "- read: Does read", "# How to work", "Markdown", "The host says hello.", "Be kind.", "Ada likes tea.",
             "A private chat on Telegram.", f"Working directory: {tmp_path}", "2026-01-05"]  # fmt: skip

    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)


async def test_instructions_and_memory_of_the_host_stand_before_the_chats_own(tmp_path: Path) -> None:
    """The nearer word comes later; what is not switched on is not there."""
    chat, host = tmp_path / "chat", tmp_path / "host"
    for folder in (chat, host):
        folder.mkdir()
        (folder / "AGENTS.md").write_text(f"Rules of the {folder.name}.")
        (folder / "MEMORY.md").write_text(f"- noted in the {folder.name}\n")
    text = await prompt(chat, host_instructions=host / "AGENTS.md", host_memory=host / "MEMORY.md", skills="<available_skills>")
    parts = ["Rules of the host.", "Rules of the chat.", "# Skills\n\n<available_skills>", "noted in the host", "noted in the chat"]

    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    assert "of the host" not in await prompt(chat)
    assert "# Skills" not in await prompt(chat)


async def test_a_memory_that_is_too_long_says_so(tmp_path: Path) -> None:
    """The beginning is shown, and the model knows that there is more."""
    chat, host = tmp_path / "chat", tmp_path / "host"
    for folder in (chat, host):
        folder.mkdir()
        (folder / "MEMORY.md").write_text("- x\n" * 5000)
    text = await prompt(chat, host_memory=host / "MEMORY.md")

    assert "[It has 20000 bytes; only its beginning stands here. Tell the person that it has to be shortened.]" in text
    assert "[`MEMORY.md` has 20000 bytes; only its beginning stands here. Read the file for the rest.]" in text


async def test_a_host_may_say_who_the_model_is(tmp_path: Path) -> None:
    """The rest follows all the same."""
    text = await prompt(tmp_path, builder=SystemPromptBuilder("You are Ada."))

    assert text.startswith("You are Ada.\n\n# Tools")


async def test_rules_go_with_the_tools(tmp_path: Path) -> None:
    """No word about tools that are not there."""
    all_of_them = await prompt(tmp_path, "bash", "grep", "read", "edit", "write", "send")
    bash_alone = await prompt(tmp_path, "bash")
    nothing = await prompt(tmp_path)

    assert "Look around with grep before" in all_of_them
    assert "through `send`" in all_of_them
    assert "Use bash for looking around" in bash_alone
    assert "edit" not in bash_alone
    assert "`send`" not in bash_alone
    assert "no tools" in nothing
    assert "bash" not in nothing


async def test_a_rule_that_two_tools_share_stands_once(tmp_path: Path) -> None:
    """Tools bring rules of their own; blank ones and repetitions are left out."""
    first, second = FunctionTool("a"), FunctionTool("b")
    first.prompt_guidelines = ("Ask before you pay.", " ")
    second.prompt_guidelines = (" Ask before\nyou pay.", "Be quick.")
    facts = SystemPromptFacts(workspace=tmp_path, tools=[first, second], date=date(2026, 1, 5), time_zone="UTC", chat="")
    text = await SystemPromptBuilder().build(facts)

    assert text.count("- Ask before you pay.") == 1
    assert "- Be quick." in text
    assert "- \n" not in text


async def test_a_tool_without_a_snippet_is_described(tmp_path: Path) -> None:
    """On one line."""
    tool = FunctionTool("a")
    tool.prompt_snippet = ""
    facts = SystemPromptFacts(workspace=tmp_path, tools=[tool], date=date(2026, 1, 5), time_zone="UTC", chat="")

    assert "- a: Does a." in await SystemPromptBuilder().build(facts)


async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """The person edits AGENTS.md, and the next run knows; also when it appears or goes."""
    builder = SystemPromptBuilder()
    path = tmp_path / "AGENTS.md"
    seen = [await prompt(tmp_path, builder=builder)]
    for text in ("Be kind.", "Be brief."):
        path.write_text(text)
        seen.append(await prompt(tmp_path, builder=builder))
    path.unlink()
    seen.append(await prompt(tmp_path, builder=builder))

    assert ["Be kind." in text for text in seen] == [False, True, False, False]
    assert ["Be brief." in text for text in seen] == [False, False, True, False]


async def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    """A run costs one stat a file."""
    builder = SystemPromptBuilder()
    path = tmp_path / "AGENTS.md"
    path.write_text("Be kind.")
    await prompt(tmp_path, builder=builder)
    remembered = builder._files._known[path]
    await prompt(tmp_path, builder=builder)

    assert builder._files._known[path] is remembered


async def test_long_files_are_cut_and_it_is_said(tmp_path: Path) -> None:
    """A memory of a megabyte would fill every request; the cut falls between characters."""
    (tmp_path / "MEMORY.md").write_text("ü" * 20_000)
    (tmp_path / "AGENTS.md").write_text("a" * 64 * 1024)
    text = await prompt(tmp_path)

    assert text.count("ü") == 8 * 1024
    assert "`MEMORY.md` has 40000 bytes; only its beginning stands here." in text
    assert "`AGENTS.md` has" not in text


async def test_a_link_is_not_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Who works in the workspace must not get the host to read what lies outside."""
    secret = tmp_path / "outside"
    secret.write_text("other people's secrets")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "MEMORY.md").symlink_to(secret)
    with caplog.at_level(logging.WARNING):
        text = await prompt(workspace)

    assert "other people's secrets" not in text
    assert caplog.messages == ["workspace file left out of the prompt"]


@pytest.mark.parametrize("kind", ["pipe", "folder", "binary", "empty"])
async def test_odd_files_do_no_harm(tmp_path: Path, kind: str) -> None:
    """A pipe would block a careless reader for ever."""
    path = tmp_path / "AGENTS.md"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "binary":
            path.write_bytes(b"\x00\xff\xfe\x00text")
        case _:
            path.write_text(" \n")
    text = await prompt(tmp_path)

    assert ("AGENTS.md" in text) is (kind == "binary")
    assert "\x00" not in text


async def test_memory_of_files_is_bounded(tmp_path: Path) -> None:
    """A host has many places."""
    builder = SystemPromptBuilder()
    for number in range(300):
        await prompt(tmp_path / str(number), builder=builder)

    assert len(builder._files._known) == 256
