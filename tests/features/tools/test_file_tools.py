"""read, write, edit and ls."""

import asyncio
import base64
import io
import stat
from pathlib import Path

import pytest
from PIL import Image

from features.contracts.errors import ModelMustAct
from features.contracts.messages import ImageBlock
from features.tools.testing import ToolBench, result_text

from .conftest import MakeBench


def numbered(count: int, *, width: int = 0) -> str:
    return "\n".join(f"Line {number}".ljust(width, ".") for number in range(1, count + 1))


def picture(size: tuple[int, int], format: str = "PNG", *, noise: bool = False) -> bytes:
    image = Image.effect_noise(size, 100) if noise else Image.new("RGB", size, "red")
    target = io.BytesIO()
    image.convert("RGB").save(target, format)
    return target.getvalue()


async def test_read_shows_the_first_2000_lines_and_says_how_to_go_on(bench: ToolBench, workspace: Path) -> None:
    """A model reads in portions."""
    (workspace / "long.txt").write_text(numbered(2500))
    result = await bench.run("read", path="long.txt")
    text = result_text(result)

    assert text.startswith("Line 1\n")
    assert text.endswith("Line 2000\n\n[Showing lines 1-2000 of 2500. Use offset=2001 to continue.]")
    figures = result.details["truncation"]
    assert (figures["truncatedBy"], figures["totalLines"], figures["outputLines"]) == ("lines", 2500, 2000)


async def test_read_keeps_to_the_byte_limit(bench: ToolBench, workspace: Path) -> None:
    """Few long lines cost as much as many short ones."""
    (workspace / "wide.txt").write_text(numbered(500, width=220))
    text = await bench.text("read", path="wide.txt")

    assert "[Showing lines 1-231 of 500 (50.0KB limit). Use offset=232 to continue.]" in text
    assert len(text.encode()) < 51_400


@pytest.mark.parametrize(
    ("arguments", "first", "ending"),
    [
        ({"offset": 51}, "Line 51", "Line 100"),
        ({"limit": 10}, "Line 1", "Line 10\n\n[90 more lines in file. Use offset=11 to continue.]"),
        ({"offset": 41, "limit": 20}, "Line 41", "Line 60\n\n[40 more lines in file. Use offset=61 to continue.]"),
        ({"offset": "99", "limit": 5}, "Line 99", "Line 100"),
    ],
)
async def test_read_shows_the_window_asked_for(
    bench: ToolBench, workspace: Path, arguments: dict[str, int], first: str, ending: str
) -> None:
    """Without a notice where the file ends."""
    (workspace / "file.txt").write_text(numbered(100))
    text = await bench.text("read", path="file.txt", **arguments)

    assert text.split("\n")[0] == first
    assert text.endswith(ending)


async def test_read_beyond_the_end_is_an_error(bench: ToolBench, workspace: Path) -> None:
    """The model counted wrong."""
    (workspace / "short.txt").write_text("1\n2\n3\n")

    with pytest.raises(ModelMustAct, match=r"Offset 100 is beyond end of file \(3 lines total\)"):
        await bench.run("read", path="short.txt", offset=100)


async def test_read_shows_the_beginning_of_a_line_that_is_too_long(bench: ToolBench, workspace: Path) -> None:
    """An empty result with a notice makes models try the same again."""
    (workspace / "line.txt").write_text("x" * 200_000 + "\nsecond\n")
    text = await bench.text("read", path="line.txt")

    assert text.startswith("x" * 51_200 + "\n\n[Line 1 is 195.3KB, exceeds 50.0KB limit")
    assert "sed -n '1p' line.txt | head -c 51200" in text


async def test_read_takes_little_memory_for_a_huge_file(bench: ToolBench, workspace: Path) -> None:
    """A line of nearly 200 MB is counted in pieces."""
    with (workspace / "huge.txt").open("wb") as file:
        file.write(b"first\n" * 3000)
        file.truncate(200 * 1024 * 1024)
    text = await bench.text("read", path="huge.txt")

    assert "[Showing lines 1-2000 of 3001. Use offset=2001 to continue.]" in text


@pytest.mark.parametrize(("content", "shown"), [(b"", "is empty"), (b"\n", "(an empty line)"), (b"\xef\xbb\xbfa\r\nb\r\n", "a\nb")])
async def test_read_is_never_empty_and_shows_neither_bom_nor_carriage_returns(
    bench: ToolBench, workspace: Path, content: bytes, shown: str
) -> None:
    """Services refuse empty results."""
    (workspace / "file.txt").write_bytes(content)

    assert shown in await bench.text("read", path="file.txt")


async def test_an_image_is_known_by_its_bytes_not_by_its_name(bench: ToolBench, workspace: Path) -> None:
    """Names lie, and a service that is sent text as PNG refuses the whole conversation from then on."""
    data = picture((4, 4))
    (workspace / "image.txt").write_bytes(data)
    (workspace / "text.png").write_text("hello\n")
    result = await bench.run("read", path="image.txt")

    assert result_text(result) == "Read image file [image/png]"
    assert result.content[1] == ImageBlock(data=base64.b64encode(data).decode(), mime_type="image/png")
    assert await bench.text("read", path="text.png") == "hello"


async def test_a_large_image_is_made_smaller_and_says_so(bench: ToolBench, workspace: Path) -> None:
    """The model must be able to name places in the original."""
    (workspace / "wide.jpg").write_bytes(picture((4000, 1000), "JPEG"))
    result = await bench.run("read", path="wide.jpg")
    block = result.content[1]

    assert isinstance(block, ImageBlock)
    assert Image.open(io.BytesIO(base64.b64decode(block.data))).size == (2000, 500)
    assert "[Image: original 4000x1000, displayed at 2000x500. Multiply coordinates by 2.00" in result_text(result)


async def test_an_image_of_too_many_bytes_is_made_smaller(bench: ToolBench, workspace: Path) -> None:
    """Noise does not compress as PNG."""
    (workspace / "noise.png").write_bytes(picture((1900, 1900), noise=True))
    assert (workspace / "noise.png").stat().st_size > 3.4 * 1024 * 1024
    block = (await bench.run("read", path="noise.png")).content[1]

    assert isinstance(block, ImageBlock)
    assert len(block.data) <= 4.5 * 1024 * 1024


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n" + b"broken" * 10, picture((50, 50))[:100], b"\xff\xd8\xff\xe0 no picture", b"GIF89a"]
)
async def test_a_broken_image_never_enters_the_conversation(bench: ToolBench, workspace: Path, data: bytes) -> None:
    """It would be sent again with every request."""
    (workspace / "broken.png").write_bytes(data)

    with pytest.raises(ModelMustAct, match="cannot be decoded"):
        await bench.run("read", path="broken.png")


async def test_a_huge_file_that_begins_like_an_image_is_not_loaded(bench: ToolBench, workspace: Path) -> None:
    """Eight bytes are soon written."""
    with (workspace / "huge.png").open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.truncate(60 * 1024 * 1024)

    with pytest.raises(ModelMustAct, match=r"image of 60\.0MB"):
        await bench.run("read", path="huge.png")


async def test_an_image_of_too_many_pixels_is_not_unpacked(bench: ToolBench, workspace: Path) -> None:
    """A few kilobytes may stand for gigabytes."""
    target = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(target, "PNG")
    (workspace / "bomb.png").write_bytes(target.getvalue())

    with pytest.raises(ModelMustAct, match="too many pixels"):
        await bench.run("read", path="bomb.png")


async def test_binary_files_are_refused_by_kind(bench: ToolBench, workspace: Path) -> None:
    """Raw bytes in a prompt help nobody."""
    (workspace / "voice.txt").write_bytes(b"OggS\x00\x02" + bytes(100))

    with pytest.raises(ModelMustAct, match=r"binary file \(audio/ogg, 106B\)"):
        await bench.run("read", path="voice.txt")


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("a b.txt", "a\u00a0b.txt"),
        ("cafe\u0301.txt", "café.txt"),
        ("Capture d\u2019cran.txt", "Capture d'cran.txt"),
        ("Shot 10.00.00\u202fAM.txt", "Shot 10.00.00 AM.txt"),
        ("plain.txt", "@plain.txt"),
        ("@scoped.txt", "@scoped.txt"),
        ("odd\u00a0name.txt", "odd\u00a0name.txt"),
    ],
)
async def test_read_finds_what_is_meant(bench: ToolBench, workspace: Path, name: str, asked: str) -> None:
    """Models and macOS write the same name in several ways."""
    (workspace / name).write_text("found")

    assert await bench.text("read", path=asked) == "found"


async def test_write_makes_folders_and_says_the_bytes(bench: ToolBench, workspace: Path) -> None:
    """Bytes, not characters."""
    assert await bench.text("write", path="new/deep/file.txt", content="é\n") == "Successfully wrote 3 bytes to new/deep/file.txt"
    assert (workspace / "new/deep/file.txt").read_text() == "é\n"
    assert [path.name for path in (workspace / "new/deep").iterdir()] == ["file.txt"]


async def test_write_does_not_guess_which_file_is_meant(bench: ToolBench, workspace: Path) -> None:
    """A new file must not replace one of nearly the same name; edit needs one that is there and may."""
    (workspace / "don\u2019t.txt").write_text("old")
    await bench.run("write", path="don't.txt", content="new")
    assert (workspace / "don\u2019t.txt").read_text() == "old"
    (workspace / "don't.txt").unlink()
    await bench.run("edit", path="don't.txt", oldText="old", newText="edited")

    assert (workspace / "don\u2019t.txt").read_text() == "edited"


async def test_write_keeps_the_mode_and_the_symlink(bench: ToolBench, workspace: Path) -> None:
    """A script stays executable; a link stays a link."""
    script = workspace / "script.sh"
    script.write_text("old")
    script.chmod(0o750)
    (workspace / "link").symlink_to("script.sh")
    await bench.run("write", path="link", content="new")

    assert script.read_text() == "new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert (workspace / "link").is_symlink()


async def test_a_read_only_file_is_not_written(bench: ToolBench, workspace: Path) -> None:
    """Replacing by renaming would not even notice."""
    (workspace / "fixed.txt").write_text("old")
    (workspace / "fixed.txt").chmod(0o444)

    with pytest.raises(ModelMustAct, match="read-only"):
        await bench.run("write", path="fixed.txt", content="new")
    assert (workspace / "fixed.txt").read_text() == "old"


async def test_edit_leaves_every_other_byte_alone(bench: ToolBench, workspace: Path) -> None:
    """BOM, mixed line ends, smart quotes, trailing spaces and bytes that are no UTF-8."""
    before = b"\xef\xbb\xbfone \r\ntwo  \n\xff\xfe\r\n"
    after = "\u201cquoted\u201d   \n".encode()
    (workspace / "file.txt").write_bytes(before + b"say \xe2\x80\x98hi\xe2\x80\x99\r\n" + after)
    result = await bench.run("edit", path="file.txt", oldText="say 'hi'\n", newText="say ho\n")

    assert (workspace / "file.txt").read_bytes() == before + b"say ho\r\n" + after
    assert result_text(result) == "Successfully replaced text in file.txt."
    assert result.details["firstChangedLine"] == 4
    assert "+4 say ho" in result.details["diff"]


async def test_edit_takes_a_list(bench: ToolBench, workspace: Path) -> None:
    """Also as the string that some models send."""
    (workspace / "file.txt").write_text("one two three\n")
    edits = '[{"oldText": "one", "newText": "1"}, {"oldText": "three", "newText": "3"}]'

    assert await bench.text("edit", path="file.txt", edits=edits) == "Successfully replaced 2 texts in file.txt."
    assert (workspace / "file.txt").read_text() == "1 two 3\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"oldText": "one", "newText": "one"}, "No changes made to file.txt"),
        ({"oldText": "nine", "newText": "9"}, "Could not find the exact text in file.txt"),
        ({"oldText": "one"}, "go together"),
        ({}, "nothing to replace"),
        ({"path": "missing.txt", "oldText": "a", "newText": "b"}, "File not found: missing.txt"),
    ],
)
async def test_an_edit_that_cannot_be_made_changes_nothing(
    bench: ToolBench, workspace: Path, arguments: dict[str, str], error: str
) -> None:
    """And says why."""
    (workspace / "file.txt").write_text("one two\n")

    with pytest.raises(ModelMustAct, match=error.replace(".", r"\.")):
        await bench.run("edit", **{"path": "file.txt", **arguments})
    assert (workspace / "file.txt").read_text() == "one two\n"


async def test_edits_of_one_file_at_the_same_time_are_all_made(make_bench: MakeBench, workspace: Path) -> None:
    """Tools run in parallel, and two sessions may share a workspace."""
    (workspace / "file.txt").write_text("".join(f"<{number}>\n" for number in range(20)))
    benches = [make_bench(), make_bench()]
    await asyncio.gather(*(benches[n % 2].run("edit", path="file.txt", oldText=f"<{n}>", newText=f"<{n} done>") for n in range(20)))

    assert (workspace / "file.txt").read_text() == "".join(f"<{number} done>\n" for number in range(20))


async def test_ls_sorts_marks_folders_and_shows_hidden_entries(bench: ToolBench, workspace: Path) -> None:
    """Broken links are left out."""
    (workspace / "b.txt").touch()
    (workspace / "A.txt").touch()
    (workspace / ".hidden").mkdir()
    (workspace / "broken").symlink_to("nowhere")

    assert await bench.text("ls") == ".hidden/\nA.txt\nb.txt"
    assert await bench.text("ls", path=".hidden") == "(empty directory)"
    assert (await bench.text("ls", limit=1)).endswith("[1 entries limit reached. Use limit=2 for more]")


@pytest.mark.parametrize(("path", "error"), [("missing", "Path not found: "), ("file.txt", "Not a directory: ")])
async def test_ls_of_what_is_no_folder_is_an_error(bench: ToolBench, workspace: Path, path: str, error: str) -> None:
    """With the path as it was understood."""
    (workspace / "file.txt").touch()

    with pytest.raises(ModelMustAct, match=f"{error}{workspace / path}"):
        await bench.run("ls", path=path)


async def test_a_cancelled_write_leaves_the_old_file_or_the_new_and_nothing_else(bench: ToolBench, workspace: Path) -> None:
    """Stop can come at any moment."""
    (workspace / "file.txt").write_text("old")
    for steps in range(12):
        task = asyncio.create_task(bench.run("write", path="file.txt", content="new" * 100_000))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})

        assert (workspace / "file.txt").read_text() in ("old", "new" * 100_000)
        assert [path.name for path in workspace.iterdir()] == ["file.txt"]
