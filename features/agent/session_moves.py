"""Where a conversation goes on: another place of its tree, a fork of it, another session."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

from features.agent.interruption import RunStopped
from features.agent.session_state import SessionState
from features.contracts.errors import UserMustAct
from features.contracts.extension_events import (
    BeforeSessionDelete,
    BeforeSessionFork,
    BeforeSessionSwitch,
    BeforeTree,
    ExtensionEvent,
    GateEvent,
    ModelSelected,
    SessionForked,
    SessionSwitched,
    TreeMoved,
)
from features.contracts.messages import UserMessage, message_text
from features.contracts.sessions import MessageEntry, SessionEntry
from features.sessions import SessionManager

__all__ = ["SessionMoves"]

E = TypeVar("E", bound=ExtensionEvent)


class SessionMoves:
    """The gate comes first; then the run is stopped and has settled; then the change; then the event. A refused gate changes nothing.

    ``going_on`` is True while the place is being changed: no run may begin then.

    Args:
        tell: hands an event to the session's extensions and returns when they have dealt with it.
        stop: stops what goes on, and returns when that has settled.
        summarise: notes on entries, oldest first; None where nothing was said on them.

    Raises, from every call that a gate is asked for:
        UserMustAct: an extension does not allow it; everything is as it was.
    """

    def __init__(
        self,
        state: SessionState,
        *,
        tell: Callable[[ExtensionEvent], Awaitable[object]],
        stop: Callable[[], Awaitable[object]],
        summarise: Callable[[Sequence[SessionEntry], str], Awaitable[tuple[str, Any] | None]],
    ) -> None:
        self.tell = tell
        self.going_on = False
        self._state = state
        self._stop = stop
        self._summarise = summarise

    async def move_to(self, entry_id: str | None, *, summarise: bool = False, instructions: str = "", label: str | None = None) -> None:
        """Go on from an entry, None from before the first. What was said after it stays in the tree.

        Args:
            summarise: whether notes on the branch that is left are taken along.
            instructions: what the notes are to look at above all.
            label: names the place.

        Raises:
            KeyError: there is no such entry.
            PumiceError: there are no notes to be had; the place is as it was.
        """
        if entry_id is not None:
            self._manager.entry(entry_id)
        if entry_id != self._manager.leaf_id:
            await self._go(entry_id, summarise=summarise, instructions=instructions, label=label)

    async def undo(self) -> str:
        """Go back to before what a person said last; gives that text.

        Raises:
            UserMustAct: nobody has said anything on this branch.
        """
        last = self._last_said("There is nothing to take back: nobody has said anything here yet.")
        await self.move_to(last.parent_id)
        return message_text(last.message)

    async def rewind(self) -> None:
        """Go back to what a person said last, so that it is answered anew.

        Raises:
            UserMustAct: nobody has said anything on this branch.
        """
        await self._go(self._last_said("There is nothing to answer again: nobody has said anything here yet.").id)

    async def fork(self, entry_id: str | None = None, *, before: bool = False) -> str:
        """Make a session of its own out of the branch up to an entry, None for all of it; gives its id.

        Args:
            before: leave out the entry itself.

        Raises:
            KeyError: there is no such entry.
            UserMustAct: there is nothing to fork.
        """
        end = entry_id if entry_id is not None else self._manager.leaf_id
        if end is None:
            raise UserMustAct("There is nothing to fork: this conversation is empty.")
        entry = self._manager.entry(end)
        await self._ask(BeforeSessionFork(end), "Nothing was forked")
        await self._stop()
        return await self._manager.fork(self._state.tool_context.address, entry.parent_id if before else end)

    async def forked_from(self, previous: str) -> None:
        """Tell the extensions of a fork where it comes from."""
        await self.tell(SessionForked(previous))

    async def switched_from(self, reason: Literal["new", "resume"], previous: str) -> None:
        """Tell the extensions of a session that took another's place."""
        await self.tell(SessionSwitched(reason, previous))

    async def ask_to_switch(self, reason: Literal["new", "resume"], target: str | None) -> None:
        """Whether the chat may go to another session; ``target`` is its id, None for a new one."""
        await self._ask(BeforeSessionSwitch(reason, target), "I stay in this session")

    async def ask_to_delete(self, session_id: str) -> None:
        await self._ask(BeforeSessionDelete(session_id), "Nothing was deleted")

    @property
    def _manager(self) -> SessionManager:
        return self._state.transcript.manager

    async def _go(self, entry_id: str | None, *, summarise: bool = False, instructions: str = "", label: str | None = None) -> None:
        gate = await self._ask(
            BeforeTree(entry_id, self._left_behind(entry_id), wants_summary=summarise, instructions=instructions, label=label),
            "I stay where we are",
        )
        await self._stop()
        self.going_on = True
        try:
            old = self._manager.leaf_id
            notes = await self._notes(entry_id, gate) if summarise else None
            if notes is not None:
                text, details = notes
                place: str | None = await self._manager.add_branch_summary(
                    entry_id, text, details=details, from_hook=gate.summary is not None
                )
            else:
                await self._manager.branch_to(entry_id)
                place = entry_id
            if gate.label is not None and place is not None:
                await self._manager.set_label(place, gate.label)
            before = self._state.model, self._state.thinking
            self._follow_branch()
        finally:
            self.going_on = False
        await self.tell(TreeMoved(old, self._manager.leaf_id))
        if before != (self._state.model, self._state.thinking):
            await self.tell(ModelSelected(self._state.model, self._state.thinking, "restore"))

    async def _ask(self, gate: E, otherwise: str) -> E:
        await self.tell(gate)
        if isinstance(gate, GateEvent) and gate.refusal is not None:
            raise UserMustAct(f"{otherwise}: {gate.refusal}")
        return gate

    async def _notes(self, target: str | None, gate: BeforeTree) -> tuple[str, Any] | None:
        """What an extension wrote, else what the model writes; the stopped run may have left more behind than the gate was shown."""
        if gate.summary is not None:
            return self._state.services.redaction.text(gate.summary), None
        try:
            return await self._summarise(self._left_behind(target), gate.instructions)
        except RunStopped:
            raise UserMustAct("Stopped. Everything is as it was.") from None

    def _left_behind(self, target: str | None) -> list[SessionEntry]:
        """The entries of the present branch that are not on the way to ``target``."""
        staying = set() if target is None else {entry.id for entry in self._manager.branch(target)}
        return [entry for entry in self._manager.branch() if entry.id not in staying]

    def _last_said(self, otherwise: str) -> MessageEntry:
        for entry in self._manager.newest_first():
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
                return entry
        raise UserMustAct(otherwise)

    def _follow_branch(self) -> None:
        """Take the model and the thinking level of the branch, as opening the session there would."""
        state, manager = self._state, self._manager
        if manager.model is not None and manager.model != (state.model.provider, state.model.id):
            with suppress(UserMustAct):  # it is not to be had any more; the present one goes on
                state.model = state.services.models.resolve("/".join(manager.model))
        if manager.model is not None or manager.thinking != "off":
            state.thinking = manager.thinking
        state.transcript.follow(state.model, state.thinking)
