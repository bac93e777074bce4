"""What the Gemini API refuses, in its own words."""

import base64
import binascii
import re
from typing import Any

from tests.servers.script import Refused

__all__ = ["validate"]

_FIELDS = {"model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent"}
_GENERATION = {"maxOutputTokens", "thinkingConfig", "temperature", "topP", "topK", "stopSequences", "responseMimeType"}
_DATA = ("text", "inlineData", "functionCall", "functionResponse", "fileData")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_MAGIC = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/webp": b"RIFF"}
_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")


def validate(body: dict[str, Any]) -> None:
    _known(body, _FIELDS, "")
    contents = body.get("contents")
    _require(contents, "* GenerateContentRequest.contents: contents is not specified")
    assert isinstance(contents, list)
    match = _VERSION.match(body["model"])
    version = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    _generation(body.get("generationConfig", {}), body["model"], version)
    system = body.get("systemInstruction")
    _require(system is None or all(part.get("text") for part in system["parts"]), "systemInstruction.parts must not be empty.")
    for tool in body.get("tools", ()):
        for index, function in enumerate(tool["functionDeclarations"]):
            _function(function, f"tools[0].function_declarations[{index}]")
    for index, content in enumerate(contents):
        _content(content, f"contents[{index}]", version)
    _turns(contents, version)


def _require(condition: object, message: str) -> None:
    if not condition:
        raise Refused(message, type="INVALID_ARGUMENT")


def _known(value: dict[str, Any], fields: set[str], where: str) -> None:
    for key in value:
        at = f" at '{where}'" if where else ""
        _require(key in fields, f'Invalid JSON payload received. Unknown name "{key}"{at}: Cannot find field.')


def _generation(config: dict[str, Any], model: str, version: tuple[int, int]) -> None:
    _known(config, _GENERATION, "generation_config")
    thinking = config.get("thinkingConfig")
    if thinking is None:
        return
    _known(thinking, {"includeThoughts", "thinkingBudget", "thinkingLevel"}, "generation_config.thinking_config")
    _require(version >= (2, 5), "Thinking is not enabled for this model.")
    budget, level = thinking.get("thinkingBudget"), thinking.get("thinkingLevel")
    _require(budget is None or level is None, "You can only set only one of thinking budget and thinking level.")
    if level is not None:
        _require(version >= (3, 0), "Thinking level is not supported for this model.")
        levels = ("LOW", "HIGH") if "-pro" in model else ("MINIMAL", "LOW", "MEDIUM", "HIGH")
        _require(level in levels, f"Thinking level {level} is not supported for this model.")
    if budget is not None:
        _require(budget != 0 or "-pro" not in model, "Budget 0 is invalid. This model only works in thinking mode.")
        least, most = (128, 32768) if "-pro" in model else (512, 24576) if "-lite" in model else (1, 24576)
        _require(budget in (0, -1) or least <= budget <= most, f"The thinking budget {budget} is invalid. Please choose a valid one.")


def _function(function: dict[str, Any], where: str) -> None:
    _known(function, {"name", "description", "parameters", "parametersJsonSchema"}, where)
    _require(
        _NAME.fullmatch(function.get("name", "")),
        f"* GenerateContentRequest.{where}.name: Invalid function name. Must start with a letter or an underscore.",
    )
    _require(function["parametersJsonSchema"].get("type") == "object", f"* GenerateContentRequest.{where}.parameters: must be an object")


def _content(content: dict[str, Any], where: str, version: tuple[int, int]) -> None:
    _known(content, {"role", "parts"}, where)
    _require(content.get("role") in ("user", "model"), "Please use a valid role: user, model.")
    _require(content.get("parts"), f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty.")
    for index, part in enumerate(content["parts"]):
        _part(part, content["role"], f"{where}.parts[{index}]", version)


def _part(part: dict[str, Any], role: str, where: str, version: tuple[int, int]) -> None:
    _known(part, {*_DATA, "thought", "thoughtSignature"}, where)
    kinds = [kind for kind in _DATA if kind in part]
    signed = "thoughtSignature" in part
    _require(
        len(kinds) == 1 and (part[kinds[0]] or signed),
        f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field",
    )
    if signed:
        _require(_bytes(part["thoughtSignature"]) is not None, f"Invalid value at '{where}.thought_signature' (TYPE_BYTES)")
    match kinds[0]:
        case "inlineData":
            _image(part["inlineData"], where)
        case "functionCall":
            call = part["functionCall"]
            _known(call, {"id", "name", "args"}, f"{where}.function_call")
            _require(role == "model" and call.get("name") and isinstance(call.get("args"), dict), f"{where}.function_call is not valid")
        case "functionResponse":
            response = part["functionResponse"]
            _known(response, {"id", "name", "response", "parts"}, f"{where}.function_response")
            _require(response.get("name"), f"* GenerateContentRequest.{where}.function_response.name: Name cannot be empty.")
            _require(role == "user" and isinstance(response.get("response"), dict), f"{where}.function_response is not valid")
            _require(version >= (3, 0) or "parts" not in response, "Multimodal function responses are not supported for this model.")
            for image in response.get("parts", ()):
                _image(image["inlineData"], where)


def _image(data: dict[str, str], where: str) -> None:
    mime = data.get("mimeType", "")
    _require(mime in _MAGIC, f"Unsupported MIME type: {mime}")
    raw = _bytes(data.get("data", ""))
    _require(raw is not None, f"Invalid value at '{where}.inline_data.data' (TYPE_BYTES), Base64 decoding failed")
    assert raw is not None
    _require(raw.startswith(_MAGIC[mime]), "Unable to process input image. Please retry or report in the help forum.")


def _bytes(text: str) -> bytes | None:
    """Both alphabets are taken, as everywhere in this service."""
    try:
        return base64.b64decode(text.replace("_", "/").replace("-", "+"), validate=True)
    except (binascii.Error, ValueError):
        return None


def _turns(contents: list[dict[str, Any]], version: tuple[int, int]) -> None:
    _require(contents[0]["role"] == "user", "Please ensure that multiturn requests begin with a user turn.")
    waiting: list[str] = []
    for index, content in enumerate(contents):
        calls = [part for part in content["parts"] if "functionCall" in part]
        responses = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
        if waiting:
            _require(
                len(responses) == len(waiting) == len(content["parts"]),
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function "
                "call turn.",
            )
            _require(responses == waiting, "Please ensure that function responses name the functions that were called.")
        _require(waiting or not responses, "Please ensure that function response turn comes immediately after a function call turn.")
        before = contents[index - 1]["role"] if index else ""
        _require(
            not calls or before == "user",
            "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        )
        if calls and version >= (3, 0):
            name = calls[0]["functionCall"]["name"]
            _require(
                "thoughtSignature" in calls[0],
                f"Function call `{name}` in the {index + 1}. content block is missing a `thought_signature`.",
            )
        waiting = [part["functionCall"]["name"] for part in calls]
    _require(not waiting, "Please ensure that function call turn is followed by a function response turn.")
