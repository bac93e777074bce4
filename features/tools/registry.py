"""The tools of one session."""

from collections.abc import Sequence
from typing import Any

import msgspec

from features.contracts.chat import ChatSender
from features.contracts.models import ToolSpec
from features.contracts.processes import ProcessRunner
from features.contracts.tools import Tool
from features.tools.bash_tool import BashTool
from features.tools.edit_tool import EditTool
from features.tools.find_tool import FindTool
from features.tools.grep_tool import GrepTool
from features.tools.ls_tool import LsTool
from features.tools.read_tool import ReadTool
from features.tools.send_tool import SendTool
from features.tools.validation import ArgumentValidator
from features.tools.web.public_addresses import Refusal, Resolver, refusal
from features.tools.write_tool import WriteTool

__all__ = ["ToolOptions", "ToolRegistry"]


class ToolOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the built-in tools need. ``send`` is None where there is no chat to send into; the tool is left out then.

    ``sandboxed`` says that processes are kept to the workspace; bash is then for everybody who is admitted, else for owners alone.
    ``web_resolver`` finds the addresses of a host, the machine's own where it is None; ``web_refusal`` says of an address why it may not
    be reached, and as it stands lets the public internet through and nothing else. ``further`` are tools of other slices.
    """

    processes: ProcessRunner
    send: ChatSender | None = None
    sandboxed: bool = False
    disabled: tuple[str, ...] = ()
    bash_timeout_s: float = 120
    max_result_bytes: int = 51_200
    max_result_lines: int = 2000
    web_max_bytes: int = 5_000_000
    web_timeout_s: float = 20
    web_resolver: Resolver | None = None
    web_refusal: Refusal = refusal
    further: tuple[Tool, ...] = ()


class ToolRegistry:
    """Tools by name, in the order given."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools: tuple[Tool, ...] = tuple(tools)
        self._by_name = {tool.spec.name: tool for tool in self.tools}
        if len(self._by_name) != len(self.tools):
            raise ValueError(f"two tools have the same name: {sorted(tool.spec.name for tool in self.tools)}")
        self._validators: dict[str, tuple[Tool, ArgumentValidator]] = {}

    @classmethod
    def built_in(cls, options: ToolOptions) -> "ToolRegistry":
        max_bytes, max_lines = options.max_result_bytes, options.max_result_lines
        tools: list[Tool] = [
            ReadTool(max_bytes=max_bytes, max_lines=max_lines),
            WriteTool(),
            EditTool(),
            BashTool(
                options.processes, sandboxed=options.sandboxed, timeout_s=options.bash_timeout_s, max_bytes=max_bytes, max_lines=max_lines
            ),
            GrepTool(max_bytes=max_bytes),
            FindTool(max_bytes=max_bytes),
            LsTool(max_bytes=max_bytes),
        ]
        if options.send is not None:
            tools.append(SendTool(options.send))
        tools += [_web_fetch(options), *options.further]
        return cls([tool for tool in tools if tool.spec.name not in options.disabled])

    def specs(self) -> list[ToolSpec]:
        return [tool.spec for tool in self.tools]

    def get(self, name: str) -> Tool | None:
        return self._by_name.get(name)

    def validate(self, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments in the types that the tool asks for; a copy, ``arguments`` stay as they came.

        Raises:
            ModelMustAct: they do not fit; the text names every error and shows what was received.
        """
        known = self._validators.get(tool.spec.name)
        if known is None or known[0] is not tool:  # another tool may have taken the name
            known = self._validators[tool.spec.name] = tool, ArgumentValidator(tool.spec)
        return known[1].validate(arguments)


def _web_fetch(options: ToolOptions) -> Tool:
    from features.tools.web.guarded_network import resolve
    from features.tools.web.page_fetcher import PageFetcher
    from features.tools.web.web_fetch_tool import WebFetchTool

    fetcher = PageFetcher(
        resolver=options.web_resolver or resolve,
        refusal=options.web_refusal,
        max_bytes=options.web_max_bytes,
        timeout_s=options.web_timeout_s,
    )
    return WebFetchTool(fetcher, max_bytes=options.max_result_bytes, max_lines=options.max_result_lines)
