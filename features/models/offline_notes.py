"""What the assistant without a network writes when a conversation is summed up: the beginnings of what was said, as they stand."""

import re

from features.contracts.models import ModelRequest

__all__ = ["conversation_notes"]

_CONVERSATION = re.compile(r"\A<conversation>\n(.*?)\n</conversation>(?:\n\n<previous-summary>\n(.*?)\n</previous-summary>)?", re.DOTALL)
_SAID = re.compile(r"^\[(User|Assistant)\]: (.*)$", re.MULTILINE)
_LONGEST_LINE = 120
_MOST_LINES = 40
_HEADING = "What was said (the built-in assistant notes the beginning of each message; it cannot sum up):"


def conversation_notes(prompt: str, request: ModelRequest) -> str | None:
    """Notes on the conversation in a summary request; None for every other request."""
    match = None if request.tools else _CONVERSATION.match(prompt)
    if match is None:
        return None
    earlier = [line for line in (match[2] or "").splitlines() if line.startswith("- ")]
    lines = [f"- {speaker}: {_shortened(text)}" for speaker, text in _SAID.findall(match[1])]
    return "\n".join([_HEADING, *[*earlier, *lines][-_MOST_LINES:]])


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 1]}…"
