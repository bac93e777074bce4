"""Requests in the form of Google's Gemini API.

Calls and their results go without ids, for the service pairs them by their order; a signature goes back with the part that it came with.
"""

import base64
import binascii
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
from features.models.abilities import gemini_family
from features.models.normalise import Legal
from features.models.texts import legal_text
from features.models.wire import encode_json

__all__ = ["encode_messages", "nested_images", "request_head"]

_DEFAULT_OUTPUT = 32_000
_UNSIGNED = "skip_thought_signature_validator"
"""What newer models want in place of the signature of a call that another model made.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures
"""
IMAGES_OF_TOOLS = "Images that the tools returned:"
SEE_IMAGE = "(see the image)"
_BUDGETS: dict[str, dict[ThinkingLevel, int]] = {
    "pro": {"minimal": 128, "low": 2048, "medium": 8192, "high": 32768, "xhigh": 32768},
    "flash": {"off": 0, "minimal": 128, "low": 2048, "medium": 8192, "high": 24576, "xhigh": 24576},
    "flash-lite": {"off": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 24576, "xhigh": 24576},
}
_PRO_LEVELS: dict[ThinkingLevel, str] = {"off": "LOW", "minimal": "LOW", "low": "LOW", "medium": "HIGH", "high": "HIGH", "xhigh": "HIGH"}
_LEVELS: dict[ThinkingLevel, str] = {
    "off": "MINIMAL",
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
}


def encode_messages(messages: list[Legal], last: bool) -> bytes:
    """For models that take images only from people: a tool's follow its results."""
    del last  # the service finds its own cache points
    return _encode(messages, nested=False)


def nested_images(messages: list[Legal], last: bool) -> bytes:
    """For models that take images in a tool's result."""
    del last
    return _encode(messages, nested=True)


def _encode(messages: list[Legal], *, nested: bool) -> bytes:
    turns: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []

    def close_results() -> None:
        if results:
            turns.append({"role": "user", "parts": list(results)})
            results.clear()
        if images:
            turns.append({"role": "user", "parts": [{"text": IMAGES_OF_TOOLS}, *images]})
            images.clear()

    for message in messages:
        if isinstance(message, ToolResultMessage):
            results.append(_result(message, nested=nested))
            if not nested:
                images.extend(_image(block) for block in message.content if isinstance(block, ImageBlock))
            continue
        close_results()
        if isinstance(message, UserMessage):
            assert not isinstance(message.content, str)
            turns.append({"role": "user", "parts": [_user_part(block) for block in message.content]})
        else:
            parts = [part for block in message.content if _says_something(part := _model_part(block, signed=nested))]
            if parts:
                turns.append({"role": "model", "parts": parts})
    close_results()
    return b",".join(encode_json(turn) for turn in turns)


def request_head(model: Model, request: ModelRequest) -> dict[str, Any]:
    """Everything of a request but its messages."""
    generation: dict[str, Any] = {"maxOutputTokens": request.max_output or min(model.max_output, _DEFAULT_OUTPUT)}
    thinking = _thinking(model, request.thinking)
    if thinking:
        generation["thinkingConfig"] = thinking
    head: dict[str, Any] = {"generationConfig": generation}
    system = legal_text(request.system_prompt)
    if system.strip():
        head["systemInstruction"] = {"parts": [{"text": system}]}
    if request.tools:
        head["tools"] = [{"functionDeclarations": _functions(request.tools)}]
    return head


def _functions(specs: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [{"name": spec.name, "description": spec.description, "parametersJsonSchema": spec.parameters} for spec in specs]


def _thinking(model: Model, level: ThinkingLevel) -> dict[str, Any]:
    """Source: https://ai.google.dev/gemini-api/docs/thinking."""
    if not model.reasoning:
        return {}
    family, version = gemini_family(model.id)
    shown = {} if level == "off" else {"includeThoughts": True}
    if version >= (3, 0):
        return {"thinkingLevel": (_PRO_LEVELS if family == "pro" else _LEVELS)[level], **shown}
    budget = _BUDGETS.get(family, {"off": 0}).get(level)
    if budget is None:
        return {} if level == "off" else {"thinkingBudget": -1, **shown}  # as much as the model thinks fit
    return {"thinkingBudget": budget, **shown}


def _user_part(block: UserBlock) -> dict[str, Any]:
    return {"text": block.text} if isinstance(block, TextBlock) else _image(block)


def _image(block: ImageBlock) -> dict[str, Any]:
    return {"inlineData": {"mimeType": block.mime_type, "data": block.data}}


def _result(message: ToolResultMessage, *, nested: bool) -> dict[str, Any]:
    text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock)) or SEE_IMAGE
    response: dict[str, Any] = {"name": message.tool_name, "response": {"error" if message.is_error else "output": text}}
    images = [_image(block) for block in message.content if isinstance(block, ImageBlock)]
    if nested and images:
        response["parts"] = images
    return {"functionResponse": response}


def _model_part(block: AssistantBlock, *, signed: bool) -> dict[str, Any]:
    part: dict[str, Any]
    if isinstance(block, TextBlock):
        part, signature = {"text": block.text}, _signature(block.text_signature)
    elif isinstance(block, ThinkingBlock):
        part, signature = {"text": block.thinking, "thought": True}, _signature(block.thinking_signature)
    else:
        part, signature = _call(block), _signature(block.thought_signature)
        if signature is None and signed:
            signature = _UNSIGNED
    if signature is not None:
        part["thoughtSignature"] = signature
    return part


def _says_something(part: dict[str, Any]) -> bool:
    """An empty text is only legal as the carrier of a signature, and another model's signature is not sent."""
    return bool(part.get("text", True)) or "thoughtSignature" in part


def _call(block: ToolCall) -> dict[str, Any]:
    return {"functionCall": {"name": block.name, "args": block.arguments}}


def _signature(text: str | None) -> str | None:
    """A signature that the service can read: other models' have other forms, and one that is no base64 is refused."""
    if not text or len(text) % 4:
        return None
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return text
