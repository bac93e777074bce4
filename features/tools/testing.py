"""Doubles and a bench for tests of tools."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from features.contracts.chat import OutboundMessage
from features.contracts.messages import TextBlock
from features.contracts.tools import ToolContext, ToolInvocation, ToolResult
from features.tools.registry import ToolRegistry

__all__ = ["RecordingSender", "ToolBench", "result_text"]


class RecordingSender:
    """A ``ChatSender`` that keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[OutboundMessage] = []

    async def __call__(self, message: OutboundMessage) -> None:
        self.sent.append(message)


class ToolBench:
    """Runs tools as a session does: validated first, in one workspace."""

    def __init__(
        self, registry: ToolRegistry, workspace: Path, *, owner: bool = True, roots: Sequence[Path] = (), readable: Sequence[Path] = ()
    ) -> None:
        self.registry = registry
        self.reports: list[str] = []
        self.calls = 0
        self.context = ToolContext(
            address="telegram:1",
            session_id="session",
            workspace=workspace,
            scratch=workspace / ".pumice" / "tmp",
            roots=tuple(roots),
            readable=tuple(readable),
            time_zone="Europe/Vienna",
            owner=owner,
        )

    async def run(self, name: str, **arguments: Any) -> ToolResult:
        tool = self.registry.get(name)
        assert tool is not None, name
        self.calls += 1
        checked = self.registry.validate(tool, arguments)
        return await tool.run(ToolInvocation(id=f"call-{self.calls}", arguments=checked, context=self.context, report=self.reports.append))

    async def text(self, name: str, **arguments: Any) -> str:
        return result_text(await self.run(name, **arguments))


def result_text(result: ToolResult) -> str:
    """The text blocks of a result, joined by line ends."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextBlock))
