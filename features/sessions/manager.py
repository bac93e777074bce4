"""One session in memory."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Self

import msgspec

from features.contracts.clock import Clock
from features.contracts.messages import AssistantMessage, CustomMessage, Message, ToolResultMessage, UserMessage
from features.contracts.models import ThinkingLevel
from features.contracts.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionEntry,
    SessionHeader,
    SessionInfoEntry,
    SessionStore,
    ThinkingLevelChangeEntry,
    TransactionWork,
    TreeNode,
)
from features.sessions.codec import well_formed
from features.sessions.context import BranchContext
from features.sessions.entry_ids import fresh_entry_id
from features.sessions.fork import forked_lines
from features.sessions.timestamps import iso_text
from features.sessions.tree import EntryTree

__all__ = ["SessionManager"]

_FORMAT_VERSION = 3
_MAX_DRAFTS = 4096  # far more than one append brings: a draft that is forgotten before would leave the branch


class SessionManager:
    """The tree of a session with its present branch; the only writer of that session.

    - Every change is in the store before it is seen here. A cancelled call waits for the store and then shows what became of its change,
      so that memory and store never part.
    - Calls from several tasks follow one another; none of their entries ends up beside the branch.
    - ``messages`` grows in place and is replaced by a new list when the branch is rebuilt (``branch_to``, a compaction).
    """

    def __init__(
        self,
        store: SessionStore,
        header: SessionHeader,
        entries: Sequence[SessionEntry],
        leaf_id: str | None,
        *,
        clock: Clock,
        ids: Callable[[], str],
    ) -> None:
        self.header = header
        self._store = store
        self._clock = clock
        self._ids = ids
        self._tree = EntryTree(entries)
        if leaf_id is not None and leaf_id not in self._tree:
            leaf_id = entries[-1].id if entries else None
        self._leaf_id = leaf_id
        self._context = BranchContext.of(self._tree.branch(leaf_id))
        self._name = next((entry.name for entry in reversed(entries) if isinstance(entry, SessionInfoEntry)), "")
        self._drafts: dict[str, None] = {}
        self._changing = asyncio.Lock()

    @classmethod
    async def create(
        cls,
        store: SessionStore,
        scope: str,
        *,
        clock: Clock,
        ids: Callable[[], str],
        cwd: str,
        name: str = "",
        make_current: bool = True,
    ) -> Self:
        """Begin a session in ``scope`` and store it."""
        header = well_formed(SessionHeader(version=_FORMAT_VERSION, id=ids(), timestamp=iso_text(clock.now()), cwd=cwd))
        await store.create(scope, header, make_current=make_current)
        manager = cls(store, header, [], None, clock=clock, ids=ids)
        await manager.set_name(name)
        return manager

    @classmethod
    async def open(cls, store: SessionStore, session_id: str, *, clock: Clock, ids: Callable[[], str]) -> Self:
        """Load a stored session.

        Raises:
            KeyError: it is not there.
        """
        header, entries, leaf_id = await store.load(session_id)
        return cls(store, header, entries, leaf_id, clock=clock, ids=ids)

    @property
    def id(self) -> str:
        return self.header.id

    @property
    def name(self) -> str:
        return self._name

    @property
    def leaf_id(self) -> str | None:
        """The entry that the next one follows; None before the first."""
        return self._leaf_id

    @property
    def messages(self) -> list[Message]:
        """The context of the present branch; to be read, not changed."""
        return self._context.messages

    @property
    def model(self) -> tuple[str, str] | None:
        """Provider and model id of the branch's last model change or answer."""
        return self._context.model

    @property
    def thinking(self) -> ThinkingLevel:
        return self._context.thinking

    @property
    def entries(self) -> Sequence[SessionEntry]:
        """All entries in the order they were appended, those of other branches too."""
        return self._tree.entries

    def entry(self, entry_id: str) -> SessionEntry:
        """KeyError where there is none."""
        return self._tree[entry_id]

    def branch(self, entry_id: str | None = None) -> list[SessionEntry]:
        """The present branch, root first, or the one that ends in an entry.

        Raises:
            KeyError: there is no such entry.
        """
        if entry_id is None:
            return self._tree.branch(self._leaf_id)
        return self._tree.branch(self._tree[entry_id].id)

    def tree(self) -> list[TreeNode]:
        """All entries as a tree, with their labels."""
        return self._tree.roots()

    @property
    def labels(self) -> Mapping[str, str]:
        """Names of entries by their ids."""
        return self._tree.labels

    def new_message_entry(self, message: UserMessage | AssistantMessage | ToolResultMessage | CustomMessage) -> MessageEntry:
        """Make an entry without storing it. Its place is the end of the branch at the time when ``append`` gets it."""
        entry = well_formed(MessageEntry(message=message, **self._place()))
        self._drafts[entry.id] = None
        if len(self._drafts) > _MAX_DRAFTS:  # those that nobody appended
            del self._drafts[next(iter(self._drafts))]
        return entry

    async def append(self, entries: Sequence[SessionEntry], *, also: TransactionWork | None = None) -> None:
        """Store entries, all or none; the last one becomes the leaf.

        An entry follows the parent that it names, which may be any entry of the session or an earlier one of ``entries``; one from
        ``new_message_entry`` follows whatever is last by now.

        Raises:
            KeyError: a parent is not there, or the session has been deleted.
            ValueError: an id is taken.
        """
        async with self._changing:
            await self._append(self._placed(entries), also)

    async def set_model(self, provider: str, model_id: str) -> None:
        async with self._changing:
            if self.model != (provider, model_id):
                entry = ModelChangeEntry(provider=provider, model_id=model_id, **self._place())
                await self._append([entry])

    async def set_thinking(self, level: ThinkingLevel) -> None:
        async with self._changing:
            if self.thinking != level:
                await self._append([ThinkingLevelChangeEntry(thinking_level=level, **self._place())])

    async def set_name(self, name: str) -> None:
        """Name the session, on one line; an empty name takes it away."""
        name = " ".join(name.split())
        async with self._changing:
            if self._name != name:
                await self._append([SessionInfoEntry(name=name, **self._place())])

    async def add_custom(self, custom_type: str, data: Any) -> str:
        """Store an entry that the model never reads; gives its id."""
        async with self._changing:
            entry = CustomEntry(custom_type=custom_type, data=data, **self._place())
            await self._append([entry])
            return entry.id

    async def set_label(self, entry_id: str, label: str) -> None:
        """Name an entry, on one line; an empty name takes it away.

        Raises:
            KeyError: there is no such entry.
        """
        label = " ".join(label.split())
        async with self._changing:
            self._tree[entry_id]
            if self.labels.get(entry_id, "") != label:
                await self._append([LabelEntry(target_id=entry_id, label=label or None, **self._place())])

    async def add_branch_summary(self, entry_id: str | None, summary: str, *, details: Any = None, from_hook: bool = False) -> str:
        """Go on from ``entry_id``, None from before the first entry, with a summary of the branch that is left there; gives its entry.

        Raises:
            KeyError: there is no such entry.
        """
        async with self._changing:
            if entry_id is not None:
                self._tree[entry_id]
            place = self._place() | {"parent_id": entry_id}
            entry = BranchSummaryEntry(from_id=entry_id or "root", summary=summary, details=details, from_hook=from_hook, **place)
            await self._append([entry])
            return entry.id

    async def fork(self, scope: str, entry_id: str | None) -> str:
        """Make a session of its own out of the branch that ends in ``entry_id``, with the names of its entries; gives the session's id.

        It is stored in ``scope`` and is not the current one there. None forks from before the first entry.

        Raises:
            KeyError: there is no such entry, or the session has been deleted.
        """
        header = SessionHeader(
            version=_FORMAT_VERSION, id=self._ids(), timestamp=iso_text(self._clock.now()), cwd=self.header.cwd, parent_session=self.id
        )
        async with self._changing:
            path = [] if entry_id is None else self.branch(entry_id)
            lines = await self._store.lines(self.id)
            await self._store.take_in(scope, header.id, forked_lines(well_formed(header), path, lines, self.labels, ids=self._ids))
        return header.id

    def newest_first(self) -> Iterator[SessionEntry]:
        """The present branch from its end, without looking further than it is read."""
        seen: set[str] = set()
        entry_id = self._leaf_id
        while entry_id is not None and entry_id not in seen and entry_id in self._tree:
            seen.add(entry_id)
            yield self._tree[entry_id]
            entry_id = self._tree[entry_id].parent_id

    async def compact(
        self, summary: str, *, first_kept_entry_id: str, tokens_before: int, since: str, details: Any = None, from_hook: bool = False
    ) -> CompactionEntry:
        """Let a summary stand for what is before ``first_kept_entry_id``.

        Args:
            since: the leaf for which it was written; what has been appended after it stays.

        Raises:
            ValueError: the session has gone to another branch meanwhile.
        """
        async with self._changing:
            ids = {entry.id for entry in self.newest_first()}
            if since not in ids or first_kept_entry_id not in ids:
                raise ValueError("the summary was written for another branch")
            entry = CompactionEntry(
                summary=summary,
                first_kept_entry_id=first_kept_entry_id,
                tokens_before=tokens_before,
                details=details,
                from_hook=from_hook,
                **self._place(),
            )
            await self._append([entry])
            return entry

    async def branch_to(self, entry_id: str | None) -> None:
        """Go on from ``entry_id``, None from before the first entry. What came after it stays in the tree.

        Raises:
            KeyError: there is no such entry.
        """
        async with self._changing:
            if entry_id is not None:
                self._tree[entry_id]

            def show() -> None:
                self._leaf_id = entry_id
                self._rebuild()

            await _carry_through(self._store.set_leaf(self.id, entry_id), show)

    async def _append(self, entries: Sequence[SessionEntry], also: TransactionWork | None = None) -> None:
        entries = [well_formed(entry) for entry in entries]
        leaf = entries[-1].id if entries else self._leaf_id
        await _carry_through(self._store.append(self.id, entries, leaf=leaf, also=also), lambda: self._show(entries))

    def _show(self, entries: Sequence[SessionEntry]) -> None:
        grown = True
        for entry in entries:
            self._tree.add(entry)
            self._drafts.pop(entry.id, None)
            grown = grown and entry.parent_id == self._leaf_id and self._context.extend(entry)
            self._leaf_id = entry.id
            if isinstance(entry, SessionInfoEntry):
                self._name = entry.name
        if not grown:
            self._rebuild()

    def _rebuild(self) -> None:
        self._context = BranchContext.of(self.branch())

    def _placed(self, entries: Sequence[SessionEntry]) -> list[SessionEntry]:
        placed: list[SessionEntry] = []
        ids: set[str] = set()
        leaf = self._leaf_id
        for entry in entries:
            if entry.id in ids or entry.id in self._tree:
                raise ValueError(f"entry {entry.id} is there already")
            if entry.id in self._drafts and entry.parent_id != leaf:
                entry = msgspec.structs.replace(entry, parent_id=leaf)
            if entry.parent_id is not None and entry.parent_id not in ids and entry.parent_id not in self._tree:
                raise KeyError(entry.parent_id)
            placed.append(entry)
            ids.add(entry.id)
            leaf = entry.id
        return placed

    def _place(self) -> dict[str, Any]:
        entry_id = fresh_entry_id(self._ids, lambda short: short in self._tree or short in self._drafts)
        return {"id": entry_id, "parent_id": self._leaf_id, "timestamp": iso_text(self._clock.now())}


async def _carry_through(change: Coroutine[Any, Any, None], show: Callable[[], None]) -> None:
    """Make a change in the store and then ``show`` it, also when cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.create_task(change)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if not task.cancelled() and task.exception() is None:
        show()
    if cancelled is not None:
        raise cancelled
    task.result()
