"""The tools of a session: its own, and over them what extensions registered."""

from collections.abc import Callable, Sequence

from features.contracts.tools import Tool

__all__ = ["ToolStacks"]


class ToolStacks:
    """A stack per name. An extension's tool lies over the session's own of that name; of two extensions' the first one is used.

    Whatever is taken away, the next in the stack is used again.
    """

    def __init__(self, own: Sequence[Tool]) -> None:
        self._own = {tool.spec.name: tool for tool in own}
        self._over: dict[str, list[tuple[str, Tool]]] = {}
        self._all: tuple[Tool, ...] = tuple(own)

    @property
    def all(self) -> tuple[Tool, ...]:
        """One tool per name: the session's own first, in their order, then the others in the order of registration."""
        return self._all

    def add(self, owner: str, tool: Tool) -> tuple[str | None, Callable[[], None]]:
        """Gives the extension whose tool of that name stays in use, if there is one, and what takes this one away again."""
        name = tool.spec.name
        stack = self._over.setdefault(name, [])
        before = stack[0][0] if stack else None
        item = owner, tool
        stack.append(item)
        self._changed()

        def remove() -> None:
            left = [other for other in self._over.get(name, ()) if other is not item]
            if left:
                self._over[name] = left
            else:
                self._over.pop(name, None)
            self._changed()

        return before, remove

    def _changed(self) -> None:
        used = {**self._own, **{name: stack[0][1] for name, stack in self._over.items()}}
        self._all = tuple(used.values())
