import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from features.contracts.chat import Address
from features.contracts.errors import OperatorMustAct
from workspaces import Workspaces
from workspaces.folder_names import place_name, safe_file_name

PLACE = Address("telegram", "1001")
CHATS = st.one_of(st.text(st.sampled_from("aB1-_/.%é2f"), min_size=1, max_size=8), st.text(min_size=1, max_size=60))
CHANNELS = st.text(st.sampled_from("ab-_"), min_size=1, max_size=4)


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "data" / "workspaces")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (Address("telegram", "1001"), "telegram-1001"),
        (Address("telegram", "-1001"), "telegram--1001"),
        (Address("telegram", "-1001", "7"), "telegram--1001"),
        (Address("slack", "T0/C1", "12.3"), "slack-T0_2fC1"),
        (Address("web", "my notes"), "web-my_20notes"),
        (Address("web", "../../etc"), "web-_2e_2e_2f_2e_2e_2fetc"),
    ],
)
def test_a_places_name_can_be_read(address: Address, name: str) -> None:
    """People look for their chat's folder."""
    assert place_name(address) == name


@given(CHANNELS, CHATS, CHANNELS, CHATS)
@example("a-b", "c", "a", "b-c")
@example("a", "_2d", "a", "-")
@example("web", "x/y", "web", "x_2fy")
def test_different_places_have_different_names(channel: str, chat: str, other_channel: str, other_chat: str) -> None:
    """Two chats in one folder would read each other's files."""
    one, other = Address(channel, chat), Address(other_channel, other_chat)

    assert (place_name(one) == place_name(other)) == (one == other)


@given(CHANNELS, st.text(max_size=400))
def test_a_name_is_short_and_plain_whatever_the_place(channel: str, chat: str) -> None:
    """It is one folder on any disk."""
    name = place_name(Address(channel, chat))

    assert len(name) <= 120
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def test_long_names_that_begin_alike_differ() -> None:
    """The hash tells them apart."""
    assert place_name(Address("web", "x" * 300)) != place_name(Address("web", "x" * 301))


def test_a_new_folder_has_all_that_belongs_into_one_and_is_private(workspaces: Workspaces) -> None:
    """Other users of the machine have no business there."""
    folder = workspaces.folder(PLACE)

    assert folder.name == "telegram-1001"
    assert (folder / "AGENTS.md").read_text().startswith("# About this chat")
    assert (folder / "MEMORY.md").read_text().startswith("# Memory")
    for private in (folder.parent, folder, folder / "attachments", folder / ".pumice", folder / ".pumice" / "tmp"):
        assert mode(private) == 0o700
    assert workspaces.scratch(PLACE) == folder / ".pumice" / "tmp"
    assert sorted(path.name for path in (folder / ".pumice").iterdir()) == ["extensions", "tmp"]


def test_what_people_wrote_is_never_overwritten_and_what_is_missing_comes_back(workspaces: Workspaces) -> None:
    """Asking for the folder happens with every message."""
    folder = workspaces.folder(PLACE)
    (folder / "AGENTS.md").write_text("ours")
    (folder / "MEMORY.md").unlink()
    workspaces.folder(PLACE)

    assert (folder / "AGENTS.md").read_text() == "ours"
    assert (folder / "MEMORY.md").exists()


def test_a_dangling_link_in_place_of_a_template_is_not_written_through(workspaces: Workspaces, tmp_path: Path) -> None:
    """It could point anywhere."""
    folder = workspaces.folder(PLACE)
    (folder / "MEMORY.md").unlink()
    (folder / "MEMORY.md").symlink_to(tmp_path / "elsewhere")
    workspaces.folder(PLACE)

    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("link", ["attachments", ".pumice", ".pumice/tmp"])
def test_a_link_in_place_of_a_folder_of_the_hosts_is_taken_away(workspaces: Workspaces, tmp_path: Path, link: str) -> None:
    """The host would write somewhere else."""
    folder = workspaces.folder(PLACE)
    (folder / link).rename(tmp_path / "moved")
    (folder / link).symlink_to(tmp_path / "moved")
    path = workspaces.attachment_path(PLACE, "1", "a.txt")

    assert not (folder / link).is_symlink()
    assert workspaces.inside(path, [folder])
    assert workspaces.inside(workspaces.scratch(PLACE), [folder])


def test_a_file_in_place_of_a_folder_is_the_operators_to_move(workspaces: Workspaces) -> None:
    """Deleting it could lose something."""
    folder = workspaces.folder(PLACE)
    (folder / "attachments").rmdir()
    (folder / "attachments").write_text("mine")

    with pytest.raises(OperatorMustAct, match="attachments is a file and not a folder"):
        workspaces.folder(PLACE)


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("photo.jpg", "photo.jpg"),
        ("../../x", "x"),
        ("..\\..\\x.txt", "x.txt"),
        ("/etc/passwd", "passwd"),
        ("a\0b\n\x1b.txt", "ab.txt"),
        ("", "file"),
        ("...", "file"),
        (".bashrc", "bashrc"),
        ("dir/", "file"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("console.txt", "console.txt"),
        ("evil\u202egpj.exe", "evilgpj.exe"),
        ("zero\u200bwidth.txt", "zerowidth.txt"),
        ('a<b>c:d"e|f?g*.txt', "a_b_c_d_e_f_g_.txt"),
        ("  many   spaces .txt ", "many spaces.txt"),
        ("Überweisung März.pdf", "Überweisung März.pdf"),
        ("half\ud83d.txt", "half.txt"),
    ],
)
def test_names_of_attachments_are_made_safe(given: str, safe: str) -> None:
    """Whoever writes to the bot chooses them."""
    assert safe_file_name(given) == safe


@given(st.text(max_size=400))
def test_a_safe_name_is_one_short_visible_name(name: str) -> None:
    """Whatever was given."""
    safe = safe_file_name(name)

    assert safe
    assert len(safe.encode()) <= 161
    assert not set(safe) & set('/\\\0<>:"|?*\u202e\n')
    assert safe.strip(". ") == safe or safe.rpartition(".")[2]
    assert safe not in (".", "..")


def test_a_name_of_300_characters_keeps_its_extension(workspaces: Workspaces) -> None:
    """And can be written."""
    path = workspaces.attachment_path(PLACE, "42", "é" * 300 + ".pdf")
    path.write_bytes(b"x")

    assert path.suffix == ".pdf"
    assert path.name.startswith("42-é")


def test_the_same_name_twice_gives_two_paths_even_before_the_first_is_written(workspaces: Workspaces) -> None:
    """Albums hold several photo.jpg."""
    first = workspaces.attachment_path(PLACE, "42", "photo.jpg")
    second = workspaces.attachment_path(PLACE, "42", "photo.jpg")
    first.touch()
    third = Workspaces(first.parents[2]).attachment_path(PLACE, "42", "photo.jpg")

    assert [path.name for path in (first, second, third)] == ["42-photo.jpg", "42-photo-2.jpg", "42-photo-2.jpg"]
    assert first.parent == workspaces.folder(PLACE) / "attachments"


def test_a_message_id_cannot_lead_elsewhere(workspaces: Workspaces) -> None:
    """Some platforms let senders choose it."""
    assert workspaces.attachment_path(PLACE, "../../1", "x").name == "______1-x"
    assert len(workspaces.attachment_path(PLACE, "9" * 500, "y" * 500).name) < 255


def test_inside_resolves_links_and_dots(workspaces: Workspaces, tmp_path: Path) -> None:
    """The text of a path proves nothing."""
    folder = workspaces.folder(PLACE)
    (folder / "out").symlink_to(tmp_path)
    (tmp_path / "in").symlink_to(folder)

    assert workspaces.inside(folder, [folder])
    assert workspaces.inside(tmp_path / "in" / "new.txt", [folder])
    assert not workspaces.inside(folder / "out" / "x", [folder])
    assert not workspaces.inside(folder / ".." / "x", [folder])
    assert not workspaces.inside(Path(f"{folder}2"), [folder])
    assert not workspaces.inside(folder, [])


def test_old_outputs_are_deleted_and_nothing_else(workspaces: Workspaces, tmp_path: Path) -> None:
    """Disks fill up."""
    scratch = workspaces.scratch(PLACE)
    precious = tmp_path / "precious"
    precious.touch()
    (scratch / "link").symlink_to(precious)
    for name, at in (("old.log", 1000), ("new.log", 3000)):
        (scratch / name).touch()
        os.utime(scratch / name, (at, at))

    assert workspaces.prune_scratch(PLACE, datetime.fromtimestamp(2000, UTC)) == 1
    assert sorted(path.name for path in scratch.iterdir()) == ["link", "new.log"]
    assert precious.exists()
    assert workspaces.prune_scratch(Address("web", "never seen"), datetime.fromtimestamp(2000, UTC)) == 0
