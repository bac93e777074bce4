"""What people do with the sessions of an address and the tree of the present one."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bot.conversations.runs import Runs
from bot.conversations.services import ConversationServices
from bot.conversations.session_seat import SessionSeat
from features.agent import AgentSession
from features.contracts.chat import Address, OutboundFile
from features.contracts.errors import UserMustAct
from features.contracts.messages import UserMessage, message_text
from features.contracts.session_transfer import ExportFormat
from features.contracts.sessions import MessageEntry, SessionEntry, SessionSummary, TreeNode

__all__ = ["Arrival", "SessionMoves", "TreeShown"]

T = TypeVar("T")

_SHORTEST_PREFIX = 4


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """Where a move has led. ``said`` is what a person said there, to be said again or otherwise; ``left`` is where it went on before.

    ``at`` is the text of the last message before the new place; empty at the beginning.
    """

    at: str
    said: str = ""
    left: str | None = None


class TreeShown(msgspec.Struct, frozen=True, kw_only=True):
    roots: Sequence[TreeNode]
    branch: Sequence[str]
    """The ids of the present branch, root first."""


class SessionMoves:
    """Every move asks the session's gates first and stops what goes on only then; see ``features.agent.session_moves``.

    ``cancel`` gives up a move that is still on its way; whoever asked for it hears that everything is as it was.

    Args:
        halt: stops the run and what is being prepared for one, and returns when what it owes is in the outbox.
        again: starts a run that answers what stands at the end of the branch.
    """

    def __init__(
        self,
        address: Address,
        services: ConversationServices,
        seat: SessionSeat,
        runs: Runs,
        *,
        halt: Callable[[], Awaitable[object]],
        again: Callable[[AgentSession, bool], Awaitable[None]],
    ) -> None:
        self._address = address
        self._services = services
        self._seat = seat
        self._runs = runs
        self._halt = halt
        self._again = again
        self._moving: asyncio.Task[Any] | None = None

    # The sessions of the address

    async def start_new(self, name: str = "") -> str:
        """Begin a fresh session; gives its id.

        Raises:
            UserMustAct: an extension does not allow it.
        """
        present = await self._present()
        if present is not None:
            await present.moves.ask_to_switch("new", None)
        await self._halt()
        session = await self._seat.start_new(name)
        if present is not None:
            await session.moves.switched_from("new", present.id)
        return session.id

    async def resume(self, written: str) -> str:
        """Go back to one of this address's sessions, by its id or a unique beginning of it; gives its name.

        Raises:
            UserMustAct: there is none, or more than one, or an extension does not allow it.
        """
        found = await self._seat.find(written)
        present = await self._present()
        if present is not None and present.id != found.id:
            await present.moves.ask_to_switch("resume", found.id)
        await self._halt()
        session = await self._seat.switch(found.id)
        if present is not None and present.id != found.id:
            await session.moves.switched_from("resume", present.id)
        return session.name

    async def delete(self, written: str) -> None:
        """Delete one of this address's sessions for good.

        Raises:
            UserMustAct: there is none, or more than one, or an extension does not allow it.
        """
        found = await self._seat.find(written)
        present = await self._present()
        if present is not None:
            await present.moves.ask_to_delete(found.id)
            if present.id == found.id:
                await self._halt()
        await self._seat.delete(found.id)

    async def list(self) -> list[SessionSummary]:
        return await self._seat.list()

    async def rename(self, text: str) -> None:
        await (await self._seat.get()).set_name(text)

    async def export(self, form: ExportFormat) -> OutboundFile:
        """The present session as a file.

        Raises:
            UserMustAct: there is none yet.
        """
        session = await self.there()
        exported = await self._services.transfer.export(session.id, form)
        folder = self._services.opener.scratch(self._address.place)
        path = folder / exported.name
        await asyncio.to_thread(_write, path, exported.data)
        return OutboundFile(path=path, name=exported.name)

    # The tree of the present session

    async def tree(self) -> TreeShown:
        """
        Raises:
            UserMustAct: there is no session yet.
        """
        manager = (await self.there()).manager
        return TreeShown(roots=manager.tree(), branch=[entry.id for entry in manager.branch()])

    async def go_to(self, written: str, *, summarise: bool = False, instructions: str = "") -> Arrival:
        """Go on from an entry, by its id, a unique beginning of it, or its label; from before it, where a person said it.

        Raises:
            UserMustAct: there is none, or an extension does not allow it.
        """
        session = await self.there()
        entry = _entry(session, written)
        said = _said(entry)
        target = entry.id if said is None else entry.parent_id
        left = session.manager.leaf_id
        await self._moved(session, session.move_to(target, summarise=summarise, instructions=instructions))
        return Arrival(at=_last_text(session), said=said or "", left=left)

    async def undo(self) -> Arrival:
        """
        Raises:
            UserMustAct: there is nothing to take back, or an extension does not allow it.
        """
        session = await self.there()
        left = session.manager.leaf_id
        said = await self._moved(session, session.undo())
        return Arrival(at=_last_text(session), said=said, left=left)

    async def retry(self, *, owner: bool) -> None:
        """Answer anew what was said last; returns once that is on its way.

        Raises:
            UserMustAct: there is nothing to answer again, or an extension does not allow it.
        """
        session = await self.there()
        await self._moved(session, session.moves.rewind())
        await self._again(session, owner)

    async def fork(self, written: str = "") -> Arrival:
        """Go on in a session of its own that holds the branch up to an entry, or all of it; the present one stays as it is.

        Raises:
            UserMustAct: there is no such entry, or nothing to fork, or an extension does not allow it.
        """
        session = await self.there()
        entry = _entry(session, written) if written else None
        said = None if entry is None else _said(entry)
        forked = await self._moved(session, session.moves.fork(None if entry is None else entry.id, before=said is not None))
        other = await self._seat.switch(forked, began="fork")
        await other.moves.forked_from(session.id)
        return Arrival(at=_last_text(other), said=said or "")

    async def label(self, name: str) -> str:
        """Name the place where the conversation is, or take its name away; gives the text that stands there.

        Raises:
            UserMustAct: nothing has been said yet.
        """
        session = await self.there()
        entry = next((entry for entry in session.manager.newest_first() if isinstance(entry, MessageEntry)), None)
        if entry is None:
            raise UserMustAct("There is nothing here yet that could have a name.")
        await session.label(entry.id, name)
        return message_text(entry.message)

    def cancel(self) -> bool:
        """Give up the move that is on its way; False where there is none."""
        if self._moving is None:
            return False
        self._moving.cancel()
        return True

    async def _moved(self, session: AgentSession, move: Coroutine[Any, Any, T]) -> T:
        """Carry a move out; what a run that was stopped by it owes is in the outbox when this returns."""
        task = self._moving = asyncio.create_task(move, name=f"move {self._address}")
        try:
            await asyncio.wait([task])
        finally:
            self._moving = None
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            if not session.running:  # else a gate said no, and it goes on
                await self._runs.settled()
        if task.cancelled():
            raise UserMustAct("Stopped. We are where we were.")
        result: T = task.result()
        return result

    async def _present(self) -> AgentSession | None:
        """The session at work, opened if need be, because its extensions have a say; None where the address has none yet.

        One that cannot be opened has no say: it must not keep people in it.
        """
        try:
            return await self.there()
        except UserMustAct:
            return None

    async def there(self) -> AgentSession:
        """The session at work, opened if need be.

        Raises:
            UserMustAct: there is none here yet.
        """
        if self._seat.current is None and await self._services.opener.store.current(str(self._address)) is None:
            raise UserMustAct("There is no session here yet. Just write something.")
        return await self._seat.get()


def _entry(session: AgentSession, written: str) -> SessionEntry:
    manager = session.manager
    wanted = written.strip()
    labelled = [entry_id for entry_id, label in manager.labels.items() if label.casefold() == wanted.casefold()]
    exact = [entry for entry in manager.entries if entry.id == wanted]
    found = exact or [entry for entry in manager.entries if entry.id in labelled]
    if not found and len(wanted) >= _SHORTEST_PREFIX:
        found = [entry for entry in manager.entries if entry.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserMustAct(f"{len(found)} places could be meant by that. `/tree` shows their ids.")
    raise UserMustAct("There is no such place in this session. `/tree` shows them.")


def _said(entry: SessionEntry) -> str | None:
    """What a person said in an entry; None where it was nobody."""
    return message_text(entry.message) if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage) else None


def _last_text(session: AgentSession) -> str:
    found = (entry for entry in session.manager.newest_first() if isinstance(entry, MessageEntry))
    return next((text for entry in found if (text := message_text(entry.message).strip())), "")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
