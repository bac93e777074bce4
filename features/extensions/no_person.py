"""A session without anybody to ask."""

from collections.abc import Sequence
from typing import Literal

__all__ = ["NoPerson"]


class NoPerson:
    """Implements ``UserInterface``: every question gets the safe answer at once, and nobody reads what is told."""

    interactive = False

    async def confirm(self, title: str, message: str = "", *, timeout_s: float | None = None) -> bool:
        return False

    async def select(
        self, title: str, options: Sequence[str], *, timeout_s: float | None = None, owners_only: Sequence[str] = ()
    ) -> str | None:
        return None

    async def input(self, title: str, placeholder: str = "", *, timeout_s: float | None = None) -> str | None:
        return None

    def status(self, key: str, text: str | None) -> None:
        return

    async def notify(self, message: str, kind: Literal["info", "warning", "error"] = "info") -> None:
        return
