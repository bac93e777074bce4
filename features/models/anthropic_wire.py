"""Requests in the form of Anthropic's Messages API."""

from collections.abc import Sequence
from typing import Any

from features.contracts.messages import (
    AssistantBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)
from features.contracts.models import Model, ModelRequest, ThinkingLevel, ToolSpec
from features.models.abilities import claude_version, thinks_adaptively
from features.models.normalise import Legal
from features.models.texts import legal_text
from features.models.wire import encode_json

__all__ = ["encode_messages", "request_head", "thinking_fields", "user_block"]

_CACHED = {"type": "ephemeral"}
_BUDGETS: dict[ThinkingLevel, int] = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 16384}
_EFFORTS: dict[ThinkingLevel, str] = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
_DEFAULT_OUTPUT = 32_000


def encode_messages(messages: list[Legal], last: bool) -> bytes:
    """Tool results and what the person says after them are one user message, as the API wants it."""
    parts: list[bytes] = []
    said: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, UserMessage):
            assert not isinstance(message.content, str)
            said.extend(user_block(block) for block in message.content)
        elif isinstance(message, ToolResultMessage):
            said.append(_tool_result(message))
        else:
            if said:
                parts.append(encode_json({"role": "user", "content": said}))
                said = []
            parts.append(encode_json({"role": "assistant", "content": [_assistant_block(block) for block in message.content]}))
    if said:
        if last:
            said[-1]["cache_control"] = _CACHED
        parts.append(encode_json({"role": "user", "content": said}))
    return b",".join(parts)


def request_head(model: Model, request: ModelRequest, *, thinking_ok: bool) -> dict[str, Any]:
    """Everything of a request but its messages.

    Args:
        thinking_ok: False where a tool round is going on that began without thinking, which a token budget does not allow.
    """
    head: dict[str, Any] = {"model": model.id, "stream": True}
    base = request.max_output or min(model.max_output, _DEFAULT_OUTPUT)
    head["max_tokens"] = base
    head.update(thinking_fields(model, request.thinking, base, thinking_ok=thinking_ok))
    system = legal_text(request.system_prompt)
    if system.strip():
        head["system"] = [{"type": "text", "text": system, "cache_control": _CACHED}]
    if request.tools:
        head["tools"] = _tools(request.tools)
    return head


def _tools(specs: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = [{"name": spec.name, "description": spec.description, "input_schema": spec.parameters} for spec in specs]
    tools[-1]["cache_control"] = _CACHED
    return tools


def thinking_fields(model: Model, level: ThinkingLevel, base: int, *, thinking_ok: bool) -> dict[str, Any]:
    """What turns thinking on or off, by what the model takes.

    Source: https://platform.claude.com/docs/en/build-with-claude/thinking and its page on effort.
    """
    if not model.reasoning:
        return {}
    family, version = claude_version(model.id)
    if level == "off":
        if family in ("fable", "mythos") or version < (5, 0) or (family == "opus" and version >= (5, 5)):
            return {}  # always on, or off unless asked for
        between = family == "sonnet" and version >= (5, 5)
        return {"thinking": {"type": "between_tools" if between else "disabled"}}
    if thinks_adaptively(model.id):
        effort = _EFFORTS.get(level)
        if effort is None:
            effort = "xhigh" if version >= (4, 7) else "max" if family == "opus" else "high"
        return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}}
    if not thinking_ok:
        return {}
    budget = _BUDGETS[level]
    most = min(base + budget, model.max_output)
    if most <= budget:
        budget = most - 1024
    if budget < 1024:
        return {}
    return {"max_tokens": most, "thinking": {"type": "enabled", "budget_tokens": budget}}


def user_block(block: UserBlock) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    return _image(block)


def _image(block: ImageBlock) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": block.mime_type, "data": block.data}}


def _tool_result(message: ToolResultMessage) -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": message.tool_call_id,
        "content": [user_block(block) for block in message.content],
    }
    if message.is_error:  # the API takes only text there
        result["is_error"] = True
        result["content"] = [block for block in result["content"] if block["type"] == "text"] or [{"type": "text", "text": "(error)"}]
    return result


def _assistant_block(block: AssistantBlock) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolCall):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}
    assert isinstance(block, ThinkingBlock)
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.thinking_signature}
    return {"type": "thinking", "thinking": block.thinking, "signature": block.thinking_signature}
