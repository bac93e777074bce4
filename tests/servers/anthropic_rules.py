"""What the Messages API refuses, in its own words."""

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any

from tests.servers.script import Refused

__all__ = ["validate"]

_FIELDS = {
    "model", "max_tokens", "messages", "stream", "system", "tools", "thinking", "output_config", "metadata", "stop_sequences",
    "tool_choice", "service_tier", "cache_control", "container", "diagnostics", "inference_geo", "speed",
}  # fmt: skip
_BLOCK_FIELDS = {
    "text": {"text", "cache_control", "citations"},
    "image": {"source", "cache_control", "transformations"},
    "tool_use": {"id", "name", "input", "cache_control", "caller", "toolset_name"},
    "tool_result": {"tool_use_id", "content", "is_error", "cache_control", "toolset_name"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}
_MAGIC = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ADAPTIVE = re.compile(r"(?:opus|sonnet|haiku|fable|mythos)-(?:4-[6-9]|[5-9])")


def validate(body: dict[str, Any]) -> None:
    for key in body:
        _require(key in _FIELDS, f"{key}: Extra inputs are not permitted")
    for key in ("model", "max_tokens", "messages"):
        _require(key in body, f"{key}: Field required")
    limit = body["max_tokens"]
    _require(type(limit) is int and limit >= 1, "max_tokens: Input should be greater than or equal to 1")
    most = _most_output(body["model"])
    _require(limit <= most, f"max_tokens: {limit} > {most}, which is the maximum allowed number of output tokens for {body['model']}")
    _system(body.get("system"))
    _tools(body.get("tools"))
    messages = body["messages"]
    _require(isinstance(messages, list) and messages, "messages: at least one message is required")
    _messages(messages)
    _pairs(messages)
    _thinking(body)
    marks = sum(1 for block in _all_blocks(body) if block.get("cache_control"))
    _require(marks <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")


def _require(condition: object, message: str) -> None:
    if not condition:
        raise Refused(message)


def _most_output(model: str) -> int:
    if "opus-4-0" in model or "opus-4-1" in model:
        return 32_000
    return 128_000 if _ADAPTIVE.search(model) else 64_000


def _system(system: Any) -> None:
    if system is None or isinstance(system, str):
        return
    _require(isinstance(system, list), "system: Input should be a valid list")
    for index, block in enumerate(system):
        _require(block.get("type") == "text", f"system.{index}.type: Input should be 'text'")
        _text(block, f"system.{index}", "system")


def _tools(tools: Any) -> None:
    if tools is None:
        return
    names = [tool.get("name") for tool in tools]
    _require(len(set(names)) == len(names), "tools: Tool names must be unique.")
    for index, tool in enumerate(tools):
        extra = set(tool) - {"name", "description", "input_schema", "cache_control", "type", "strict", "eager_input_streaming"}
        _require(not extra, f"tools.{index}.custom.{next(iter(extra), '')}: Extra inputs are not permitted")
        _require(
            isinstance(tool.get("name"), str) and _NAME.fullmatch(tool["name"]),
            f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'",
        )
        schema = tool.get("input_schema")
        _require(isinstance(schema, dict), f"tools.{index}.custom.input_schema: Field required")
        _require(schema.get("type") == "object", f"tools.{index}.custom.input_schema.type: Input should be 'object'")


def _messages(messages: list[dict[str, Any]]) -> None:
    _require(messages[0].get("role") == "user", 'messages: first message must use the "user" role')
    previous = None
    for at, message in enumerate(messages):
        role = message.get("role")
        _require(set(message) == {"role", "content"}, f"messages.{at}: Extra inputs are not permitted or a field is missing")
        _require(role in ("user", "assistant"), f"messages.{at}.role: Input should be 'user' or 'assistant'")
        _require(
            role != previous,
            f'messages: roles must alternate between "user" and "assistant", but found multiple "{role}" roles in a row',
        )
        assert isinstance(role, str)
        previous = role
        content = message["content"]
        if isinstance(content, str):
            _require(content.strip(), f"messages.{at}: {role} messages must have non-empty content")
            continue
        _require(content, f"messages.{at}: {role} messages must have non-empty content")
        for index, block in enumerate(content):
            _block(block, role, f"messages.{at}.content.{index}")
        if role == "assistant":
            kind = content[-1]["type"]
            _require(
                kind not in ("thinking", "redacted_thinking"),
                f"messages.{at}: The final block in an assistant message cannot be `thinking`.",
            )
    _require(previous == "user", "This model does not support assistant message prefill. The conversation must end with a user message.")


def _block(block: dict[str, Any], role: str, where: str) -> None:
    kind = block.get("type")
    allowed = ("text", "image", "tool_result") if role == "user" else ("text", "tool_use", "thinking", "redacted_thinking")
    _require(kind in allowed, f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {allowed}")
    assert isinstance(kind, str)
    extra = set(block) - _BLOCK_FIELDS[kind] - {"type"}
    _require(not extra, f"{where}.{kind}.{next(iter(extra), '')}: Extra inputs are not permitted")
    if kind == "text":
        _text(block, where, "messages")
    elif kind == "image":
        _image(block, where)
    elif kind == "tool_use":
        _require(_ID.fullmatch(block.get("id", "")), f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        _require(_NAME.fullmatch(block.get("name", "")), f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        _require(isinstance(block.get("input"), dict), f"{where}.tool_use.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        _result(block, where)
    elif kind == "thinking":
        _require(str(block.get("signature", "")).startswith("sig-"), f"{where}: Invalid `signature` in `thinking` block")
    else:
        _require(str(block.get("data", "")).startswith("sig-"), f"{where}: Invalid `data` in `redacted_thinking` block")


def _text(block: dict[str, Any], where: str, noun: str) -> None:
    text = block.get("text")
    _require(isinstance(text, str), f"{where}.text.text: Input should be a valid string")
    assert isinstance(text, str)
    _require(text, f"{noun}: text content blocks must be non-empty")
    _require(text.strip(), f"{noun}: text content blocks must contain non-whitespace text")


def _image(block: dict[str, Any], where: str) -> None:
    source = block.get("source", {})
    _require(source.get("type") == "base64", f"{where}.image.source: Input should be 'base64'")
    kind = source.get("media_type")
    expected = "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
    _require(kind in _MAGIC, f"{where}.image.source.base64.media_type: Input should be {expected}")
    try:
        data = base64.b64decode(source.get("data", ""), validate=True)
    except (binascii.Error, ValueError):
        raise Refused(f"{where}.image.source.base64: invalid base64 data") from None
    _require(data.startswith(_MAGIC[kind]), "Could not process image")


def _result(block: dict[str, Any], where: str) -> None:
    content = block.get("content", "")
    if isinstance(content, str):
        return
    for index, part in enumerate(content):
        kind = part.get("type")
        _require(kind in ("text", "image"), f"{where}.tool_result.content.{index}: Input tag {kind!r} does not match")
        _require(
            not block.get("is_error") or kind == "text",
            f"{where}.tool_result: all content must be type `text` if `is_error` is true",
        )
        if kind == "text":
            _text(part, f"{where}.tool_result.content.{index}", "messages")
        else:
            _image(part, f"{where}.tool_result.content.{index}")


def _pairs(messages: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        blocks = [] if isinstance(message["content"], str) else message["content"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        leading = [block["tool_use_id"] for block in blocks[: len(results)] if block["type"] == "tool_result"]
        for index, block in enumerate(blocks):
            if block["type"] == "tool_result":
                _require(
                    block["tool_use_id"] in waiting,
                    f"messages.{at}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {block['tool_use_id']}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
                )
        twice = {result for result in results if results.count(result) > 1}
        _require(not twice, f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {', '.join(twice)}")
        missing = [call for call in waiting if call not in leading]
        _require(
            not missing,
            f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        )
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        _require(not seen & set(waiting) and len(set(waiting)) == len(waiting), "messages: `tool_use` ids must be unique")
        seen.update(waiting)


def _thinking(body: dict[str, Any]) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    kind = thinking.get("type")
    _require(
        kind in ("enabled", "disabled", "adaptive", "between_tools"), f"thinking: Input tag '{kind}' found using 'type' does not match"
    )
    adaptive = _ADAPTIVE.search(body["model"]) is not None
    if kind == "enabled":
        _require(
            not adaptive,
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control '
            "thinking behavior.",
        )
        budget = thinking.get("budget_tokens", 0)
        _require(budget >= 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        _require(budget < body["max_tokens"], "`max_tokens` must be greater than `thinking.budget_tokens`.")
        _thinking_first(body["messages"])
    if kind == "adaptive":
        _require(adaptive, "adaptive thinking is not supported on this model")


def _thinking_first(messages: list[dict[str, Any]]) -> None:
    last = messages[-1]["content"]
    if len(messages) < 2 or isinstance(last, str) or last[0]["type"] != "tool_result":
        return
    blocks = messages[-2]["content"]
    kind = blocks[0]["type"]
    _require(
        kind in ("thinking", "redacted_thinking"),
        f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When `thinking` is "
        "enabled, a final `assistant` message must start with a thinking block.",
    )


def _all_blocks(body: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for part in (body.get("system"), body.get("tools"), *(message["content"] for message in body["messages"])):
        if isinstance(part, list):
            yield from part
