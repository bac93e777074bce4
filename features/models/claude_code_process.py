"""One `claude` and the conversation that it holds."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message
from mcp import types as mcp
from mcp.server import Server

from features.contracts.messages import AssistantMessage, ImageBlock, ToolResultMessage
from features.contracts.messages import Message as OurMessage
from features.contracts.models import Model, ModelRequest, ThinkingLevel, ToolSpec
from features.models.anthropic_wire import thinking_fields
from features.models.claude_code_transport import ClaudeTransport
from features.models.claude_code_turn import TOOL_PREFIX, ClaudeTurn
from features.models.failures import UpstreamFailure
from features.models.texts import legal_text
from features.models.wire import encode_json

__all__ = ["ClaudeProcess", "ClaudeTurn", "Launch"]

_SERVER = TOOL_PREFIX.split("__")[1]
_CALL_ID = "claudecode/toolUseId"


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is started with; a call that wants something else needs another one."""

    model: Model
    thinking: ThinkingLevel
    system_prompt: str
    tools: tuple[ToolSpec, ...]

    @classmethod
    def of(cls, model: Model, request: ModelRequest) -> "Launch":
        return cls(model=model, thinking=request.thinking, system_prompt=legal_text(request.system_prompt), tools=tuple(request.tools))


class ClaudeProcess:
    """It has no tools but the agent's: a call of one waits here for its result, which the agent gives with its next model call.

    ``known`` are the messages that it was told, ``answer`` what it said last; ``waits`` says that it waits for results.
    """

    def __init__(self, program: str, environment: Mapping[str, str], launch: Launch) -> None:
        self.launch = launch
        self.known: Sequence[OurMessage] = ()
        self.answer: AssistantMessage | None = None
        self.waits = False
        self._folder = tempfile.TemporaryDirectory(prefix="pumice-claude-", ignore_cleanup_errors=True)
        prompt = Path(self._folder.name) / "system-prompt.txt"
        prompt.write_text(launch.system_prompt, encoding="utf-8")
        command = [program, *_flags(launch, prompt)]
        self._transport = ClaudeTransport(command, {**environment, "PWD": self._folder.name}, self._folder.name)
        self._results: dict[str, asyncio.Future[mcp.CallToolResult]] = {}
        options = ClaudeAgentOptions(
            mcp_servers={_SERVER: {"type": "sdk", "name": _SERVER, "instance": self._server(launch.tools)}}, verbatim_prompts=True
        )
        self._client = ClaudeSDKClient(options, transport=self._transport)
        self._messages: AsyncGenerator[Message, None] | None = None
        self._heard: Message | None = None

    async def start(self) -> None:
        """Raises the SDK's errors, or OSError where the program cannot be started."""
        await self._client.connect()
        self._messages = self._client.receive_messages()  # type: ignore[assignment]  # it is a generator, though declared an iterator

    async def say(self, content: list[dict[str, Any]]) -> None:
        message = {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}

        async def one() -> AsyncGenerator[dict[str, Any], None]:
            yield message

        await self._client.query(one())

    def give(self, results: Mapping[str, ToolResultMessage]) -> None:
        for call_id, result in results.items():
            future = self._result(call_id)
            if not future.done():
                future.set_result(_mcp_result(result))

    async def hear(self, patience_s: float) -> bool:
        """Wait for the next message without taking it; False when there will be no more."""
        self._heard = await self.next(patience_s)
        return self._heard is not None

    async def next(self, patience_s: float) -> Message | None:
        """The next message; None when there will be no more.

        Raises:
            UpstreamFailure: nothing came for that long.
        """
        if self._heard is not None:
            message, self._heard = self._heard, None
            return message
        assert self._messages is not None
        try:
            async with asyncio.timeout(patience_s):
                return await anext(self._messages, None)
        except TimeoutError:
            raise UpstreamFailure("network", f"claude said nothing for {patience_s:g} s") from None

    def kill(self) -> None:
        """End it now; ``close`` only cleans up behind it."""
        self._transport.kill()

    async def close(self) -> None:
        self.kill()
        with suppress(Exception):  # it is dead already, however it takes that
            await self._client.disconnect()
        if self._messages is not None:
            with suppress(Exception):
                await self._messages.aclose()
        await self._transport.close()
        await asyncio.to_thread(self._folder.cleanup)

    def _server(self, tools: Sequence[ToolSpec]) -> "Server[Any]":
        offered = [
            mcp.Tool.model_validate({"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}) for tool in tools
        ]

        async def list_tools(context: Any, parameters: Any) -> mcp.ListToolsResult:
            return mcp.ListToolsResult(tools=offered)

        async def call_tool(context: Any, parameters: mcp.CallToolRequestParams) -> mcp.CallToolResult:
            meta: Mapping[str, Any] = parameters.meta or {}
            return await self._result(str(meta.get(_CALL_ID, "")))

        return Server(_SERVER, version="1", on_list_tools=list_tools, on_call_tool=call_tool)

    def _result(self, call_id: str) -> "asyncio.Future[mcp.CallToolResult]":
        """Of a call, whichever comes first: that it is called here, or that its result is known."""
        future = self._results.get(call_id)
        if future is None:
            future = self._results[call_id] = asyncio.get_running_loop().create_future()
        return future


def _flags(launch: Launch, prompt: Path) -> list[str]:
    servers = encode_json({"mcpServers": {_SERVER: {"type": "sdk", "name": _SERVER}}}).decode()
    flags = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--include-partial-messages"]
    flags += ["--model", launch.model.id, "--system-prompt-file", str(prompt)]  # in a file, because others may read command lines
    flags += ["--tools", "", "--mcp-config", servers, "--strict-mcp-config", "--allowedTools", TOOL_PREFIX.removesuffix("__")]
    flags += ["--permission-mode", "dontAsk", "--setting-sources=", "--no-session-persistence"]
    return flags + _thinking(launch)


def _thinking(launch: Launch) -> list[str]:
    fields = thinking_fields(launch.model, launch.thinking, 32_000, thinking_ok=True)
    thinking = fields.get("thinking", {})
    match thinking.get("type"):
        case "adaptive":
            return ["--thinking", "adaptive", "--thinking-display", "summarized", "--effort", fields["output_config"]["effort"]]
        case "enabled":
            return ["--max-thinking-tokens", str(thinking["budget_tokens"])]
        case "disabled":
            return ["--thinking", "disabled"]
        case _:
            return []


def _mcp_result(result: ToolResultMessage) -> mcp.CallToolResult:
    content = [
        {"type": "image", "data": block.data, "mimeType": block.mime_type}
        if isinstance(block, ImageBlock)
        else {"type": "text", "text": block.text}
        for block in result.content
    ]
    return mcp.CallToolResult.model_validate({"content": content, "isError": result.is_error})
