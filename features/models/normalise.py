"""Making a transcript legal for the model that reads it next.

A session's messages come from several models, from crashes and from imports. Here they become user messages, assistant messages and
tool results that any service accepts: every call directly followed by its one result, roles in turn, nothing blank, nothing foreign.

The work is done window by window. A window is an assistant message that survives and all that stands before the next one; results are
paired by id within it. So whatever stands before a surviving assistant message never changes again, and a long history costs nothing twice.
"""

import re
from collections import deque
from collections.abc import Iterable

import msgspec

from features.contracts.messages import (
    AssistantBlock,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserBlock,
    UserMessage,
    message_text,
)
from features.models.texts import legal_text, legal_value, stamp, zone

__all__ = ["Legal", "Target", "close_end", "finish", "normalise_part", "survives"]

Legal = UserMessage | AssistantMessage | ToolResultMessage
"""What remains after normalisation. User messages have a list of blocks and timestamp 0."""

NO_OUTPUT = "(no output)"
NO_RESULT = "(no result: the call was interrupted)"
EMPTY_MESSAGE = "(empty message)"
OPENING = "(the conversation goes on here)"
CONTINUE = "(please go on)"
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_NO_USAGE = Usage()
_ILLEGAL_IN_ID = re.compile(r"[^a-zA-Z0-9_-]")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Who reads the transcript.

    ``thinking`` says whether the service takes a model's own signed thinking back, ``unsigned_thinking`` whether its own thinking
    without a signature is told to it as text. ``refused_images`` are images (their data) that it could not take before.
    """

    provider: str
    api: str
    model: str
    images: bool
    thinking: bool
    unsigned_thinking: bool = True
    time_zone: str = "UTC"
    id_limit: int = 40
    refused_images: frozenset[str] = frozenset()


def survives(message: Message) -> bool:
    """Whether an assistant message certainly stays in the transcript, and so closes all that stands before it."""
    if not isinstance(message, AssistantMessage) or message.stop_reason in ("error", "aborted"):
        return False
    return any(isinstance(block, ToolCall) or (isinstance(block, TextBlock) and _shown(block.text)) for block in message.content)


def normalise_part(messages: Iterable[Message], target: Target, used_ids: dict[str, int]) -> list[Legal]:
    """Normalise a stretch that begins at the start or at a surviving assistant message. ``used_ids`` grows."""
    legal: list[Legal] = []
    window: list[Message] = []
    for message in messages:
        if survives(message):
            _close(window, target, used_ids, legal)
            window = []
        window.append(message)
    _close(window, target, used_ids, legal)
    return legal


def finish(legal: list[Legal]) -> list[Legal]:
    """Let the conversation begin and end with the user's side, as every service wants it."""
    if not legal or not isinstance(legal[0], UserMessage):
        legal.insert(0, _user([TextBlock(text=OPENING)]))
    return close_end(legal)


def close_end(legal: list[Legal]) -> list[Legal]:
    if isinstance(legal[-1], AssistantMessage):
        legal.append(_user([TextBlock(text=CONTINUE)]))
    return legal


def _close(window: list[Message], target: Target, used_ids: dict[str, int], legal: list[Legal]) -> None:
    """Put one window: the assistant message that opens it, its results, then what people said."""
    calls: list[tuple[str, ToolCall]] = []
    results: dict[str, deque[ToolResultMessage]] = {}
    dropped: set[str] = set()
    said: list[UserBlock] = []
    for position, message in enumerate(window):
        if isinstance(message, ToolResultMessage):
            if message.tool_call_id not in dropped:
                results.setdefault(message.tool_call_id, deque()).append(message)
        elif not isinstance(message, AssistantMessage):
            said.extend(_user_blocks(message, target))
        elif position == 0 and survives(message):
            _put_assistant(message, target, used_ids, legal, calls)
        else:  # failed or empty: its results go with it
            dropped.update(block.id for block in message.content if isinstance(block, ToolCall))
    for old_id, call in calls:
        waiting = results.get(old_id)
        legal.append(_result(call, waiting.popleft() if waiting else None, target))
    if said:
        _put_user(said, legal)


def _put_user(blocks: list[UserBlock], legal: list[Legal]) -> None:
    last = legal[-1] if legal else None
    if isinstance(last, UserMessage) and not isinstance(last.content, str):
        legal[-1] = _user([*last.content, *blocks])
    else:
        legal.append(_user(blocks))


def _put_assistant(
    message: AssistantMessage, target: Target, used_ids: dict[str, int], legal: list[Legal], calls: list[tuple[str, ToolCall]]
) -> None:
    content = _assistant_blocks(message, target)
    for index, block in enumerate(content):
        if isinstance(block, ToolCall):
            call = _call(block, used_ids, target.id_limit)
            calls.append((block.id, call))
            content[index] = call
    last = legal[-1] if legal else None
    if isinstance(last, AssistantMessage):  # its calls, if any, would have results in between
        content = [*last.content, *content]
        legal.pop()
    legal.append(
        AssistantMessage(
            content=content,
            api=target.api,
            provider=target.provider,
            model=target.model,
            usage=_NO_USAGE,
            stop_reason="stop",
            timestamp=0,
        )
    )


def _assistant_blocks(message: AssistantMessage, target: Target) -> list[AssistantBlock]:
    same = (message.provider, message.api, message.model) == (target.provider, target.api, target.model)
    content: list[AssistantBlock] = []
    for block in message.content:
        if isinstance(block, ThinkingBlock):
            kept = _thinking(block, same=same, target=target)
            if kept is not None:
                content.append(kept)
        elif isinstance(block, TextBlock):
            text = legal_text(block.text)
            if text.strip():
                content.append(block if same and text is block.text else TextBlock(text=text))
        else:
            content.append(block if same else msgspec.structs.replace(block, thought_signature=None))
    while content and isinstance(content[-1], ThinkingBlock):  # no service takes thinking as the last thing said
        content.pop()
    return content


def _thinking(block: ThinkingBlock, *, same: bool, target: Target) -> AssistantBlock | None:
    """Signed thinking goes back to its own model byte for byte; another model reads it as text."""
    if same and not target.thinking:
        return None
    if same and block.thinking_signature:
        return block if legal_text(block.thinking) is block.thinking else None
    if same and not target.unsigned_thinking:
        return None
    text = legal_text(block.thinking)
    return TextBlock(text=text) if text.strip() and not block.redacted else None


def _call(block: ToolCall, used_ids: dict[str, int], limit: int) -> ToolCall:
    stem = _ILLEGAL_IN_ID.sub("_", block.id.partition("|")[0])[:limit] or "call"
    new_id, number = stem, used_ids.get(stem, 0)
    while new_id in used_ids:
        number += 1
        suffix = f"_{number}"
        new_id = stem[: limit - len(suffix)] + suffix
    used_ids[stem] = number  # where to go on if the id comes again
    used_ids.setdefault(new_id, 0)
    name = _ILLEGAL_IN_ID.sub("_", block.name)[:64] or "unknown"
    arguments = legal_value(block.arguments)
    if new_id == block.id and name == block.name and arguments is block.arguments:
        return block
    return msgspec.structs.replace(block, id=new_id, name=name, arguments=arguments)


def _result(call: ToolCall, message: ToolResultMessage | None, target: Target) -> ToolResultMessage:
    content: list[UserBlock]
    if message is None:
        content, is_error = [TextBlock(text=NO_RESULT)], True
    else:
        content, is_error = _blocks(message.content, target, "tool image"), message.is_error
    return ToolResultMessage(
        tool_call_id=call.id, tool_name=call.name, content=content or [TextBlock(text=NO_OUTPUT)], is_error=is_error, timestamp=0
    )


def _user_blocks(
    message: UserMessage | CustomMessage | BashExecutionMessage | CompactionSummaryMessage | BranchSummaryMessage, target: Target
) -> list[UserBlock]:
    if isinstance(message, BashExecutionMessage):
        return [] if message.exclude_from_context else [TextBlock(text=legal_text(message_text(message)))]
    if isinstance(message, CompactionSummaryMessage):
        return [_summary("What was said before was summarised to save room:", message.summary)]
    if isinstance(message, BranchSummaryMessage):
        if not message.summary.strip():
            return []
        return [_summary("The conversation took another path for a while and came back. What happened there:", message.summary)]
    content = [TextBlock(text=message.content)] if isinstance(message.content, str) else message.content
    blocks = _blocks(content, target, "image")
    time = stamp(message.timestamp, zone(target.time_zone)) if isinstance(message, UserMessage) else ""
    if not blocks:
        return [TextBlock(text=time + EMPTY_MESSAGE)]
    if time:
        first = blocks[0]
        if isinstance(first, TextBlock):
            blocks[0] = TextBlock(text=time + first.text)
        else:
            blocks.insert(0, TextBlock(text=time.rstrip()))
    return blocks


def _summary(introduction: str, summary: str) -> TextBlock:
    return TextBlock(text=f"{introduction}\n\n<summary>\n{legal_text(summary)}\n</summary>")


def _blocks(content: Iterable[UserBlock], target: Target, noun: str) -> list[UserBlock]:
    """Legal blocks: blank ones left out, an image that the model cannot see named instead, several in a row once."""
    blocks: list[UserBlock] = []
    for block in content:
        if isinstance(block, TextBlock):
            text = legal_text(block.text)
            if text.strip():
                blocks.append(block if text is block.text and block.text_signature is None else TextBlock(text=text))
            continue
        reason = _why_omitted(block, target)
        if reason is None:
            blocks.append(block)
            continue
        note = f"({noun} omitted: {reason})"
        last = blocks[-1] if blocks else None
        if not isinstance(last, TextBlock) or last.text != note:
            blocks.append(TextBlock(text=note))
    return blocks


def _why_omitted(image: ImageBlock, target: Target) -> str | None:
    if not target.images:
        return "model does not support images"
    if image.mime_type not in IMAGE_TYPES:
        return f"{legal_text(image.mime_type) or 'its type'} is no type that the model can see"
    if not image.data or image.data in target.refused_images:
        return "the service could not read it"
    return None


def _shown(text: str) -> bool:
    """Whether anything of a text remains once it is legal."""
    return bool(text and legal_text(text).strip())


def _user(blocks: list[UserBlock]) -> UserMessage:
    return UserMessage(content=blocks, timestamp=0)
