"""The web channel and its uploads."""

import asyncio
import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from channels.web import UploadStore, WebChannel
from channels.web.page import page_file
from features.contracts.chat import Address, Attachment, Cursor, OutboundMessage
from features.contracts.errors import UserMustAct
from features.contracts.testing import FakeClock


class Progress:
    def __init__(self, done: int = 0) -> None:
        self.done = done
        self.draft: str | None = None
        self.confirmed: list[str | None] = []

    async def confirm(self, ref: str | None, *, last: bool = False) -> None:
        self.confirmed.append(ref)


class Sink:
    async def moved(self, old: Address, new: Address) -> None:
        raise AssertionError(f"{old} does not move here")

    async def accept(self, messages: object, cursor: Cursor | None = None) -> None:
        raise AssertionError("nothing arrives this way")

    async def cursor(self, name: str) -> int | None:
        return None


def nothing(address: Address, line: str | None) -> None:
    return None


@pytest.fixture
def uploads(tmp_path: Path) -> UploadStore:
    return UploadStore(tmp_path / "uploads")


async def test_a_message_is_delivered_once_it_is_in_the_log(uploads: UploadStore) -> None:
    """A page that is away finds it there."""
    channel = WebChannel("web", uploads=uploads, doing=nothing, clock=FakeClock())
    fresh, repeated = Progress(), Progress(done=1)
    for progress in (fresh, repeated):
        await channel.send(Address("web", "main"), OutboundMessage(text="hi"), progress)

    assert (fresh.confirmed, repeated.confirmed) == ([None], [])
    assert channel.health().last_event_at is not None


async def test_health_follows_the_running(uploads: UploadStore) -> None:
    """Starting, working, stopped."""
    clock = FakeClock()
    channel = WebChannel("web", uploads=uploads, doing=nothing, clock=clock)
    states = [channel.health().state]
    running = asyncio.create_task(channel.run(Sink()))
    await clock.advance(0)
    states.append(channel.health().state)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    states.append(channel.health().state)

    assert states == ["starting", "working", "stopped"]


async def test_the_live_view_shows_nothing_because_the_events_do(uploads: UploadStore) -> None:
    """And leaves no draft to replace; what goes on is told when it changes."""
    told: list[tuple[str, str | None]] = []
    channel = WebChannel("web", uploads=uploads, doing=lambda address, line: told.append((str(address), line)), clock=FakeClock())
    view = channel.live(Address("web", "main"), reply_to=None, opened=lambda ref: None)
    view.show("text")
    view.status("bash")
    view.status("bash")

    assert await view.close() is None
    assert told == [("web:main", "bash"), ("web:main", None)]


async def test_an_upload_is_kept_under_a_name_of_our_own_and_copied_on_demand(uploads: UploadStore, tmp_path: Path) -> None:
    """What the sender called it is a label."""
    channel = WebChannel("web", uploads=uploads, doing=nothing, clock=FakeClock())
    attachment = await uploads.keep(b"data", name="../../etc/passwd", mime_type="image/png")
    await channel.fetch(attachment, tmp_path / "copy", limit=4)

    assert (tmp_path / "copy").read_bytes() == b"data"
    assert (attachment.kind, attachment.size, attachment.name) == ("image", 4, "../../etc/passwd")
    (kept,) = (tmp_path / "uploads").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert uploads.owns(attachment)


@pytest.mark.parametrize("ref", ["upload:../../secret", "upload:" + "0" * 32, "telegram:abc", "upload:"])
async def test_no_reference_leads_out_of_the_folder(uploads: UploadStore, tmp_path: Path, ref: str) -> None:
    """Nor to what is not there."""
    (tmp_path / "secret").write_text("secret")
    attachment = Attachment(ref=ref, name="x", kind="file")

    with pytest.raises(UserMustAct):
        uploads.copy(attachment, tmp_path / "copy", 100)
    assert not (tmp_path / "copy").exists()


async def test_what_is_too_large_is_refused_and_leaves_nothing(uploads: UploadStore, tmp_path: Path) -> None:
    """The reason is for the person."""
    attachment = await uploads.keep(b"x" * 2_000_000, name="big", mime_type=None)
    (tmp_path / "out").mkdir()

    with pytest.raises(UserMustAct, match=r"2\.0 MB; at most 1 MB"):
        uploads.copy(attachment, tmp_path / "out" / "copy", 1_000_000)
    assert list((tmp_path / "out").iterdir()) == []


async def test_uploads_are_taken_away_after_a_week(tmp_path: Path) -> None:
    """Not before what waited in the inbox has been fetched."""
    clock = FakeClock()
    uploads = UploadStore(tmp_path / "uploads")
    old = await uploads.keep(b"old", name="a", mime_type=None)
    new = await uploads.keep(b"new", name="b", mime_type=None)
    for attachment, age in ((old, 8), (new, 2)):
        moment = (clock.now() - timedelta(days=age)).timestamp()
        os.utime(uploads.path(attachment), (moment, moment))
    pruning = asyncio.create_task(uploads.prune(clock))
    await clock.advance(60)
    assert uploads.path(old).exists()
    await clock.advance(3600)
    async with asyncio.timeout(5):
        while clock.sleepers == 0:  # noqa: ASYNC110 - it tells nobody when it changes
            await asyncio.sleep(0.01)

    assert uploads.path(new).exists()
    with pytest.raises(UserMustAct, match="no longer here"):
        uploads.path(old)
    pruning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pruning


async def test_two_channels_that_take_away_the_same_uploads_do_not_trip_over_each_other(tmp_path: Path) -> None:
    """The page's and the terminal's share a store; a file that the other took first broke the channel."""
    clock = FakeClock()
    folder = tmp_path / "uploads"
    folder.mkdir()
    moment = (clock.now() - timedelta(days=8)).timestamp()
    for number in range(2000):
        (folder / f"{number:032x}").touch()
        os.utime(folder / f"{number:032x}", (moment, moment))
    both = [
        asyncio.create_task(WebChannel(name, uploads=UploadStore(folder), doing=nothing, clock=clock).run(Sink()))
        for name in ("web", "console")
    ]
    await clock.advance(3600)
    async with asyncio.timeout(20):
        while clock.sleepers < 2 and not any(task.done() for task in both):  # noqa: ASYNC110 - it tells nobody when it changes
            await asyncio.sleep(0.01)

    assert not any(task.done() for task in both)
    assert list(folder.iterdir()) == []
    for task in both:
        task.cancel()
    await asyncio.gather(*both, return_exceptions=True)


def test_only_the_pages_own_files_are_given() -> None:
    """By name from a list, never by path."""
    page = page_file("index.html")
    assert page is not None
    assert page.media_type == "text/html"
    for name in ("page.py", "../page.py", "..", "", "index.html/", "/etc/passwd", "index.html\0"):
        assert page_file(name) is None
