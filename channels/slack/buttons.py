"""Buttons as Block Kit has them. A button's value, up to 2,000 characters, is the command itself."""

from collections.abc import Sequence
from typing import Any

from channels.slack.mrkdwn import without_pings
from features.contracts.chat import Button

__all__ = ["button_blocks", "decoded"]

_MAX_VALUE = 2000
_MAX_LABEL = 75
_MAX_IN_ROW = 25
_PREFIX = "run:"


def button_blocks(rows: Sequence[Sequence[Button]]) -> list[dict[str, Any]]:
    """One block of actions per row. A command that is too long for Slack is left out: half a command would be another one."""
    blocks: list[dict[str, Any]] = []
    number = 0
    for row in rows:
        elements: list[dict[str, Any]] = []
        for button in row[:_MAX_IN_ROW]:
            value = _PREFIX + button.command
            label = without_pings(" ".join(button.label.split()))[:_MAX_LABEL]
            if label and len(value) <= _MAX_VALUE:
                number += 1
                text = {"type": "plain_text", "text": label, "emoji": True}
                elements.append({"type": "button", "action_id": f"pumice_{number}", "text": text, "value": value})
        if elements:
            blocks.append({"type": "actions", "elements": elements})
    return blocks


def decoded(value: str) -> str | None:
    """The command behind a button's value; None where it is not one of ours."""
    return value.removeprefix(_PREFIX) if value.startswith(_PREFIX) else None
