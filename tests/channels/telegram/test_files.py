"""Files, out and in."""

from pathlib import Path

import pytest

from channels.telegram import TelegramChannel
from channels.telegram.files import megabytes, safe_name
from features.contracts.chat import Attachment, Button, DeliveryRefused, OutboundFile
from features.contracts.errors import RetryLater, UserMustAct
from tests.channels.telegram.rig import CHAT, Progress, Sink, send
from tests.servers.telegram import Fault, FileIn, TelegramServer

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 50


def made(folder: Path, name: str, content: bytes, caption: str = "") -> OutboundFile:
    path = folder / name
    path.write_bytes(content)
    return OutboundFile(path=path, name=name, caption=caption)


async def test_pictures_are_shown_and_the_rest_are_documents(telegram: TelegramServer, channel: TelegramChannel, tmp_path: Path) -> None:
    """By what they are, not by what they are called."""
    await send(
        channel, "Here:", files=(made(tmp_path, "a.png", PNG), made(tmp_path, "fake.png", b"no picture"), made(tmp_path, "b.txt", b"b"))
    )
    shown = telegram.messages(CHAT)

    assert [each.kind for each in shown] == ["text", "photo", "document", "document"]
    assert [each.file for each in shown[1:]] == [PNG, b"no picture", b"b"]
    assert [each.file_name for each in shown[1:]] == ["a.png", "fake.png", "b.txt"]
    assert shown[2].album == shown[3].album is not None


async def test_many_pictures_are_albums_of_ten(telegram: TelegramServer, channel: TelegramChannel, tmp_path: Path) -> None:
    """Captions included; one that is left over goes alone."""
    files = tuple(made(tmp_path, f"{number}.png", PNG, caption=f"*picture* {number}") for number in range(11))
    progress = await send(channel, files=files)
    shown = telegram.messages(CHAT)

    assert [len(telegram.called(method)) for method in ("sendMediaGroup", "sendPhoto")] == [1, 1]
    assert [each.text for each in shown] == [f"picture {number}" for number in range(11)]
    assert shown[0].styled("italic") == ["picture"]
    assert len(progress.refs) == 2


async def test_a_long_caption_follows_its_file(telegram: TelegramServer, channel: TelegramChannel, tmp_path: Path) -> None:
    """1,024 units after rendering; what is longer must not cost the file."""
    await send(
        channel,
        files=(made(tmp_path, "a.txt", b"a", caption="word " * 300), made(tmp_path, "b.txt", b"b", caption="**" + "y" * 1023 + "**")),
    )
    first, text, second = telegram.messages(CHAT)

    assert (first.text, first.file) == ("", b"a")
    assert text.text == ("word " * 300).strip()
    assert second.text == "y" * 1023


async def test_a_file_that_cannot_go_does_not_hold_back_the_rest(
    telegram: TelegramServer, channel: TelegramChannel, tmp_path: Path
) -> None:
    """Text and other files arrive; then the reason is given, with size and limit."""
    huge = tmp_path / "film.mkv"
    with huge.open("wb") as file:
        file.truncate(61 * 1024 * 1024)
    lost = OutboundFile(path=tmp_path / "gone.txt", name="gone.txt")
    empty = made(tmp_path, "empty.txt", b"")
    files = (OutboundFile(path=huge, name="film.mkv"), lost, empty, made(tmp_path, "good.txt", b"good"))
    progress = Progress()
    with pytest.raises(DeliveryRefused) as raised:
        await send(channel, "Files:", files=files, progress=progress)

    assert [each.text or each.file_name for each in telegram.messages(CHAT)] == ["Files:", "good.txt"]
    assert "film.mkv has 61 MB; bots can send files of at most 50 MB" in str(raised.value)
    assert "gone.txt cannot be read" in str(raised.value)
    assert "empty.txt is empty" in str(raised.value)
    assert progress.done == 5
    assert not progress.finished


async def test_a_picture_that_telegram_cannot_show_goes_as_a_document(
    telegram: TelegramServer, channel: TelegramChannel, tmp_path: Path
) -> None:
    """Also out of an album, where one would spoil all."""
    webp = b"RIFF\x00\x00\x00\x00WEBP" + b"0" * 20
    await send(channel, files=(made(tmp_path, "a.webp", webp),))
    await send(channel, files=(made(tmp_path, "b.png", PNG), made(tmp_path, "c.webp", webp)))

    assert [(each.kind, each.file_name) for each in telegram.messages(CHAT)] == [
        ("document", "a.webp"),
        ("photo", "b.png"),
        ("document", "c.webp"),
    ]


async def test_a_file_that_telegram_refuses_is_named(telegram: TelegramServer, channel: TelegramChannel, tmp_path: Path) -> None:
    """An answer that says "sent" for what never arrived is the worst."""
    telegram.fail("sendDocument", Fault(code=413, description="Request Entity Too Large"))
    with pytest.raises(DeliveryRefused, match=r"a\.txt was not sent: The file is larger"):
        await send(channel, files=(made(tmp_path, "a.txt", b"a"),))


async def test_buttons_stand_under_the_last_file_where_there_is_no_text(
    telegram: TelegramServer, channel: TelegramChannel, tmp_path: Path
) -> None:
    """Albums cannot have any."""
    files = (made(tmp_path, "a.txt", b"a"), made(tmp_path, "b.txt", b"b"))
    await send(channel, files=files, buttons=((Button(label="ok", command="/ok"),),))

    assert [bool(each.buttons) for each in telegram.messages(CHAT)] == [False, True]


async def test_a_fetched_file_is_whole(telegram: TelegramServer, sink: Sink, listening: TelegramChannel, tmp_path: Path) -> None:
    """Streamed to the disk under the name the host chose."""
    content = bytes(range(256)) * 4000
    telegram.say(CHAT, file=FileIn("data.bin", content))
    (message,) = await sink.received(1)
    await listening.fetch(message.attachments[0], tmp_path / "here.bin", limit=2_000_000)

    assert (tmp_path / "here.bin").read_bytes() == content
    assert list(tmp_path.iterdir()) == [tmp_path / "here.bin"]


@pytest.mark.parametrize(
    ("limit", "fault", "expected", "words"),
    [
        (3, None, UserMustAct, "at most"),
        (2_000_000, Fault(code=404), UserMustAct, "send it again"),
        (2_000_000, Fault(code=502), RetryLater, "502"),
        (2_000_000, Fault(drop="after"), RetryLater, "cannot be fetched"),
    ],
    ids=["too large", "gone", "server error", "cut"],
)
async def test_a_fetch_that_fails_leaves_nothing(
    limit: int,
    fault: Fault | None,
    expected: type[Exception],
    words: str,
    telegram: TelegramServer,
    sink: Sink,
    listening: TelegramChannel,
    tmp_path: Path,
) -> None:
    """And says who has to act; never the address, which holds the token."""
    telegram.say(CHAT, file=FileIn("data.bin", b"x" * 5000))
    (message,) = await sink.received(1)
    if fault:
        telegram.fail("download", fault)
    with pytest.raises(expected, match=words) as raised:
        await listening.fetch(message.attachments[0], tmp_path / "here.bin", limit=limit)

    assert telegram.token not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


async def test_more_than_the_declared_size_is_not_written(
    telegram: TelegramServer, sink: Sink, listening: TelegramChannel, tmp_path: Path
) -> None:
    """The limit holds for what comes, not for what was said."""
    telegram.say(CHAT, file=FileIn("data.bin", b"x" * 5000, size=10))
    (message,) = await sink.received(1)
    with pytest.raises(UserMustAct, match="at most"):
        await listening.fetch(message.attachments[0], tmp_path / "here.bin", limit=100)

    assert list(tmp_path.iterdir()) == []


async def test_a_file_that_telegram_will_not_give_is_told_with_its_limit(
    telegram: TelegramServer, channel: TelegramChannel, tmp_path: Path
) -> None:
    """Whatever was declared, 20 MB is all that bots get."""
    telegram.world.files["big"] = (b"x", 25 * 1024 * 1024)
    with pytest.raises(UserMustAct, match="at most 20 MB"):
        await channel.fetch(Attachment(ref="big", name="big.zip", kind="file"), tmp_path / "big", limit=10**9)
    with pytest.raises(UserMustAct, match="send it again"):
        await channel.fetch(Attachment(ref="never", name="x.zip", kind="file"), tmp_path / "big", limit=10**9)


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("../../x", "x"),
        ("a\x00b\n.txt", "ab_.txt"),
        ("C:\\temp\\x.doc", "x.doc"),
        ("...", "file"),
        ("", "file"),
        ('we"ird<name>.txt', "we_ird_name_.txt"),
        ("n" * 300 + ".pdf", "n" * 116 + ".pdf"),
        ("日本語.txt", "日本語.txt"),
        ("half\ud83d.txt", "half\ufffd.txt"),
    ],
)
def test_names_are_made_safe(given: str, safe: str) -> None:
    """No folders, nothing invisible, not too long; the ending stays."""
    assert safe_name(given) == safe


def test_sizes_over_a_limit_never_look_like_it() -> None:
    """A text like "20 MB; at most 20 MB" would puzzle everybody."""
    assert megabytes(20 * 1024 * 1024) == "20 MB"
    assert megabytes(20 * 1024 * 1024 + 1) == "20.1 MB"
