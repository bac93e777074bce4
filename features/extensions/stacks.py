"""What extensions register under a name that only one of them can have."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["Stacks"]

T = TypeVar("T")


class Stacks(Generic[T]):
    """A stack per name: the first that came is used; when it is taken away, the next is."""

    def __init__(self) -> None:
        self._stacks: dict[str, list[tuple[str, T]]] = {}

    def __iter__(self) -> Iterator[tuple[str, str, T]]:
        """Name, owner and thing of each that is used, in the order of registration."""
        for name, stack in self._stacks.items():
            yield name, *stack[0]

    def get(self, name: str) -> tuple[str, T] | None:
        """Owner and thing."""
        stack = self._stacks.get(name)
        return stack[0] if stack else None

    def add(self, owner: str, name: str, thing: T) -> tuple[str | None, Callable[[], None]]:
        """Gives whose thing of that name stays in use, if there is one, and what takes this one away again."""
        stack = self._stacks.setdefault(name, [])
        before = stack[0][0] if stack else None
        item = owner, thing
        stack.append(item)

        def remove() -> None:
            left = [other for other in self._stacks.get(name, ()) if other is not item]
            if left:
                self._stacks[name] = left
            else:
                self._stacks.pop(name, None)

        return before, remove
