"""How much of a text's end could be the beginning of a pattern."""

from array import array
from collections.abc import Iterable

__all__ = ["PrefixAutomaton"]


class PrefixAutomaton:
    """Aho-Corasick over the patterns' prefixes, kept for its depth: a text of n characters costs O(n).

    The trie is laid out as the sorted patterns one behind the other without what each shares with the one before. A node is a position in
    that row; its first child is the next position, further children (few) are in ``_branches``.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._characters: list[str] = [""]
        self._depth = array("L", [0])
        self._chained = bytearray([0])
        self._branches: dict[tuple[int, str], int] = {}
        self._lay_out(sorted(set(patterns)))
        self._fail = array("L", bytes(self._depth.itemsize * len(self._depth)))
        self._link()

    def step(self, node: int, text: str) -> int:
        """The node after ``text``, coming from ``node``; 0 is the beginning."""
        for character in text:
            while (child := self._child(node, character)) == 0 and node:
                node = self._fail[node]
            node = child
        return node

    def held(self, node: int) -> int:
        """Length of the longest end of the text that a pattern goes on from."""
        while node and not self._goes_on(node):
            node = self._fail[node]
        return self._depth[node]

    def _child(self, node: int, character: str) -> int:
        if self._chained[node] and self._characters[node + 1] == character:
            return node + 1
        return self._branches.get((node, character), 0)

    def _goes_on(self, node: int) -> bool:
        # A sorted row puts a node's first child right behind it, so whoever has branches is chained as well.
        return bool(self._chained[node])

    def _lay_out(self, patterns: list[str]) -> None:
        path = [0]
        previous = ""
        for pattern in patterns:
            shared = 0
            while shared < len(previous) and shared < len(pattern) and previous[shared] == pattern[shared]:
                shared += 1
            del path[shared + 1 :]
            for character in pattern[shared:]:
                parent, node = path[-1], len(self._characters)
                if node == parent + 1:
                    self._chained[parent] = 1
                else:
                    self._branches[parent, character] = node
                self._characters.append(character)
                self._depth.append(len(path))
                self._chained.append(0)
                path.append(node)
            previous = pattern

    def _link(self) -> None:
        """Set each node's failure link, level by level."""
        children: dict[int, list[int]] = {}
        for (parent, _), node in self._branches.items():
            children.setdefault(parent, []).append(node)
        level = [0]
        while level:
            following: list[int] = []
            for parent in level:
                nodes = ([parent + 1] if self._chained[parent] else []) + children.get(parent, [])
                for node in nodes:
                    if parent:
                        self._fail[node] = self.step(self._fail[parent], self._characters[node])
                following.extend(nodes)
            level = following
