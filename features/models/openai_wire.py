"""Requests in the form of OpenAI's Chat Completions API, which many servers speak."""

from typing import Any

from features.contracts.messages import AssistantMessage, ImageBlock, TextBlock, ToolCall, ToolResultMessage, UserBlock, UserMessage
from features.contracts.models import Model, ModelRequest, ThinkingLevel
from features.models.abilities import openai_effort
from features.models.normalise import Legal
from features.models.texts import legal_text
from features.models.wire import encode_json

__all__ = ["encode_messages", "request_head", "system_message"]

_DEFAULT_OUTPUT = 32_000
SEE_IMAGE = "(see the image below)"
IMAGES_OF_TOOLS = "Images that the tools returned:"


def encode_messages(messages: list[Legal], last: bool) -> bytes:
    """A tool message holds only text, so the images of a round of tools follow it in a user message."""
    del last  # the service finds its own cache points
    parts: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            parts.append(_tool_result(message))
            images.extend(_image(block) for block in message.content if isinstance(block, ImageBlock))
            continue
        if images:
            parts.append({"role": "user", "content": [{"type": "text", "text": IMAGES_OF_TOOLS}, *images]})
            images = []
        parts.append(_user(message) if isinstance(message, UserMessage) else _assistant(message))
    if images:
        parts.append({"role": "user", "content": [{"type": "text", "text": IMAGES_OF_TOOLS}, *images]})
    return b",".join(encode_json(part) for part in parts)


def system_message(request: ModelRequest) -> bytes:
    """The first message with a comma, or nothing."""
    system = legal_text(request.system_prompt)
    return encode_json({"role": "system", "content": system}) + b"," if system.strip() else b""


def request_head(model: Model, request: ModelRequest, *, official: bool, max_output: int | None) -> dict[str, Any]:
    """Everything of a request but its messages.

    Args:
        official: OpenAI itself; other servers get no field that only OpenAI knows.
        max_output: the limit that configuration or catalogue know for sure; a server whose window is smaller than a guess would refuse.
    """
    head: dict[str, Any] = {"model": model.id, "stream": True, "stream_options": {"include_usage": True}}
    limit = request.max_output or (min(max_output, _DEFAULT_OUTPUT) if max_output else None)
    if limit is not None:
        head["max_completion_tokens" if official else "max_tokens"] = limit
    if official:
        head["store"] = False
        if request.session_id:
            head["prompt_cache_key"] = request.session_id
    effort = _effort(model, request.thinking, official=official)
    if effort is not None:
        head["reasoning_effort"] = effort
    if request.tools:
        head["tools"] = [
            {"type": "function", "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters}}
            for spec in request.tools
        ]
    return head


def _effort(model: Model, level: ThinkingLevel, *, official: bool) -> str | None:
    if not model.reasoning:
        return None
    if official:
        return openai_effort(model.id, level)
    return None if level == "off" else "low" if level == "minimal" else "high" if level == "xhigh" else level


def _user(message: UserMessage) -> dict[str, Any]:
    assert not isinstance(message.content, str)
    blocks = [_user_block(block) for block in message.content]
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return {"role": "user", "content": blocks[0]["text"]}
    return {"role": "user", "content": blocks}


def _user_block(block: UserBlock) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    return _image(block)


def _image(block: ImageBlock) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}


def _tool_result(message: ToolResultMessage) -> dict[str, Any]:
    text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
    return {"role": "tool", "tool_call_id": message.tool_call_id, "content": text or SEE_IMAGE}


def _assistant(message: AssistantMessage) -> dict[str, Any]:
    text = "\n\n".join(block.text for block in message.content if isinstance(block, TextBlock))
    calls = [
        {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": encode_json(block.arguments).decode()}}
        for block in message.content
        if isinstance(block, ToolCall)
    ]
    part: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        part["tool_calls"] = calls
    return part
