"""What may be done unasked."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from features.approvals.simple_command import CommandPattern

__all__ = ["ApprovalOptions", "Policy"]

Policy = Literal["allow", "ask", "deny"]

_LONGEST_TIMEOUT_S = 840.0
"""The gate of a call is closed by its own deadline a minute later."""
_MCP = "mcp"


class ApprovalOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The ``[approvals]`` section.

    ``tools`` has the policy of each tool by name, ``bash`` among them; what is not there is allowed. ``mcp`` stands for all tools of MCP
    servers that are not named themselves.

    Raises:
        ValueError: a pattern is none, or the time is longer than a call can wait; the text begins with the key.
    """

    tools: Mapping[str, Policy] = {}
    allow_commands: tuple[str, ...] = ()
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        self.patterns()
        if not 0 < self.timeout_s <= _LONGEST_TIMEOUT_S:
            raise ValueError(f"timeout_s is {self.timeout_s:g}; it must be above 0 and at most {_LONGEST_TIMEOUT_S:g}")

    def patterns(self) -> tuple[CommandPattern, ...]:
        return tuple(_parsed(number, text) for number, text in enumerate(self.allow_commands))

    def key(self, tool: str) -> str:
        """The key under which a tool's policy stands."""
        return _MCP if tool not in self.tools and tool.startswith(f"{_MCP}_") else tool

    @property
    def asks(self) -> bool:
        """Whether there is anything that is not simply allowed."""
        return any(policy != "allow" for policy in self.tools.values())

    def policy(self, tool: str) -> Policy:
        return self.tools.get(self.key(tool), "allow")


def _parsed(number: int, text: str) -> CommandPattern:
    try:
        return CommandPattern.parse(text)
    except ValueError as problem:
        raise ValueError(f"allow_commands[{number}] is {text!r}; {problem}") from None
