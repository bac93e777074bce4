"""What the model can do: a tool, a call of it, and what comes back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from features.contracts.messages import TextBlock, UserBlock
from features.contracts.models import ToolSpec

__all__ = ["Tool", "ToolContext", "ToolInvocation", "ToolResult", "text_result"]


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session's tools work.

    ``workspace`` is the place's folder and the working directory; ``roots`` are further folders that file tools may reach, ``readable``
    ones that they may read and not write. ``scratch`` holds full outputs of cut results. ``owner`` says whether an owner started the run:
    without a sandbox, processes are for owners only.
    """

    address: str
    session_id: str
    workspace: Path
    scratch: Path
    roots: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    time_zone: str = "UTC"
    owner: bool = False


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    content: list[UserBlock]
    details: Any = None
    is_error: bool = False


class ToolInvocation(msgspec.Struct, frozen=True, kw_only=True):
    """One call. ``arguments`` have been validated and coerced. ``report`` shows progress: the whole text so far, or its tail."""

    id: str
    arguments: dict[str, Any]
    context: ToolContext
    report: Callable[[str], None]


class Tool(Protocol):
    """Contract.

    - ``run`` raises ModelMustAct for what the model did wrong; any other exception becomes an error result too.
    - ``run`` may be cancelled at any await and then leaves nothing half-written and no process behind.
    - A result is bounded by the tool itself; what was cut is in a file that the result names.
    - ``execution`` sequential makes the whole batch run one after another.
    """

    spec: ToolSpec
    label: str
    prompt_snippet: str
    prompt_guidelines: tuple[str, ...]
    execution: Literal["parallel", "sequential"]

    async def run(self, call: ToolInvocation) -> ToolResult: ...


def text_result(text: str, *, details: Any = None, is_error: bool = False) -> ToolResult:
    """A result of one text block."""
    return ToolResult(content=[TextBlock(text=text)], details=details, is_error=is_error)
