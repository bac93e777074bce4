"""The entries of one session, linked by their parents."""

from collections.abc import Mapping, Sequence

import msgspec

from features.contracts.sessions import CompactionEntry, LabelEntry, SessionEntry, TreeNode

__all__ = ["EntryTree", "joined_over", "parents_in_circles"]


class EntryTree:
    """Entries in the order they came, each once. ``labels`` names entries by their id; the last label entry counts."""

    def __init__(self, entries: Sequence[SessionEntry]) -> None:
        self.entries = list(entries)
        self.labels: dict[str, str] = {}
        self._by_id = {entry.id: entry for entry in self.entries}
        for entry in self.entries:
            if type(entry) is LabelEntry:
                self._label(entry)

    def __contains__(self, entry_id: str) -> bool:
        return entry_id in self._by_id

    def __getitem__(self, entry_id: str) -> SessionEntry:
        """KeyError where there is none."""
        return self._by_id[entry_id]

    def add(self, entry: SessionEntry) -> None:
        self.entries.append(entry)
        self._by_id[entry.id] = entry
        if isinstance(entry, LabelEntry):
            self._label(entry)

    def roots(self) -> list[TreeNode]:
        """The whole tree. What hangs on an entry that is not there begins a tree of its own; a circle is cut where it begins."""
        nodes = {entry.id: TreeNode(entry=entry, label=self.labels.get(entry.id), children=[]) for entry in self.entries}
        cut = set(parents_in_circles(self.entries))
        roots: list[TreeNode] = []
        for entry in self.entries:
            parent = None if entry.parent_id is None or entry.id in cut else nodes.get(entry.parent_id)
            (roots if parent is None else parent.children).append(nodes[entry.id])
        return roots

    def _label(self, entry: LabelEntry) -> None:
        if entry.label:
            self.labels[entry.target_id] = entry.label
        else:
            self.labels.pop(entry.target_id, None)

    def branch(self, leaf: str | None) -> list[SessionEntry]:
        """From the root to ``leaf``. A parent that is not there ends it, and so does a circle of parents."""
        path: list[SessionEntry] = []
        seen: set[str] = set()
        while leaf is not None and leaf not in seen and (entry := self._by_id.get(leaf)) is not None:
            seen.add(leaf)
            path.append(entry)
            leaf = entry.parent_id
        path.reverse()
        return path


def joined_over(entries: list[SessionEntry], leaf: str | None, lost: Mapping[str, str | None]) -> tuple[list[SessionEntry], str | None]:
    """Hang the children of lost entries onto the nearest ancestor that is left, and move the leaf likewise.

    Args:
        lost: the lost entries' ids and parents.
    """

    def standing(entry_id: str | None) -> str | None:
        passed: set[str] = set()
        while entry_id is not None and entry_id in lost:
            if entry_id in passed:  # a circle
                return None
            passed.add(entry_id)
            entry_id = lost[entry_id]
        return entry_id

    joined: list[SessionEntry] = []
    for entry in entries:
        if entry.parent_id in lost:
            entry = msgspec.structs.replace(entry, parent_id=standing(entry.parent_id))
        if isinstance(entry, CompactionEntry) and entry.first_kept_entry_id in lost:
            # One entry too many in the context is better than none of what the compaction kept.
            first_kept = standing(entry.first_kept_entry_id) or next((earlier.id for earlier in joined), entry.id)
            entry = msgspec.structs.replace(entry, first_kept_entry_id=first_kept)
        joined.append(entry)
    return joined, standing(leaf)


def parents_in_circles(entries: Sequence[SessionEntry]) -> list[str]:
    """One entry of each circle of parents: with these as roots there is no circle left."""
    parents = {entry.id: entry.parent_id for entry in entries}
    settled: set[str] = set()
    found: list[str] = []
    for start in parents:
        path: set[str] = set()
        at: str | None = start
        while at is not None and at in parents and at not in settled and at not in path:
            path.add(at)
            at = parents[at]
        if at in path:
            found.append(at)
        settled |= path
    return found
