"""Puts the system prompt together."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import msgspec

from features.contracts.tools import Tool
from features.system_prompt.guidelines import guidelines
from features.system_prompt.workspace_files import FileHead, WorkspaceFiles

__all__ = ["SystemPromptBuilder", "SystemPromptFacts"]

_INSTRUCTIONS_BYTES = 64 * 1024
_MEMORY_BYTES = 16 * 1024

_IDENTITY = (
    "You are the assistant of Pumice, a host for agents that people talk to in chats. You help with questions and with real work: "
    "you read and write files in this chat's workspace, run what your tools allow, and say what you found or did."
)


class SystemPromptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt is made of.

    ``date`` is today in ``time_zone``. ``chat`` is a sentence about the chat and its channel; ``extra`` is the host's own addition.
    """

    workspace: Path
    tools: Sequence[Tool]
    date: date
    time_zone: str
    chat: str
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
        """The whole prompt. AGENTS.md counts up to 64 KB, MEMORY.md up to 16 KB."""
        instructions = await self._files.head(facts.workspace / "AGENTS.md", limit=_INSTRUCTIONS_BYTES)
        memory = await self._files.head(facts.workspace / "MEMORY.md", limit=_MEMORY_BYTES)
        names = {tool.spec.name for tool in facts.tools}
        sections = [
            self._identity.strip(),
            _section("Tools", _tool_lines(facts.tools)),
            _section("How to work", "\n".join(f"- {rule}" for rule in guidelines(facts.tools))),
            _section("How your answers arrive", _delivery(names)),
            facts.extra.strip(),
            _file_section("Instructions for this chat", "AGENTS.md", instructions),
            _file_section("Memory", "MEMORY.md", memory),
            _section("Here and now", _surroundings(facts)),
        ]
        return "\n\n".join(section for section in sections if section)


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
    body = f"From `{name}` in the workspace:\n\n{head.text}"
    if head.cut:
        body += f"\n\n[`{name}` has {head.size} bytes; only its beginning stands here. Read the file for the rest.]"
    return _section(title, body)


def _surroundings(facts: SystemPromptFacts) -> str:
    lines = [
        facts.chat.strip(),
        f"Working directory: {facts.workspace.as_posix()}",
        f"Today is {facts.date:%A}, {facts.date.isoformat()}, in the time zone {facts.time_zone}. A person's message says when it came.",
    ]
    return "\n".join(line for line in lines if line)
