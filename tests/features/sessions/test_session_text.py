"""Session files of any version, damaged or not: what is made of them."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.contracts.errors import UserMustAct
from features.contracts.messages import CustomMessage
from features.contracts.sessions import CompactionEntry, MessageEntry, UnknownEntry
from features.contracts.testing import sequential_ids
from features.sessions.session_text import SessionText, read_session_text
from features.sessions.testing import TIMESTAMP

HEADER = '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/"}'


def read(*lines: str | bytes, end: str = "\n") -> SessionText:
    data = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + end.encode()
    return read_session_text(data, ids=sequential_ids("fresh-id"), timestamp=TIMESTAMP)


def user(entry_id: str | None, parent: str | None, text: str = "x", **more: Any) -> str:
    place = {} if entry_id is None else {"id": entry_id, "parentId": parent}
    message = {"role": "user", "content": text, "timestamp": 1}
    return msgspec.json.encode({"type": "message", **place, "timestamp": TIMESTAMP, "message": message, **more}).decode()


def places(text: SessionText) -> list[tuple[str, str | None]]:
    return [(entry.id, entry.parent_id) for entry in text.entries]


def test_a_file_of_the_present_version_is_kept_as_it_is() -> None:
    """Line by line, whatever else is in them; empty lines and foreign line ends too."""
    lines = [HEADER, user("a", None) + "\r", "", ' {"type":"novelty", "id":"b","parentId":"a","timestamp":"","n":1.0e0} ', user("c", "b")]
    text = read(*lines)

    assert "".join(f"{line}\n" for line in (text.header_line, *text.lines)) == "".join(f"{line}\n" for line in lines)
    assert text.faithful
    assert places(text) == [("a", None), ("b", "a"), ("c", "b")]
    assert isinstance(text.entries[1], UnknownEntry)
    assert text.warnings == ["1 entry of a kind or form that is not known here: kept, but not read by the model."]


def test_version_1_becomes_a_chain() -> None:
    """It was a list; a compaction counted the lines of the file, the header included."""
    header = '{"type":"session","id":"s1","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/","provider":"p"}'
    kept = '{"type":"compaction","timestamp":"","summary":"s","tokensBefore":1.0,"firstKeptEntryIndex":%d}'
    text = read(header, user(None, None), user(None, None, "y"), kept % 2, kept % 0)
    first, second, third, fourth = text.entries

    assert [entry.parent_id for entry in text.entries] == [None, first.id, second.id, third.id]
    assert all(len(entry.id) == 8 for entry in text.entries)
    assert isinstance(third, CompactionEntry)
    assert isinstance(fourth, CompactionEntry)
    assert (third.first_kept_entry_id, fourth.first_kept_entry_id) == (second.id, fourth.id)
    assert msgspec.json.decode(text.header_line) == msgspec.json.decode(header) | {"version": 3}
    assert '"tokensBefore":1.0' in text.lines[2]
    assert text.warnings == ["The file is in version 1 of the format; it was brought to version 3."]
    assert not text.faithful


def test_version_2_calls_a_hooks_message_custom() -> None:
    """Ids stay; what was migrated is migrated once."""
    hook = '{"type":"message","id":"abc12345","parentId":null,"timestamp":"","message":{"role":"hookMessage","customType":"c",'
    hook += '"content":"hookMessage","display":true,"timestamp":1}}'
    text = read(HEADER.replace('"version":3', '"version":2'), hook, user("def67890", "abc12345"))
    again = read(text.header_line, *text.lines)

    assert places(text) == [("abc12345", None), ("def67890", "abc12345")]
    assert isinstance(text.entries[0], MessageEntry)
    assert text.entries[0].message == CustomMessage(custom_type="c", content="hookMessage", display=True, timestamp=1)
    assert again.faithful
    assert (again.header_line, again.lines) == (text.header_line, text.lines)


def test_a_line_that_cannot_be_read_costs_itself_alone() -> None:
    """What followed it hangs on what was said before it, on both branches that did."""
    text = read(HEADER, user("a", None), user("b", "a")[:-7], user("c", "b"), user("d", "c"), user("e", "b"), b"\xff\x00", "[]", "null")

    assert places(text) == [("a", None), ("c", "a"), ("d", "c"), ("e", "a")]
    assert "4 lines could not be read, left out: 3, 7, 8, 9." in text.warnings
    assert not text.faithful


def test_a_torn_last_line_is_left_out() -> None:
    """As a crash leaves it."""
    text = read(HEADER, user("a", None), user("b", "a")[:40], end="")

    assert places(text) == [("a", None)]
    assert not text.faithful


def test_an_entry_without_its_parent_stays_as_it_is() -> None:
    """Nothing was damaged here: the session opens, and its lines are still its own."""
    text = read(HEADER, user("a", None), user("b", "elsewhere"))

    assert places(text) == [("a", None), ("b", "elsewhere")]
    assert text.faithful
    assert text.warnings == ["1 entry of which what came before is not there."]


def test_a_damaged_header_is_made_anew() -> None:
    """One bad line must not cost the conversation."""
    text = read(HEADER[:30], user("a", None))

    assert (text.header.version, places(text)) == (3, [("a", None)])
    assert "The header of the session could not be read; a new one was made." in text.warnings
    assert read('{"type":"session","version":"three","id":5}', user("a", None)).header.timestamp == TIMESTAMP


def test_ids_that_come_twice_are_told_apart() -> None:
    """A line that was written twice is dropped; another entry of that id gets one of its own, and so do those that follow it."""
    text = read(HEADER, user("a", None), user("a", None), user("a", None, "other"), user("b", "a"))

    assert text.entries[0].id == "a"
    assert len(text.entries) == len({entry.id for entry in text.entries}) == 3
    assert text.entries[2].parent_id == text.entries[1].id


def test_a_circle_of_parents_is_cut() -> None:
    """Nobody is his own ancestor; walking up would never end."""
    text = read(HEADER, user("a", "b"), user("b", "a"), user("c", "c"))

    assert sum(parent is None for _, parent in places(text)) == 2
    assert not text.faithful


@pytest.mark.parametrize(
    "data",
    [b"", b"\n \n", b"# notes\n\nhello\n", b"\x89PNG\r\n", b"[1, 2]\n", b'{"type":"x"}\n{"type":"x","id":"1","parentId":null}\n'],
)
def test_what_is_no_session_is_refused(data: bytes) -> None:
    """It must never be taken for an empty one and written over."""
    with pytest.raises(UserMustAct):
        read_session_text(data, ids=sequential_ids(), timestamp=TIMESTAMP)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "id", "parentId", "message", "role", "x"]), inner),
    max_leaves=8,
)
LINES = st.lists(
    st.binary(max_size=8)
    | VALUES.map(lambda value: json.dumps(value).encode())
    | st.tuples(st.sampled_from("abcd"), st.sampled_from(["a", "b", "c", "d", None, "gone"])).map(lambda it: user(*it).encode()),
    max_size=8,
)


@given(st.sampled_from([HEADER, HEADER.replace('"version":3', '"version":1'), HEADER[:20]]), LINES)
def test_whatever_stands_in_a_file_what_comes_out_is_a_sound_session(header: str, lines: list[bytes]) -> None:
    """Read again, it says the same and nothing is amiss any more."""
    try:
        text = read(header, *lines)
    except UserMustAct:
        return
    again = read(text.header_line, *text.lines)

    assert again.faithful
    assert (again.entries, again.header) == (text.entries, text.header)
    assert len({entry.id for entry in text.entries}) == len(text.entries)
