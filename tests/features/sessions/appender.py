"""A process that appends until it is killed, saying after each append which entry is stored: ``session entry``.

Usage: ``python -m tests.features.sessions.appender DATABASE``
"""

import asyncio
import os
import sys
from pathlib import Path

from bot.clock import SystemClock
from bot.ids import new_id
from features.sessions import SESSION_MIGRATIONS, DatabaseSessionStore, SessionManager
from features.sessions.testing import append_message, user
from features.storage import Database


async def _append_forever(store: DatabaseSessionStore, scope: str) -> None:
    manager = await SessionManager.create(store, scope, clock=SystemClock(), ids=new_id, cwd="/")
    while True:
        entry_id = await append_message(manager, user("some words " * 200))
        os.write(1, f"{manager.id} {entry_id}\n".encode())


async def _main(path: Path) -> None:
    async with Database(path, [SESSION_MIGRATIONS]) as database, asyncio.TaskGroup() as tasks:
        store = DatabaseSessionStore(database)
        for chat in range(4):
            tasks.create_task(_append_forever(store, f"web:{chat}"))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
