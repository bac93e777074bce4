"""Requests in the form of OpenAI's Responses API.

What the service made goes back without the ids of its items, because they name things that it was told not to store; reasoning
alone is the whole item as it came, which the service can decrypt.
"""

from typing import Any

import msgspec

from features.contracts.messages import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)
from features.contracts.models import Model, ModelRequest
from features.models.abilities import openai_effort
from features.models.normalise import Legal
from features.models.texts import legal_text
from features.models.wire import encode_json

__all__ = ["TextSignature", "encode_messages", "request_head"]

_DEFAULT_OUTPUT = 32_000


class TextSignature(msgspec.Struct, frozen=True, kw_only=True):
    """What a text block remembers of its item; newer models mark whether a text is a comment on the way or the answer."""

    v: int = 1
    id: str = ""
    phase: str | msgspec.UnsetType = msgspec.UNSET


def encode_messages(messages: list[Legal], last: bool) -> bytes:
    del last  # the service finds its own cache points
    items: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, UserMessage):
            assert not isinstance(message.content, str)
            items.append({"role": "user", "content": [_user_block(block) for block in message.content]})
        elif isinstance(message, ToolResultMessage):
            items.append({"type": "function_call_output", "call_id": message.tool_call_id, "output": _output(message)})
        else:
            items += _assistant(message)
    return b",".join(encode_json(item) for item in items)


def request_head(model: Model, request: ModelRequest, *, max_output: int | None) -> dict[str, Any]:
    """Everything of a request but its messages."""
    head: dict[str, Any] = {"model": model.id, "stream": True, "store": False}
    limit = request.max_output or (min(max_output, _DEFAULT_OUTPUT) if max_output else None)
    if limit is not None:
        head["max_output_tokens"] = max(limit, 16)  # fewer are refused
    if request.session_id:
        head["prompt_cache_key"] = request.session_id
    system = legal_text(request.system_prompt)
    if system.strip():
        head["instructions"] = system
    if model.reasoning:
        head["include"] = ["reasoning.encrypted_content"]
        effort = openai_effort(model.id, request.thinking)
        if effort is not None:
            head["reasoning"] = {"effort": effort} if request.thinking == "off" else {"effort": effort, "summary": "auto"}
    if request.tools:
        head["tools"] = [
            {"type": "function", "name": spec.name, "description": spec.description, "parameters": spec.parameters, "strict": False}
            for spec in request.tools
        ]
    return head


def _user_block(block: UserBlock) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "input_text", "text": block.text}
    return {"type": "input_image", "detail": "auto", "image_url": f"data:{block.mime_type};base64,{block.data}"}


def _output(message: ToolResultMessage) -> str | list[dict[str, Any]]:
    if any(isinstance(block, ImageBlock) for block in message.content):
        return [_user_block(block) for block in message.content]
    return "\n".join(block.text for block in message.content if isinstance(block, TextBlock))


def _assistant(message: AssistantMessage) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, TextBlock):
            items.append(_text(block))
        elif isinstance(block, ToolCall):
            arguments = encode_json(block.arguments).decode()
            items.append({"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments})
        elif (item := _reasoning(block)) is not None:
            items.append(item)
    return items


def _text(block: TextBlock) -> dict[str, Any]:
    item: dict[str, Any] = {"role": "assistant", "content": [{"type": "output_text", "text": block.text, "annotations": []}]}
    item.update({"type": "message", "status": "completed"})
    if block.text_signature is not None and block.text_signature.startswith("{"):
        try:
            signature = msgspec.json.decode(block.text_signature, type=TextSignature)
        except msgspec.MsgspecError:
            return item
        if signature.phase is not msgspec.UNSET:
            item["phase"] = signature.phase
    return item


def _reasoning(block: ThinkingBlock) -> dict[str, Any] | None:
    try:
        item = msgspec.json.decode(block.thinking_signature or "")
    except msgspec.MsgspecError:
        return None
    if not isinstance(item, dict) or item.get("type") != "reasoning" or not item.get("encrypted_content"):
        return None
    kept = {key: item[key] for key in ("type", "id", "encrypted_content") if key in item}
    kept["summary"] = item.get("summary") or []
    return kept
