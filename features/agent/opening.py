"""What the extensions of a session are told when it has been opened."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from features.agent.session_state import SessionState
from features.contracts.extension_events import ModelSelected, ResourcesDiscovered, SessionStarted

__all__ = ["Began", "tell_model", "tell_opened"]

Began = Literal["startup", "new", "resume", "fork", "reload"]


async def tell_opened(state: SessionState, began: Began, *, restored: bool) -> None:
    """
    Args:
        restored: model and thinking level are those that the branch names.
    """
    extensions = state.extensions
    if extensions.wants(SessionStarted):
        await extensions.dispatch(SessionStarted(began))
    if restored:
        await tell_model(state, "restore")
    found = ResourcesDiscovered("reload" if began == "reload" else "startup")
    if extensions.wants(ResourcesDiscovered):
        await extensions.dispatch(found)
    _take_resources(state, found.skill_paths, found.template_paths)


async def tell_model(state: SessionState, source: Literal["set", "restore"]) -> None:
    if state.extensions.wants(ModelSelected):
        await state.extensions.dispatch(ModelSelected(state.model, state.thinking, source))


def _take_resources(state: SessionState, skills: Sequence[Path], templates: Sequence[Path]) -> None:
    """Search what extensions bring, and let the tools read the skills in it."""
    if state.skills is not None:
        state.skills.bring(skills, templates)
    folders = [path.parent if path.suffix == ".md" else path for path in skills]
    if folders:
        context = state.tool_context
        state.tool_context = msgspec.structs.replace(context, readable=(*context.readable, *folders))
