"""/skills."""

from pathlib import Path

from tests.bot.chat_commands.conftest import GUEST, Chat


def put(folder: Path, name: str, description: str = "d", body: str = "body") -> Path:
    path = folder / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")
    return path


async def test_without_any_it_says_where_they_go(chat: Chat) -> None:
    """The first question of a newcomer."""
    assert "Put a folder with a `SKILL.md`" in await chat.says("/skills")


async def test_all_kinds_are_listed(chat: Chat, tmp_path: Path) -> None:
    """What can be said, what waits, and what is wrong."""
    place = tmp_path / "workspaces" / "telegram-1"
    put(tmp_path, "hosts", "Of the *host*")
    put(place, "mine").with_name("run.sh").write_text("x")
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "review.md").write_text("---\nargument-hint: '[file]'\n---\nReview")
    (tmp_path / "prompts" / "new.md").write_text("x")
    text = await chat.says("/skills")

    assert "`hosts` Of the \\*host\\*" in text
    assert "`review` \\[file\\] Review" in text
    assert "`mine`" in text
    assert "Its files: `SKILL.md`, `run.sh`" in text
    assert "/new is a command of the host" in text
    assert list(chat.buttons) == ["Show mine", "Allow", "No"]


async def test_consent_is_given_and_taken_back(chat: Chat, tmp_path: Path) -> None:
    """By whoever talks in a private chat."""
    put(tmp_path / "workspaces" / "telegram-1", "mine", body="````\nfence")
    await chat.says("/skills")
    buttons = chat.buttons
    assert "`````\n````\nfence\n`````" in await chat.says(buttons["Show mine"])
    assert "Try `/skill:mine`" in await chat.says(buttons["Allow"], GUEST)
    assert "`mine` d (of this chat)" in await chat.says("/skills")
    assert "I will not use `mine`" in await chat.says(buttons["No"])
    assert "**Not wanted:** `mine`" in await chat.says("/skills")
    await chat.says(chat.buttons["Allow mine"])
    assert "(of this chat)" in await chat.says("/skills")


async def test_in_a_group_owners_alone_decide(chat: Chat, tmp_path: Path) -> None:
    """Others may look."""
    put(tmp_path / "workspaces" / "telegram-1", "mine")
    await chat.says("/skills", GUEST, group=True)
    buttons = chat.buttons

    assert "only an owner" in await chat.says(buttons["Allow"], GUEST, group=True)
    assert "body" in await chat.says(buttons["Show mine"], GUEST, group=True)
    assert "may be used" in await chat.says(buttons["Allow"], group=True)


async def test_what_was_mistyped_is_answered_with_the_way_out(chat: Chat, tmp_path: Path) -> None:
    """Also a decision about nothing in particular."""
    put(tmp_path / "workspaces" / "telegram-1", "mine")

    assert "Did you mean `/skills allow`?" in await chat.says("/skills alow mine")
    assert "Which one?" in await chat.says("/skills allow")
    assert "Did you mean `mine`?" in await chat.says("/skills show mne")
    assert "has changed since you were asked" in await chat.says("/skills allow mine")
    assert "has changed since you were asked" in await chat.says("/skills allow skill mine ffff")
    assert "no template" in await chat.says("/skills allow template mine x")
