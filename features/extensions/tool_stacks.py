"""The tools of a session: its own, and over them what extensions registered."""

from collections.abc import Callable, Sequence

from features.contracts.tools import Tool
from features.extensions.stacks import Stacks

__all__ = ["ToolStacks"]


class ToolStacks:
    """An extension's tool takes the place of the session's own of that name; of two extensions' the first one is used.

    Whatever is taken away, the next in the stack is used again. ``off`` are names that the model is not offered.
    """

    def __init__(self, own: Sequence[Tool]) -> None:
        self.off: frozenset[str] = frozenset()
        self._own = {tool.spec.name: tool for tool in own}
        self._over: Stacks[Tool] = Stacks()
        self._all: tuple[Tool, ...] = tuple(own)

    @property
    def all(self) -> tuple[Tool, ...]:
        """One tool per name: the session's own first, in their order, then the others in the order of registration."""
        return self._all

    @property
    def active(self) -> tuple[Tool, ...]:
        return tuple(tool for tool in self._all if tool.spec.name not in self.off) if self.off else self._all

    def add(self, owner: str, tool: Tool) -> tuple[str | None, Callable[[], None]]:
        """Gives the extension whose tool of that name stays in use, if there is one, and what takes this one away again."""
        before, remove = self._over.add(owner, tool.spec.name, tool)
        self._changed()

        def remove_and_change() -> None:
            remove()
            self._changed()

        return before, remove_and_change

    def _changed(self) -> None:
        self._all = tuple({**self._own, **{name: tool for name, _, tool in self._over}}.values())
