"""One extension in one session."""

from collections.abc import Callable

from features.contracts.extensions import ExtensionSpec

__all__ = ["Instance"]

_MAX_REGISTRATIONS = 128


class Instance:
    """What it has registered, and its end.

    While it is activating, a registration is only noted; ``commit`` carries all of them out. What takes one back works before and after.
    ``state`` is ``activating``, ``active``, or in words why it is neither.
    """

    def __init__(self, spec: ExtensionSpec, order: int) -> None:
        self.spec = spec
        self.name = spec.name
        self.order = order
        self.state = "activating"
        self._noted: dict[object, Callable[[], Callable[[], None]]] = {}
        self._undo: dict[object, Callable[[], None]] = {}

    @property
    def active(self) -> bool:
        return self.state == "active"

    def register(self, carry_out: Callable[[], Callable[[], None]]) -> Callable[[], None]:
        """Carry out a registration, now or on ``commit``; gives what takes it back, once.

        Raises:
            RuntimeError: the extension is not at work here any more.
            ValueError: it has registered too much.
        """
        self.check_alive()
        if len(self._noted) + len(self._undo) >= _MAX_REGISTRATIONS:
            raise ValueError(f"an extension may register {_MAX_REGISTRATIONS} things in a session")
        key = object()
        if self.active:
            self._undo[key] = carry_out()
        else:
            self._noted[key] = carry_out

        def take_back() -> None:
            self._noted.pop(key, None)
            if (undo := self._undo.pop(key, None)) is not None:
                undo()

        return take_back

    def commit(self) -> None:
        """Activation is over: what was noted counts from now on."""
        self.state = "active"
        for key, carry_out in list(self._noted.items()):
            del self._noted[key]
            self._undo[key] = carry_out()

    def end(self, why: str) -> None:
        """Take back everything, the last first."""
        self.state = why
        self._noted.clear()
        while self._undo:
            _, undo = self._undo.popitem()
            undo()

    def check_active(self) -> None:
        """Raises RuntimeError where the extension may not act."""
        self.check_alive()
        if not self.active:
            raise RuntimeError(f"extension {self.name!r} may only register things while it is activating; do this in a handler")

    def check_alive(self) -> None:
        if self.state not in ("activating", "active"):
            raise RuntimeError(f"extension {self.name!r} is not at work in this session any more: {self.state}")
