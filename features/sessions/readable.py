"""A session for people to read: what each entry says, whatever it is written in."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from features.contracts.messages import (
    AssistantMessage,
    BashExecutionMessage,
    CustomMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    message_text,
)
from features.contracts.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UnknownEntry,
)

__all__ = ["Part", "Passage", "passage"]


class Part(NamedTuple):
    """``text`` is Markdown for ``text``, base64 for ``image``, and plain otherwise; ``about`` is a tool's name or an image's type."""

    kind: Literal["text", "thinking", "call", "output", "image", "failure"]
    text: str
    about: str = ""


class Passage(NamedTuple):
    """One entry. ``note`` is for what is no message: a change of the model, a compaction."""

    entry_id: str
    who: str
    when: str
    label: str
    parts: Sequence[Part]
    note: str = ""


def passage(entry: SessionEntry, labels: Mapping[str, str]) -> Passage | None:
    """None for what people need not see: names, labels, the state of extensions."""
    who = note = ""
    parts: list[Part] = []
    match entry:
        case MessageEntry():
            who, parts = _message(entry)
        case CustomMessageEntry() if entry.display:
            who, parts = entry.custom_type, _blocks(entry.content)
        case CompactionEntry():
            note, parts = f"Compacted from {entry.tokens_before:,} tokens", [Part("text", entry.summary)]
        case BranchSummaryEntry():
            note, parts = "Summary of a branch that was left", [Part("text", entry.summary)]
        case ModelChangeEntry():
            note = f"Model: {entry.provider}/{entry.model_id}"
        case ThinkingLevelChangeEntry():
            note = f"Thinking: {entry.thinking_level}"
        case SessionInfoEntry() if entry.name:
            note = f"Named: {entry.name}"
        case UnknownEntry():
            note = "An entry of a kind that is not known here"
        case _:
            return None
    return Passage(entry.id, who, entry.timestamp[:16].replace("T", " "), labels.get(entry.id, ""), parts, note)


def _message(entry: MessageEntry) -> tuple[str, list[Part]]:
    message = entry.message
    match message:
        case AssistantMessage():
            parts = [_answer_part(block) for block in message.content]
            if message.error_message:
                parts.append(Part("failure", message.error_message))
            return f"{message.provider}/{message.model}", parts
        case ToolResultMessage():
            kind: Literal["failure", "output"] = "failure" if message.is_error else "output"
            return message.tool_name, [
                Part("image", block.data, block.mime_type) if isinstance(block, ImageBlock) else Part(kind, block.text, message.tool_name)
                for block in message.content
            ]
        case BashExecutionMessage():
            return "person", [Part("output", message_text(message), "bash")]
        case CustomMessage():
            return message.custom_type, _blocks(message.content)
        case _:
            return "person", _blocks(message.content)


def _answer_part(block: TextBlock | ThinkingBlock | ToolCall) -> Part:
    if isinstance(block, ThinkingBlock):
        return Part("thinking", block.thinking)
    if isinstance(block, ToolCall):
        arguments = block.invalid_arguments or msgspec.json.format(msgspec.json.encode(block.arguments), indent=2).decode()
        return Part("call", arguments, block.name)
    return Part("text", block.text)


def _blocks(content: str | Sequence[UserBlock]) -> list[Part]:
    if isinstance(content, str):
        return [Part("text", content)]
    return [Part("image", block.data, block.mime_type) if isinstance(block, ImageBlock) else Part("text", block.text) for block in content]
