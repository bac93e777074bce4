"""What the Chat Completions API refuses, in its own words."""

import base64
import binascii
import json
import re
from typing import Any

from tests.servers.script import Refused

__all__ = ["validate"]

_FIELDS = {
    "model", "messages", "stream", "stream_options", "max_tokens", "temperature", "top_p", "tools", "tool_choice", "parallel_tool_calls",
    "reasoning_effort", "stop", "seed", "response_format",
}  # fmt: skip
_OFFICIAL_FIELDS = _FIELDS | {
    "max_completion_tokens",
    "store",
    "prompt_cache_key",
    "metadata",
    "safety_identifier",
    "service_tier",
    "verbosity",
}
_REASONING = re.compile(r"o\d|gpt-[5-9](?!.*-chat)")
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MAGIC = {"png": b"\x89PNG", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "webp": b"RIFF"}
_URL = re.compile(r"data:image/([a-z]+);base64,(.*)", re.DOTALL)


def validate(body: dict[str, Any], *, compatible: bool) -> None:
    for key in body:
        _require(key in (_FIELDS if compatible else _OFFICIAL_FIELDS), f"Unrecognized request argument supplied: {key}")
    for key in ("model", "messages"):
        _require(key in body, f"Missing required parameter: '{key}'.", "missing_required_parameter")
    _require("stream_options" not in body or body.get("stream"), "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    if not compatible:
        reasoning = _REASONING.match(body["model"]) is not None
        hint = "is not supported with this model."
        _require(
            not (reasoning and "max_tokens" in body),
            f"Unsupported parameter: 'max_tokens' {hint} Use 'max_completion_tokens' instead.",
            "unsupported_parameter",
        )
        _require(reasoning or "reasoning_effort" not in body, f"Unsupported parameter: 'reasoning_effort' {hint}", "unsupported_parameter")
    _tools(body)
    messages = body["messages"]
    _require(
        messages, "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.", "empty_array"
    )
    for index, message in enumerate(messages):
        _message(message, f"messages[{index}]")
    _pairs(messages)


def _require(condition: object, message: str, code: str | None = None) -> None:
    if not condition:
        raise Refused(message, code=code)


def _tools(body: dict[str, Any]) -> None:
    if "tools" not in body:
        return
    tools = body["tools"]
    _require(tools, "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.", "empty_array")
    for index, tool in enumerate(tools):
        _require(tool.get("type") == "function", f"Invalid value: '{tool.get('type')}'. Supported values are: 'function' and 'custom'.")
        function = tool["function"]
        _function_name(function.get("name"), f"tools[{index}].function.name")
        schema = function.get("parameters", {"type": "object"})
        kind = schema.get("type")
        _require(
            kind == "object",
            f"Invalid schema for function '{function['name']}': schema must be a JSON Schema of 'type: \"object\"', "
            f"got 'type: \"{kind}\"'.",
            "invalid_function_parameters",
        )


def _function_name(name: Any, where: str) -> None:
    _require(
        isinstance(name, str) and _NAME.fullmatch(name),
        f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        "invalid_value",
    )
    _require(
        len(name) <= 64,
        f"Invalid '{where}': string too long. Expected a string with maximum length 64, but got a string with length {len(name)} instead.",
        "string_above_max_length",
    )


def _message(message: dict[str, Any], where: str) -> None:
    role = message.get("role")
    fields = {"system": {"content"}, "user": {"content"}, "assistant": {"content", "tool_calls"}, "tool": {"content", "tool_call_id"}}
    _require(
        role in fields,
        f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
    )
    assert isinstance(role, str)
    extra = set(message) - fields[role] - {"role", "name"}
    _require(not extra, f"Unknown parameter: '{where}.{next(iter(extra), '')}'.", "unknown_parameter")
    content = message.get("content")
    if role == "assistant":
        calls = message.get("tool_calls")
        _require(calls is None or calls, f"Invalid '{where}.tool_calls': empty array.", "empty_array")
        _require(isinstance(content, str) or calls, f"Invalid value for 'content': expected a string, got {content!r}.")
        for index, call in enumerate(calls or ()):
            _call(call, f"{where}.tool_calls[{index}]")
        return
    if isinstance(content, str):
        return
    _require(isinstance(content, list) and content, f"Invalid value for 'content': expected a string, got {content!r}.")
    assert isinstance(content, list)
    for index, part in enumerate(content):
        _part(part, role, f"{where}.content[{index}]")


def _call(call: dict[str, Any], where: str) -> None:
    name = call.get("id")
    _require(isinstance(name, str) and name, f"Missing required parameter: '{where}.id'.")
    assert isinstance(name, str)
    _require(
        len(name) <= 40,
        f"Invalid '{where}.id': string too long. Expected a string with maximum length 40, "
        f"but got a string with length {len(name)} instead.",
        "string_above_max_length",
    )
    _require(call.get("type") == "function", f"Missing required parameter: '{where}.type'.")
    _function_name(call["function"].get("name"), f"{where}.function.name")
    try:
        arguments = json.loads(call["function"]["arguments"])
    except (KeyError, ValueError, TypeError):
        arguments = None
    _require(isinstance(arguments, dict), f"Invalid '{where}.function.arguments': no JSON object.")


def _part(part: dict[str, Any], role: str, where: str) -> None:
    kind = part.get("type")
    allowed = ("text", "image_url") if role == "user" else ("text",)
    _require(kind in allowed, f"Invalid value: '{kind}'. Supported values are: {allowed}.", "invalid_value")
    if kind == "text":
        _require(isinstance(part.get("text"), str), f"Missing required parameter: '{where}.text'.")
        return
    match = _URL.fullmatch(part["image_url"]["url"])
    known = match is not None and match[1] in _MAGIC
    formats = "['png', 'jpeg', 'gif', 'webp']"
    text = f"You uploaded an unsupported image. Please make sure your image has of one the following formats: {formats}."
    _require(known, text, "invalid_image_format")
    assert match is not None
    try:
        data = base64.b64decode(match[2], validate=True)
    except (binascii.Error, ValueError):
        raise Refused("Invalid base64 image_url.", code="invalid_base64") from None
    _require(data.startswith(_MAGIC[match[1]]), text, "invalid_image_format")


def _pairs(messages: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            _require(
                message.get("tool_call_id") in waiting,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            )
            waiting.remove(message["tool_call_id"])
            continue
        _closed(waiting)
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        _require(len(set(waiting)) == len(waiting), f"Duplicate value for 'tool_call_id' in messages[{index}]")
    _closed(waiting)


def _closed(waiting: list[str]) -> None:
    _require(
        not waiting,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following "
        f"tool_call_ids did not have response messages: {', '.join(waiting)}",
    )
