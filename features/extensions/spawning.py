"""Processes that are started on behalf of a session."""

from features.contracts.errors import ModelMustAct
from features.contracts.extension_events import ProcessSpawning
from features.contracts.processes import ProcessSpawnEvent
from features.extensions.at_work import at_work
from features.extensions.extension_runner import ExtensionRunner

__all__ = ["session_spawn_hook"]


async def session_spawn_hook(event: ProcessSpawnEvent) -> None:
    """Implements ``ProcessSpawnHook``: the extensions of the session whose tool, handler or command starts a process have a say in it.

    Raises:
        ModelMustAct: one of them said no, or failed.
    """
    session = at_work()
    if not isinstance(session, ExtensionRunner) or not session.wants(ProcessSpawning):
        return
    asked = await session.dispatch(ProcessSpawning(event))
    if asked.refusal is not None:
        raise ModelMustAct(f"the process was not started: {asked.refusal}")
