"""What models can do, as far as their names tell it: the price list holds windows and prices, not abilities."""

import re
from typing import Literal

import msgspec

from features.contracts.models import ThinkingLevel

__all__ = [
    "Abilities",
    "claude_abilities",
    "claude_version",
    "gemini_abilities",
    "gemini_family",
    "is_chat_model",
    "openai_abilities",
    "openai_api",
    "openai_effort",
    "thinks_adaptively",
]

_CLAUDE = re.compile(r"(?:(\d)[-.]?(\d)?-)?(opus|sonnet|haiku|fable|mythos|instant)(?:-(\d)(?:[-.](\d)(?!\d))?)?")
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_O_SERIES = re.compile(r"^o\d")
_GEMINI = re.compile(r"gemini-(?:(\d+)(?:\.(\d+))?-)?(pro|flash-lite|flash|[a-z]+)")
_CHAT = {"openai": re.compile(r"gpt-[3-9]|chatgpt-|o\d"), "google": re.compile(r"gemini-\d"), "anthropic": re.compile("")}
_NOT_FOR_CHAT = re.compile(
    r"audio|realtime|tts|transcribe|whisper|image|embedding|moderation|live|instruct|search|ft[:.-]|research|vision|banana|robotics|omni"
)
_Input = tuple[Literal["text", "image"], ...]


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """``context_window`` is what a price list that is silent about it leaves open."""

    context_window: int = 128_000
    max_output: int = 16_384
    input: _Input = ("text",)
    reasoning: bool = False


def claude_version(model_id: str) -> tuple[str, tuple[int, int]]:
    """Family and version of a Claude model; an unknown name counts as the newest, a date is no version."""
    match = _CLAUDE.search(model_id)
    if match is None:
        return "", (9, 9)
    early, early_minor, family, major, minor = match.groups()
    if early is None and major is None:
        return family, (9, 9)
    return family, (int(major or early), int((minor if major else early_minor) or 0))


def thinks_adaptively(model_id: str) -> bool:
    """Whether the model decides itself how much to think; the older ones are given a budget of tokens."""
    return claude_version(model_id)[1] >= (4, 6)


def claude_abilities(model_id: str) -> Abilities:
    family, version = claude_version(model_id)
    if version >= (4, 6):
        output = 128_000
    elif version >= (3, 7):
        output = 32_000 if family == "opus" and version < (4, 5) else 64_000
    else:
        output = 8_192 if version >= (3, 5) else 4_096
    return Abilities(max_output=output, input=("text", "image") if version >= (3, 0) else ("text",), reasoning=version >= (3, 7))


def openai_abilities(model_id: str) -> Abilities:
    see: _Input = ("text", "image")
    if _O_SERIES.match(model_id):
        blind = model_id.startswith(("o1-mini", "o1-preview", "o3-mini"))
        return Abilities(max_output=100_000, input=("text",) if blind else see, reasoning=True)
    match = _GPT.match(model_id)
    if match is None:
        return Abilities(input=see if model_id.startswith("chatgpt") else ("text",))
    version = (int(match[1]), int(match[2] or 0))
    if version >= (5, 0):
        chat = "-chat" in model_id
        return Abilities(max_output=16_384 if chat else 128_000, input=see, reasoning=not chat)
    if version >= (4, 1):
        return Abilities(max_output=32_768, input=see)
    if model_id.startswith("gpt-4o"):
        return Abilities(input=see)
    turbo = model_id.startswith("gpt-4-turbo")
    return Abilities(max_output=4_096, input=see if turbo else ("text",))


def openai_effort(model_id: str, level: ThinkingLevel) -> str | None:
    """The word for ``reasoning_effort``; None leaves it to the model, which for the newer ones means no reasoning."""
    match = _GPT.match(model_id)
    version = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    if level == "off":
        return "minimal" if version == (5, 0) and "-pro" not in model_id else None
    if level == "minimal":
        return "minimal" if version == (5, 0) else "low"
    if level == "xhigh":
        return "xhigh" if version >= (5, 2) else "high"
    return level


def openai_api(model_id: str) -> str:
    """The API that serves a model of OpenAI best: what reasons wants its reasoning back, which only one of them can do."""
    return "openai-responses" if openai_abilities(model_id).reasoning else "openai-completions"


def gemini_family(model_id: str) -> tuple[str, tuple[int, int]]:
    """Family and version of a Gemini model; a name without a version counts as the newest."""
    match = _GEMINI.search(model_id)
    if match is None:
        return "", (0, 0)
    major, minor, family = match.groups()
    return family, (int(major), int(minor or 0)) if major else (9, 9)


def gemini_abilities(model_id: str) -> Abilities:
    family, version = gemini_family(model_id)
    if not family:
        return Abilities(max_output=8_192)
    thinks = version >= (2, 5)
    return Abilities(context_window=1_048_576, max_output=65_536 if thinks else 8_192, input=("text", "image"), reasoning=thinks)


def is_chat_model(kind: str, model_id: str) -> bool:
    """Whether an entry of a price list is a model of that kind of provider to talk with."""
    return _CHAT[kind].match(model_id) is not None and _NOT_FOR_CHAT.search(model_id) is None
