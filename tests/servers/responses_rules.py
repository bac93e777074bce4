"""What the Responses API refuses, in its own words."""

import base64
import binascii
import json
import re
from typing import Any

from tests.servers.script import Refused

__all__ = ["SEAL", "validate"]

SEAL = "gAAAA-"
"""How the content that this service encrypted begins."""

_FIELDS = {
    "model", "input", "instructions", "stream", "store", "include", "max_output_tokens", "reasoning", "tools", "tool_choice",
    "parallel_tool_calls", "prompt_cache_key", "metadata", "temperature", "top_p", "text", "truncation", "service_tier",
    "safety_identifier",
}  # fmt: skip
_REASONING = re.compile(r"o\d|gpt-[5-9](?!.*-chat)")
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MAGIC = {"png": b"\x89PNG", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "webp": b"RIFF"}
_URL = re.compile(r"data:image/([a-z]+);base64,(.*)", re.DOTALL)
_MESSAGE = {"type", "role", "content", "id", "status", "phase"}
_ITEMS = {
    "function_call": {"type", "id", "call_id", "name", "arguments", "status"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
}


def validate(body: dict[str, Any]) -> None:
    for key in body:
        _require(key in _FIELDS, f"Unknown parameter: '{key}'.", "unknown_parameter")
    for key in ("model", "input"):
        _require(key in body, f"Missing required parameter: '{key}'.", "missing_required_parameter")
    limit = body.get("max_output_tokens", 16)
    _require(
        limit >= 16,
        f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {limit} instead.",
        "integer_below_min_value",
    )
    _reasoning_options(body)
    for index, tool in enumerate(body.get("tools", ())):
        _tool(tool, f"tools[{index}]")
    items = body["input"]
    _require(isinstance(items, list) and items, "Invalid 'input': empty array.", "empty_array")
    for index, item in enumerate(items):
        _item(item, f"input[{index}]")
    _order(items)


def _require(condition: object, message: str, code: str | None = None) -> None:
    if not condition:
        raise Refused(message, code=code)


def _reasoning_options(body: dict[str, Any]) -> None:
    reasons = _REASONING.match(body["model"]) is not None
    hint = "is not supported with this model."
    _require(reasons or "reasoning" not in body, f"Unsupported parameter: 'reasoning.effort' {hint}", "unsupported_parameter")
    _require(reasons or not body.get("include"), f"Encrypted content {hint}")
    effort = (body.get("reasoning") or {}).get("effort", "low")
    _require(effort in _EFFORTS, f"Invalid value: '{effort}'. Supported values are: {_EFFORTS}.", "invalid_value")
    for name in body.get("include", ()):
        _require(name == "reasoning.encrypted_content", f"Invalid value: '{name}'.", "invalid_value")


def _tool(tool: dict[str, Any], where: str) -> None:
    _require(tool.get("type") == "function", f"Invalid value: '{tool.get('type')}'. Supported values are: 'function', ...")
    _require(not set(tool) - {"type", "name", "description", "parameters", "strict"}, f"Unknown parameter: '{where}'.")
    _name(tool.get("name"), f"{where}.name")
    kind = tool["parameters"].get("type")
    _require(
        kind == "object",
        f"Invalid schema for function '{tool['name']}': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'.",
        "invalid_function_parameters",
    )


def _name(name: Any, where: str) -> None:
    _require(isinstance(name, str) and _NAME.fullmatch(name), f"Invalid '{where}': string does not match pattern.", "invalid_value")
    _require(len(name) <= 64, f"Invalid '{where}': string too long. Expected a string with maximum length 64.", "string_above_max_length")


def _item(item: dict[str, Any], where: str) -> None:
    kind = item.get("type", "message")
    _require(kind == "message" or kind in _ITEMS, f"Invalid value: '{kind}'.", "invalid_value")
    extra = set(item) - (_MESSAGE if kind == "message" else _ITEMS[kind])
    _require(not extra, f"Unknown parameter: '{where}.{next(iter(extra), '')}'.", "unknown_parameter")
    if kind == "message":
        _message(item, where)
    elif kind == "reasoning":
        _require(str(item.get("id", "")).startswith("rs"), f"Invalid '{where}.id': Expected an ID that begins with 'rs'.", "invalid_value")
        _require(isinstance(item.get("summary"), list), f"Missing required parameter: '{where}.summary'.", "missing_required_parameter")
        sealed = str(item.get("encrypted_content") or "").startswith(SEAL)
        _require(sealed, f"The encrypted content for item {item.get('id')} could not be verified.", "invalid_encrypted_content")
    else:
        _call_id(item, where)
    if kind == "function_call":
        _require("id" not in item or item["id"].startswith("fc"), f"Invalid '{where}.id': Expected an ID that begins with 'fc'.")
        _name(item.get("name"), f"{where}.name")
        try:
            arguments = json.loads(item["arguments"])
        except (KeyError, ValueError, TypeError):
            arguments = None
        _require(isinstance(arguments, dict), f"Invalid '{where}.arguments': no JSON object.")
    elif kind == "function_call_output":
        output = item.get("output")
        _require(isinstance(output, str) or output, f"Missing required parameter: '{where}.output'.", "missing_required_parameter")
        if isinstance(output, list):
            for index, part in enumerate(output):
                _part(part, ("input_text", "input_image"), f"{where}.output[{index}]")


def _call_id(item: dict[str, Any], where: str) -> None:
    call_id = item.get("call_id")
    _require(isinstance(call_id, str) and call_id, f"Missing required parameter: '{where}.call_id'.", "missing_required_parameter")
    assert isinstance(call_id, str)
    _require(
        len(call_id) <= 64,
        f"Invalid '{where}.call_id': string too long. Expected a string with maximum length 64, "
        f"but got a string with length {len(call_id)} instead.",
        "string_above_max_length",
    )


def _message(item: dict[str, Any], where: str) -> None:
    role = item.get("role")
    _require(role in ("user", "assistant", "system", "developer"), f"Invalid value: '{role}'.", "invalid_value")
    content = item.get("content")
    if isinstance(content, str):
        return
    _require(isinstance(content, list) and content, f"Invalid type for '{where}.content': expected one of an array or string.")
    assert isinstance(content, list)
    allowed = ("output_text", "refusal") if role == "assistant" else ("input_text", "input_image", "input_file")
    for index, part in enumerate(content):
        _part(part, allowed, f"{where}.content[{index}]")


def _part(part: dict[str, Any], allowed: tuple[str, ...], where: str) -> None:
    kind = part.get("type")
    _require(kind in allowed, f"Invalid value: '{kind}'. Supported values are: {allowed}.", "invalid_value")
    if kind != "input_image":
        _require(isinstance(part.get("text"), str), f"Missing required parameter: '{where}.text'.", "missing_required_parameter")
        return
    match = _URL.fullmatch(part["image_url"])
    text = "The image data you provided does not represent a valid image. Please check your input and try again."
    _require(match is not None and match[1] in _MAGIC, text, "invalid_image_format")
    assert match is not None
    try:
        data = base64.b64decode(match[2], validate=True)
    except (binascii.Error, ValueError):
        raise Refused("Invalid base64 image_url.", code="invalid_base64") from None
    _require(data.startswith(_MAGIC[match[1]]), text, "invalid_image_format")


def _order(items: list[dict[str, Any]]) -> None:
    calls: dict[str, bool] = {}
    for index, item in enumerate(items):
        kind = item.get("type", "message")
        following = items[index + 1] if index + 1 < len(items) else {}
        own = following.get("type", "message") in ("reasoning", "function_call") or following.get("role") == "assistant"
        _require(
            kind != "reasoning" or own, f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
        )
        if kind == "function_call":
            _require(item["call_id"] not in calls, f"Duplicate call_id {item['call_id']}.")
            calls[item["call_id"]] = False
        elif kind == "function_call_output":
            _require(calls.get(item["call_id"]) is False, f"No tool call found for function call output with call_id {item['call_id']}.")
            calls[item["call_id"]] = True
    for call_id, answered in calls.items():
        _require(answered, f"No tool output found for function call {call_id}.")
