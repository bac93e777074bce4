"""A disk that is full for a while."""

from pathlib import Path

import pytest

from features.agent.testing import ScriptedProvider, answers
from features.contracts.errors import OperatorMustAct
from tests.bot.conversations.rig import Rig, eventually, opened


class FullDisk:
    """Refuses every write until there is room again."""

    def __init__(self, rig: Rig) -> None:
        self._write = rig.database.write
        self.full = False
        rig.database.write = self._refuse

    async def _refuse(self, work):  # type: ignore[no-untyped-def]
        if self.full:
            raise OperatorMustAct("The disk is full. Make room.")
        return await self._write(work)


async def test_nothing_is_acknowledged_that_is_not_stored(tmp_path: Path) -> None:
    """The platform keeps it and delivers it again."""
    async with opened(tmp_path, ScriptedProvider(answers("here"))) as rig:
        disk = FullDisk(rig)
        message = rig.chat().message("hello")
        disk.full = True
        with pytest.raises(OperatorMustAct):
            await rig.inbox.accept([message])
        disk.full = False
        await rig.inbox.accept([message])

        assert (await rig.chat().answer()).text == "here"


async def test_a_run_that_cannot_be_stored_is_told_once_there_is_room(tmp_path: Path) -> None:
    """Never silence: the person hears of it, late, and the message counts as answered by that."""
    async with opened(tmp_path, ScriptedProvider(answers("lost"))) as rig:
        disk = FullDisk(rig)
        taken = rig._hand_over

        def full_from_here(stored: object) -> None:
            disk.full = True
            taken(stored)  # type: ignore[arg-type]

        rig.inbox._hand_over = full_from_here
        rig.chat().says("hello")
        await eventually(lambda: rig.clock.sleepers >= 1)
        assert rig.chat().shown == []
        disk.full = False
        await rig.clock.advance(20)

        answer = await rig.chat().answer()
        assert answer.text == "lost" or "disk" in answer.text
        await rig.idle()
        assert await rig.inbox_states() == ["answered"]


async def test_what_is_wrong_with_a_turn_is_told_once_there_is_room(tmp_path: Path) -> None:
    """A turn that failed while its failure could not be told either is not forgotten until the next start."""
    async with opened(tmp_path, ScriptedProvider(), model="scripted/none") as rig:
        rig.chat().says("makes the session")
        assert "scripted/none" in (await rig.chat().answer()).text
        disk = FullDisk(rig)
        message = rig.chat().message("hello")
        await rig.idle()
        taken = rig._hand_over

        def full_from_here(stored: object) -> None:
            disk.full = True
            taken(stored)  # type: ignore[arg-type]

        rig.inbox._hand_over = full_from_here
        await rig.inbox.accept([message])
        await eventually(lambda: rig.clock.sleepers >= 1)
        disk.full = False
        await rig.clock.advance(20)

        assert "scripted/none" in (await rig.chat().answer()).text
        await rig.idle()
        assert await rig.inbox_states() == ["answered", "answered"]


async def test_an_answer_that_was_sent_is_not_sent_again_because_that_could_not_be_written(tmp_path: Path) -> None:
    """The chat goes on; only a restart would send it again, marked."""
    async with opened(tmp_path, ScriptedProvider(answers("one"), answers("two"))) as rig:
        disk = FullDisk(rig)
        rig.channel.gate.clear()
        rig.chat().says("first")
        await eventually(lambda: len(rig.outbox._lanes) == 1)
        disk.full = True
        rig.channel.gate.set()
        assert (await rig.chat().answer()).text == "one"
        await eventually(lambda: not rig.outbox._lanes)
        disk.full = False
        rig.chat().says("second")

        assert (await rig.chat().answer()).text == "two"
        assert len(rig.chat().shown) == 2
