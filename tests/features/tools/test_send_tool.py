import os
from pathlib import Path

import pytest

from features.contracts.errors import ModelMustAct
from features.tools.testing import RecordingSender, ToolBench


async def test_a_file_is_handed_over_under_its_name(bench: ToolBench, workspace: Path, sender: RecordingSender) -> None:
    """With caption and text."""
    (workspace / "report.pdf").write_bytes(b"%PDF-")
    text = await bench.text("send", path="report.pdf", caption="the report", text="here it is")

    assert text == "Handed over for delivery: report.pdf (5B) and the text."
    [message] = sender.sent
    [file] = message.files
    assert (file.name, file.caption, message.text) == ("report.pdf", "the report", "here it is")
    assert file.path.read_bytes() == b"%PDF-"
    assert file.path.suffix == ".pdf"


async def test_what_is_delivered_is_what_was_sent(bench: ToolBench, workspace: Path, sender: RecordingSender) -> None:
    """Delivery may wait for the network while the model goes on, and a link could be put in the file's place."""
    (workspace / "a.txt").write_text("then")
    await bench.run("send", path="a.txt")
    (workspace / "a.txt").unlink()

    assert sender.sent[0].files[0].path.read_text() == "then"


async def test_a_text_alone_is_handed_over(bench: ToolBench, sender: RecordingSender) -> None:
    """Beside the answer."""
    assert await bench.text("send", text="one moment") == "Handed over for delivery: the text."
    assert [message.text for message in sender.sent] == ["one moment"]


async def test_full_outputs_can_be_sent_and_nothing_else_of_the_hosts(bench: ToolBench, workspace: Path, sender: RecordingSender) -> None:
    """People ask for the whole log."""
    (workspace / ".pumice/tmp").mkdir(parents=True)
    (workspace / ".pumice/tmp/bash-1.log").write_text("log")
    (workspace / ".pumice/other.json").write_text("{}")
    await bench.run("send", path=".pumice/tmp/bash-1.log")

    with pytest.raises(ModelMustAct, match=r"only what is in \.pumice/tmp"):
        await bench.run("send", path=".pumice/other.json")
    assert len(sender.sent) == 1


async def test_a_file_beyond_the_platforms_limit_is_refused_with_the_figures(
    bench: ToolBench, workspace: Path, sender: RecordingSender
) -> None:
    """Sent and never arrived is what people hate most."""
    (workspace / "big.bin").touch()
    os.truncate(workspace / "big.bin", 50 * 1024 * 1024 + 1)

    with pytest.raises(ModelMustAct, match=r"big\.bin has 50\.0MB; at most 50\.0MB can be sent"):
        await bench.run("send", path="big.bin")
    assert sender.sent == []


@pytest.mark.parametrize(
    ("arguments", "error"), [({}, "nothing to send"), ({"path": "gone.txt"}, "File not found"), ({"path": "empty.txt"}, "is empty")]
)
async def test_nothing_is_not_sent(
    bench: ToolBench, workspace: Path, sender: RecordingSender, arguments: dict[str, str], error: str
) -> None:
    """And the model is told."""
    (workspace / "empty.txt").touch()

    with pytest.raises(ModelMustAct, match=error):
        await bench.run("send", **arguments)
    assert sender.sent == []
