"""A host that keeps its one conversation in a session file instead of its database."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from features.contracts.clock import Clock
from features.contracts.database import Database
from features.sessions import JsonlSessionStore

__all__ = ["SessionFileHost"]


class SessionFileHost(msgspec.Struct, frozen=True, kw_only=True):
    """What such a host is told. ``scope`` is the chat whose session the file is; ``warn`` is told what was amiss in the file.

    ``state_dir`` takes the place of the data directory for all that the host needs while it lives, so that it runs beside another host.
    The chat's workspace stays in the data directory.
    """

    path: Path
    scope: str
    state_dir: Path
    warn: Callable[[str], None]

    def open(self, database: Database, *, clock: Clock, ids: Callable[[], str]) -> JsonlSessionStore:
        """
        Raises:
            UserMustAct: the file is in use, or is no session; it is left as it is.
        """
        path = self.path.resolve()
        store = JsonlSessionStore.on_file(path, self.scope, cwd=str(Path.cwd()), clock=clock, ids=ids, books=database)
        for warning in store.warnings:
            self.warn(f"{self.path}: {warning}")
        return store
