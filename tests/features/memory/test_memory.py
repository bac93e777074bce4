"""Notes in real files."""

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.contracts.chat import Address
from features.contracts.errors import ModelMustAct, UserMustAct
from features.contracts.memory import MEMORY_BYTES, LoggedText, LogPage
from features.contracts.messages import TextBlock
from features.contracts.tools import Tool, ToolContext, ToolInvocation
from features.memory import Memory, Scope
from features.memory.notes import find_notes, with_note, without

PLACE = Address("telegram", "1")
OTHER = Address("telegram", "2")
GROUP = Address("telegram", "-5")


class NoLog:
    async def search(
        self,
        place: str,
        words: Sequence[str],
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        before: str | None = None,
        limit: int,
    ) -> LogPage:
        return LogPage(messages=(), more_before=None)

    async def message(self, place: str, message_id: str) -> LoggedText | None:
        return None


class Rig:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.memory = Memory(NoLog(), folder=self.folder, host_file=root / "MEMORY.md", is_owners=lambda place: place == PLACE)

    def folder(self, place: Address) -> Path:
        folder = self.root / place.chat
        (folder / ".pumice").mkdir(parents=True, exist_ok=True)
        return folder

    def file(self, place: Address = PLACE) -> Path:
        return self.folder(place) / "MEMORY.md"

    def tool(self, place: Address = PLACE) -> Tool:
        return self.memory.tools(place)[0]

    async def call(self, place: Address = PLACE, /, **arguments: Any) -> str:
        context = ToolContext(address=str(place), session_id="s", workspace=self.folder(place), scratch=self.root)
        result = await self.tool(place).run(ToolInvocation(id="c", arguments=arguments, context=context, report=lambda text: None))
        (block,) = result.content
        assert isinstance(block, TextBlock)
        return block.text


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def test_a_note_is_added_changed_and_removed(rig: Rig) -> None:
    """What stands around the list stays as somebody wrote it."""
    rig.file().write_text("# Memory\n\nOur words.\n\n- old note\n  with a second line\n\n## More\n")
    assert await rig.call(action="add", text="likes  tea\n") == "Noted."
    assert await rig.call(action="add", text="LIKES tea") == "That is noted already."
    assert await rig.call(action="replace", old="second line", text="new note") == "Replaced: old note with a second line"
    assert rig.file().read_text() == "# Memory\n\nOur words.\n\n- new note\n\n## More\n\n- likes tea\n"
    assert "likes tea" in await rig.call(action="read")
    assert "of 16384 bytes" in await rig.call(action="read")
    assert await rig.call(action="remove", old="LIKES") == "Removed: likes tea"
    assert [path.name for path in rig.folder(PLACE).iterdir() if path.name != ".pumice"] == ["MEMORY.md"]
    assert list((rig.folder(PLACE) / ".pumice").iterdir()) == []


async def test_the_first_note_makes_the_file(rig: Rig) -> None:
    """For the host's user alone."""
    assert "nothing noted" in await rig.call(action="read")
    await rig.call(action="add", text="first")

    assert rig.file().read_text() == "# Memory\n\n- first\n"
    assert rig.file().stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"action": "add"}, "add needs text"),
        ({"action": "add", "text": " "}, "add needs text"),
        ({"action": "replace", "text": "x"}, "replace needs old"),
        ({"action": "remove"}, "remove needs old"),
        ({"action": "remove", "old": "nothing like it"}, "No note says"),
        ({"action": "remove", "old": "tea"}, "2 notes say"),
        ({"action": "add", "text": "x" * 1001}, "at most 1000 characters"),
        ({"action": "add", "text": "x", "scope": "everywhere"}, None),
    ],
)
async def test_what_the_model_did_wrong_is_said(rig: Rig, arguments: dict[str, Any], said: str | None) -> None:
    """With the way out, and without a change."""
    rig.file().write_text("- likes tea\n- green tea\n")
    before = rig.file().read_text()
    if said is None:
        assert await rig.call(**arguments) == "Noted."
    else:
        with pytest.raises(ModelMustAct, match=said):
            await rig.call(**arguments)
    assert rig.file().read_text() == before


async def test_an_exact_note_is_meant_though_others_hold_its_words(rig: Rig) -> None:
    """Else it could never be removed."""
    rig.file().write_text("- tea\n- green tea\n")
    await rig.call(action="remove", old="tea")

    assert rig.file().read_text() == "- green tea\n"


async def test_a_full_memory_takes_no_more_and_can_be_shortened(rig: Rig) -> None:
    """What the prompt does not show would be forgotten without a word."""
    rig.file().write_text("".join(f"- {number} {'x' * 100}\n" for number in range(170)))
    assert rig.file().stat().st_size > MEMORY_BYTES
    with pytest.raises(ModelMustAct, match=f"at most {MEMORY_BYTES} are read"):
        await rig.call(action="add", text="one more")
    await rig.call(action="replace", old="160 x", text="short")
    await rig.call(action="remove", old="161 x")

    assert "161 x" not in rig.file().read_text()


async def test_notes_never_cross_to_another_place(rig: Rig) -> None:
    """Each has its own file, and a tool is bound to one."""
    await rig.call(PLACE, action="add", text="mine")

    assert "mine" not in await rig.call(OTHER, action="read")
    assert not rig.file(OTHER).exists()


async def test_what_all_chats_share_is_for_owners_places(rig: Rig) -> None:
    """Neither the tool nor the command reaches it elsewhere."""
    await rig.call(PLACE, action="add", text="for all", scope="everywhere")
    assert (rig.root / "MEMORY.md").read_text() == "# Memory\n\n- for all\n"
    assert "scope" in rig.tool(PLACE).spec.parameters["properties"]
    assert "for all" in await rig.call(PLACE, action="read", scope="everywhere")

    for place in (OTHER, GROUP):
        assert "scope" not in rig.tool(place).spec.parameters["properties"]
        assert rig.memory.host_file(place) is None
        with pytest.raises(ModelMustAct, match="memory for all chats"):
            await rig.call(place, action="read", scope="everywhere")


async def test_it_can_be_switched_off_for_all(tmp_path: Path) -> None:
    """It is off unless somebody wants it."""
    memory = Memory(NoLog(), folder=lambda place: tmp_path, host_file=None, is_owners=lambda place: True)

    assert memory.host_file(PLACE) is None
    with pytest.raises(UserMustAct, match=r"memory\.host_wide"):
        await memory.view(PLACE, "everywhere")


async def test_changes_at_the_same_time_are_all_kept(rig: Rig) -> None:
    """Topics of one group note things at once."""
    await asyncio.gather(*(rig.call(action="add", text=f"note {number}") for number in range(40)))

    assert sorted(note.text for note in find_notes(rig.file().read_text())) == sorted(f"note {number}" for number in range(40))


async def test_what_somebody_else_writes_meanwhile_is_not_lost(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person has the file open in an editor and saves it between our reading and our writing."""
    rig.file().write_text("- a\n")
    flush, edits = os.fsync, iter(["- a\n- from outside\n"])

    def edited_meanwhile(descriptor: int) -> None:
        flush(descriptor)
        if (text := next(edits, None)) is not None:
            rig.file().write_text(text)

    monkeypatch.setattr(os, "fsync", edited_meanwhile)
    await rig.call(action="add", text="ours")

    assert rig.file().read_text() == "- a\n- from outside\n- ours\n"


async def test_a_file_that_never_stands_still_is_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is overwritten, and the model hears of it."""
    rig.file().write_text("- a\n")
    flush, numbers = os.fsync, iter(range(100))

    def edited_meanwhile(descriptor: int) -> None:
        flush(descriptor)
        rig.file().write_text(f"- {next(numbers)}\n")

    monkeypatch.setattr(os, "fsync", edited_meanwhile)
    with pytest.raises(ModelMustAct, match="somebody else"):
        await rig.call(action="add", text="ours")
    assert "ours" not in rig.file().read_text()
    assert list((rig.folder(PLACE) / ".pumice").iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "huge"])
async def test_only_an_ordinary_file_is_used(rig: Rig, tmp_path: Path, kind: str) -> None:
    """Whoever works in the folder may put anything there."""
    (tmp_path / "private.txt").write_text("private")
    match kind:
        case "link":
            rig.file().symlink_to(tmp_path / "private.txt")
        case "pipe":
            os.mkfifo(rig.file())
        case "folder":
            rig.file().mkdir()
        case _:
            rig.file().write_text("x" * 2_000_000)

    for arguments in ({"action": "read"}, {"action": "add", "text": "x"}):
        with pytest.raises(ModelMustAct, match="cannot be used"):
            await rig.call(**arguments)
    assert (tmp_path / "private.txt").read_text() == "private"


async def test_the_person_forgets_by_key_and_all_at_once(rig: Rig) -> None:
    """A button whose note has changed since does nothing."""
    scope: Scope = "chat"
    rig.file().write_text("# Memory\n\nWords.\n\n1. first\n2. second\n   more\n* third\n")
    view = await rig.memory.view(PLACE, scope)
    assert [text for _, text in view.notes] == ["first", "second more", "third"]
    keys = [key for key, _ in view.notes]

    assert await rig.memory.forget(PLACE, scope, keys[1]) == "second more"
    with pytest.raises(UserMustAct, match="not there any more"):
        await rig.memory.forget(PLACE, scope, keys[1])
    assert await rig.memory.clear(PLACE, scope) == 2
    assert rig.file().read_text() == "# Memory\n\nWords.\n\n"


LINES = st.lists(
    st.one_of(
        st.text(st.characters(exclude_characters="\n\r"), max_size=20),
        st.sampled_from(["", "- a", "* b", "  more", "# H", "1. one", "-", "- ", "\t- deep"]),
    ),
    max_size=12,
)


@given(LINES, st.sampled_from(["x", "- y", "a b", "# not a heading", "1. z"]))
def test_a_note_that_is_added_is_the_last_and_the_others_stay(lines: list[str], text: str) -> None:
    """Whatever a file looks like."""
    content = "\n".join(lines)
    before = [note.text for note in find_notes(content)]
    after = find_notes(with_note(content, text))

    assert [note.text for note in after] == [*before, text]
    assert find_notes(without(with_note(content, text), after[-1])) == find_notes(content.rstrip() or "# Memory")
