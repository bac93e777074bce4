"""What a `claude` is told: a conversation that others began, and what is new of one that it holds itself."""

from collections.abc import Sequence
from typing import Any

from features.contracts.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)
from features.models.anthropic_wire import user_block
from features.models.normalise import Legal, Target, finish, normalise_part
from features.models.wire import encode_json

__all__ = ["new_results", "new_words", "opening"]

_BEFORE = "What was said in this conversation so far. It was carried on elsewhere; go on from its end."
_GO_ON = "(please go on)"


def opening(messages: Sequence[Message], target: Target) -> list[dict[str, Any]]:
    """The first message to a process that knows nothing: what was said before as text, then what is new as it is."""
    legal = finish(normalise_part(messages, target, {}))
    last = legal[-1]
    said = _blocks(last) if isinstance(last, UserMessage) else [TextBlock(text=_GO_ON)]
    before = legal[:-1] if isinstance(last, UserMessage) else legal
    told = [] if not before else [TextBlock(text=f"{_BEFORE}\n\n<conversation>\n{_transcript(before)}\n</conversation>")]
    return [user_block(block) for block in (*told, *said)]


def new_words(messages: Sequence[Message], target: Target) -> list[dict[str, Any]] | None:
    """What people said since, or None where something else happened too."""
    if not messages or any(isinstance(message, (AssistantMessage, ToolResultMessage)) for message in messages):
        return None
    legal = normalise_part(messages, target, {})
    if len(legal) != 1 or not isinstance(legal[0], UserMessage):
        return None
    return [user_block(block) for block in _blocks(legal[0])]


def new_results(answer: AssistantMessage, messages: Sequence[Message], target: Target) -> dict[str, ToolResultMessage] | None:
    """The results of the calls of ``answer`` by the calls' ids, or None where one is missing or something else happened too."""
    calls = [block.id for block in answer.content if isinstance(block, ToolCall)]
    given = [message.tool_call_id for message in messages if isinstance(message, ToolResultMessage)]
    if len(given) != len(messages) or sorted(given) != sorted(calls) or len(set(calls)) != len(calls):
        return None
    results = normalise_part([answer, *messages], target, {})[1:]
    return {call: result for call, result in zip(calls, results, strict=True) if isinstance(result, ToolResultMessage)}


def _transcript(legal: Sequence[Legal]) -> str:
    parts: list[str] = []
    for message in legal:
        if isinstance(message, UserMessage):
            parts.append(f"[user]\n{_text(_blocks(message))}")
        elif isinstance(message, ToolResultMessage):
            failed = ", an error" if message.is_error else ""
            parts.append(f"[result of {message.tool_name}{failed}]\n{_text(message.content)}")
        else:
            parts += _assistant(message)
    return "\n\n".join(parts)


def _assistant(message: AssistantMessage) -> list[str]:
    parts: list[str] = []
    for block in message.content:
        if isinstance(block, TextBlock):
            parts.append(f"[assistant]\n{block.text}")
        elif not isinstance(block, ThinkingBlock):
            parts.append(f"[assistant calls {block.name}]\n{encode_json(block.arguments).decode()}")
    return parts


def _text(blocks: Sequence[UserBlock]) -> str:
    return "\n".join("(an image)" if isinstance(block, ImageBlock) else block.text for block in blocks)


def _blocks(message: UserMessage) -> list[UserBlock]:
    assert not isinstance(message.content, str)
    return message.content
