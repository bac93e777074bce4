"""Files that people send."""

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from bot.conversations.attachments import image_block
from features.agent.testing import ScriptedProvider, answers
from features.contracts.chat import Attachment
from features.contracts.errors import RetryLater, UserMustAct
from features.contracts.messages import ImageBlock, UserMessage
from tests.bot.conversations.rig import eventually, opened


def picture(width: int, height: int, form: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (200, 30, 30)).save(out, form)
    return out.getvalue()


def sent(name: str, *, ref: str = "f1", size: int | None = None, problem: str | None = None) -> Attachment:
    return Attachment(ref=ref, name=name, kind="file", size=size, problem=problem)


async def test_a_file_is_in_the_workspace_before_the_prompt_names_it(tmp_path: Path) -> None:
    """The model can open what it is told of."""
    async with opened(tmp_path, ScriptedProvider(answers("read"))) as rig:
        rig.channel.downloads["f1"] = b"x" * 1500
        rig.chat().says("look", attachments=(sent("report.txt"),))
        await rig.chat().answer()
        [prompt] = rig.prompts(0)

        text, line = prompt.split("\n")
        assert text == "look"
        path = line.removeprefix("[attached: ").split(" (")[0]
        assert line.endswith("(2 kB)]")
        assert (tmp_path / "workspaces" / "loop-1" / path).read_bytes() == b"x" * 1500


async def test_a_picture_is_shown_to_a_model_that_sees(tmp_path: Path) -> None:
    """Scaled down once, at entry, so that it never spoils a session."""
    async with opened(tmp_path, ScriptedProvider(answers("red")), model="scripted/eyes") as rig:
        rig.channel.downloads["f1"] = picture(4000, 1000)
        rig.chat().says("what colour?", attachments=(sent("a.png"),))
        await rig.chat().answer()
        [message] = [message for message in rig.provider.requests[0].messages if isinstance(message, UserMessage)]

        assert isinstance(message.content, list)
        [block] = [block for block in message.content if isinstance(block, ImageBlock)]
        with Image.open(io.BytesIO(base64.b64decode(block.data))) as shown:
            assert max(shown.size) == 1568


async def test_a_model_that_does_not_see_is_only_told(tmp_path: Path) -> None:
    """It can still use the file."""
    async with opened(tmp_path, ScriptedProvider(answers("a file"))) as rig:
        rig.channel.downloads["f1"] = picture(10, 10)
        rig.chat().says("", attachments=(sent("a.png"),))
        await rig.chat().answer()

        assert rig.prompts(0)[0].startswith("[attached: attachments/")


@pytest.mark.parametrize(
    ("attachment", "content", "said"),
    [
        (sent("big.iso", size=60_000_000), b"", "60.0 MB"),
        (sent("voice.ogg", problem="I cannot hear voice notes yet."), b"", "voice notes"),
        (sent("gone.txt"), UserMustAct("It has expired."), "expired"),
        (sent("slow.txt"), RetryLater("busy"), "send it again"),
    ],
)
async def test_what_cannot_be_had_is_told_to_both(tmp_path: Path, attachment: Attachment, content: bytes | Exception, said: str) -> None:
    """The person hears why; the model knows that there was something."""
    async with opened(tmp_path, ScriptedProvider(answers("ok"))) as rig:
        rig.channel.downloads["f1"] = content
        rig.chat().says("look", attachments=(attachment,))
        if isinstance(content, RetryLater):
            await eventually(lambda: rig.clock.sleepers >= 1)
            await rig.clock.advance(4)

        assert said in (await rig.chat().answer()).text
        await rig.chat().answer()
        assert "could not be fetched" in rig.prompts(0)[0]


async def test_names_cannot_break_out(tmp_path: Path) -> None:
    """A name is a label, whatever it says."""
    async with opened(tmp_path, ScriptedProvider(answers("ok"))) as rig:
        for number, name in enumerate(["../../etc/passwd", "a\x00b", "x" * 300, "a\nb]"]):
            rig.channel.downloads[f"f{number}"] = b"data"
            assert name
        rig.chat().says(
            "look", attachments=tuple(sent(name, ref=f"f{n}") for n, name in enumerate(["../../etc/passwd", "a\x00b", "x" * 300, "a\nb]"]))
        )
        await rig.chat().answer()
        workspace = tmp_path / "workspaces" / "loop-1"

        assert len(list((workspace / "attachments").iterdir())) == 4
        assert len(rig.prompts(0)[0].split("\n")) == 5
        assert not (tmp_path / "etc").exists()


def test_what_is_no_picture_is_none(tmp_path: Path) -> None:
    """By its bytes, not by its name."""
    for content in (b"", b"\xff\xd8\xff broken", b"plain text", picture(10, 10)[:40]):
        path = tmp_path / "a.png"
        path.write_bytes(content)

        assert image_block(path) is None


def test_a_small_picture_stays_as_it_is(tmp_path: Path) -> None:
    """No loss where none is needed."""
    path = tmp_path / "a.jpg"
    path.write_bytes(picture(100, 50, "JPEG"))
    block = image_block(path)

    assert block is not None
    assert base64.b64decode(block.data) == path.read_bytes()
    assert block.mime_type == "image/jpeg"
