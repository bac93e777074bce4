"""The tool that searches the log; the log itself is tested where it is kept."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from features.contracts.chat import Address
from features.contracts.errors import ModelMustAct
from features.contracts.memory import LoggedText, LogPage
from features.contracts.messages import TextBlock
from features.contracts.tools import ToolContext, ToolInvocation
from features.memory import Memory

PLACE = Address("slack", "T0/C1")
MESSAGES = (
    LoggedText(
        id="2",
        address="slack:T0/C1",
        role="agent",
        name="",
        text="x" * 1000 + " needle " + "y" * 1000,
        at=datetime(2026, 1, 5, 23, 30, tzinfo=UTC),
    ),
    LoggedText(
        id="1", address="slack:T0/C1/9.1", role="person", name="An\nna", text="the needle", at=datetime(2026, 1, 4, 8, 0, tzinfo=UTC)
    ),
)


class Log:
    """Keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    async def search(self, place: str, words: Sequence[str], **bounds: Any) -> LogPage:
        self.asked = {"place": place, "words": list(words), **bounds}
        return LogPage(messages=MESSAGES[: bounds["limit"]], more_before="1" if bounds["limit"] < 2 else None)

    async def message(self, place: str, message_id: str) -> LoggedText | None:
        return next((message for message in MESSAGES if message.id == message_id), None)


class Rig:
    def __init__(self, folder: Path) -> None:
        self.log = Log()
        self.folder = folder
        self.tool = Memory(self.log, folder=lambda place: folder, host_file=None, is_owners=lambda place: False).tools(PLACE)[1]

    async def call(self, **arguments: Any) -> str:
        context = ToolContext(
            address="slack:T0/C1/9.1", session_id="s", workspace=self.folder, scratch=self.folder, time_zone="Europe/Vienna"
        )
        result = await self.tool.run(ToolInvocation(id="c", arguments=arguments, context=context, report=lambda text: None))
        (block,) = result.content
        assert isinstance(block, TextBlock)
        return block.text


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def test_what_is_found_is_shown_short_with_who_and_when(rig: Rig) -> None:
    """In the chat's zone, around the word that was looked for."""
    text = await rig.call(query="needle")

    assert text.startswith("[2] Tue 2026-01-06 00:30 you:\n… xxx")
    assert " needle " in text
    assert "[1] Sun 2026-01-04 09:00 An na, in slack:T0/C1/9.1:\nthe needle" in text
    assert len(text) < 700


async def test_the_place_is_bound_to_it(rig: Rig) -> None:
    """No argument leads to another chat."""
    await rig.call(query="a b", place="slack:T0/C2", address="slack:T0/C2")

    assert rig.log.asked["place"] == "slack:T0/C1"
    assert set(rig.tool.spec.parameters["properties"]) == {"query", "since", "until", "before", "limit", "message"}


async def test_days_are_those_of_the_chat(rig: Rig) -> None:
    """Both are included."""
    await rig.call(since="2026-01-04", until="2026-01-05")

    assert rig.log.asked["since"].isoformat() == "2026-01-04T00:00:00+01:00"
    assert rig.log.asked["until"].isoformat() == "2026-01-06T00:00:00+01:00"


async def test_more_is_offered_and_one_is_shown_whole(rig: Rig) -> None:
    """Page by page."""
    assert "go on with before=1" in await rig.call(limit=1)
    assert len(await rig.call(message="2")) > 2000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"since": "yesterday"}, "YYYY-MM-DD"),
        ({"query": " ".join("abcdefghijk")}, "at most 10 words"),
        ({"message": "77"}, "no message '77' in this chat"),
    ],
)
async def test_what_the_model_did_wrong_is_said(rig: Rig, arguments: dict[str, Any], said: str) -> None:
    """With what would be right."""
    with pytest.raises(ModelMustAct, match=said):
        await rig.call(**arguments)
