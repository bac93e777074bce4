"""Puts the system prompt together."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import msgspec

from features.contracts.memory import MEMORY_BYTES, MEMORY_FILE
from features.contracts.tools import Tool
from features.system_prompt.guidelines import guidelines
from features.system_prompt.workspace_files import FileHead, WorkspaceFiles

__all__ = ["SystemPromptBuilder", "SystemPromptFacts"]

_INSTRUCTIONS_BYTES = 64 * 1024

_NOTHING = FileHead("", 0, False)
_IDENTITY = (
    "You are the assistant of Pumice, a host for agents that people talk to in chats. You help with questions and with real work: "
    "you read and write files in this chat's workspace, run what your tools allow, and say what you found or did."
)


class SystemPromptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt is made of.

    ``date`` is today in ``time_zone``. ``chat`` is a sentence about the chat and its channel; ``extra`` is the host's own addition.
    ``skills`` says what skills there are. ``host_instructions`` and ``host_memory`` are files for all chats
    of the host, and for all of the owners' chats; None where they are not shown.
    """

    workspace: Path
    tools: Sequence[Tool]
    date: date
    time_zone: str
    chat: str
    skills: str = ""
    host_instructions: Path | None = None
    host_memory: Path | None = None
    extra: str = ""


class SystemPromptBuilder:
    """Serves every session of a host.

    Args:
        identity: the first paragraph, who the model is.
    """

    def __init__(self, identity: str = _IDENTITY) -> None:
        self._identity = identity
        self._files = WorkspaceFiles()

    async def build(self, facts: SystemPromptFacts) -> str:
        """The whole prompt. Each AGENTS.md counts up to 64 KB, each MEMORY.md up to 16 KB."""
        general = await self._head(facts.host_instructions, limit=_INSTRUCTIONS_BYTES)
        instructions = await self._files.head(facts.workspace / "AGENTS.md", limit=_INSTRUCTIONS_BYTES)
        shared = await self._head(facts.host_memory, limit=MEMORY_BYTES)
        memory = await self._files.head(facts.workspace / MEMORY_FILE, limit=MEMORY_BYTES)
        names = {tool.spec.name for tool in facts.tools}
        sections = [
            self._identity.strip(),
            _section("Tools", _tool_lines(facts.tools)),
            _section("How to work", "\n".join(f"- {rule}" for rule in guidelines(facts.tools))),
            _section("How your answers arrive", _delivery(names)),
            facts.extra.strip(),
            _file_section("Instructions for all chats", "", general),
            _file_section("Instructions for this chat", "AGENTS.md", instructions),
            _section("Skills", facts.skills.strip()),
            _file_section("Memory of all the owners' chats", "", shared),
            _file_section("Memory of this chat", MEMORY_FILE, memory),
            _section("Here and now", _surroundings(facts)),
        ]
        return "\n\n".join(section for section in sections if section)

    async def _head(self, path: Path | None, *, limit: int) -> FileHead:
        return _NOTHING if path is None else await self._files.head(path, limit=limit)


def _section(title: str, body: str) -> str:
    return f"# {title}\n\n{body}" if body else ""


def _tool_lines(tools: Sequence[Tool]) -> str:
    if not tools:
        return "You have no tools in this chat; answer from what you know and what you are told."
    return "\n".join(f"- {tool.spec.name}: {tool.prompt_snippet.strip() or _one_line(tool.spec.description)}" for tool in tools)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _delivery(names: set[str]) -> str:
    lines = [
        "- What you write without calling a tool is sent into the chat as Markdown. Keep it short: people read it on a phone.",
        "- Text beside a tool call is at most a passing note; the answer itself belongs into your last message.",
    ]
    if "send" in names:
        lines.append("- A file reaches the person only through `send`; naming its path does not deliver it.")
    return "\n".join(lines)


def _file_section(title: str, name: str, head: FileHead) -> str:
    if not head.text:
        return ""
    body = f"From `{name}` in the workspace:\n\n{head.text}" if name else head.text
    if head.cut:
        rest = "Read the file for the rest." if name else "Tell the person that it has to be shortened."
        body += f"\n\n[{f'`{name}`' if name else 'It'} has {head.size} bytes; only its beginning stands here. {rest}]"
    return _section(title, body)


def _surroundings(facts: SystemPromptFacts) -> str:
    lines = [
        facts.chat.strip(),
        f"Working directory: {facts.workspace.as_posix()}",
        f"Today is {facts.date:%A}, {facts.date.isoformat()}, in the time zone {facts.time_zone}. A person's message says when it came.",
    ]
    return "\n".join(line for line in lines if line)
