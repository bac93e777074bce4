"""What Slack's Web API takes and what it refuses, with its own words."""

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["Refused", "check_blocks", "check_text", "pings_in", "shown_text"]

MAX_TEXT = 40_000
MAX_EDIT = 4_000
MAX_BLOCKS = 50
MAX_MARKDOWN = 12_000
_PING = re.compile(r"<(?:!(?:here|channel|everyone)\b|@[UW]|!subteam)[^>]*>")


class Refused(Exception):
    """An answer with ``ok: false``; ``fields`` stand beside the error."""

    def __init__(self, error: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **fields: Any) -> None:
        super().__init__(error)
        self.error = error
        self.status = status
        self.headers = dict(headers or {})
        self.fields = fields


def check_text(text: str, *, limit: int) -> str:
    if len(text) > limit:
        raise Refused("msg_too_long")
    return text


def check_blocks(blocks: Any) -> list[dict[str, Any]]:
    """The kinds of blocks that Pumice sends, by Slack's rules."""
    if isinstance(blocks, str):
        try:
            blocks = json.loads(blocks)
        except ValueError:
            raise Refused("invalid_blocks_format") from None
    if not isinstance(blocks, list):
        raise Refused("invalid_blocks_format")
    if len(blocks) > MAX_BLOCKS:
        raise Refused("invalid_blocks")
    if sum(len(block.get("text", "")) for block in blocks if block.get("type") == "markdown") > MAX_MARKDOWN:
        raise Refused("msg_blocks_too_long")
    seen: set[str] = set()
    for block in blocks:
        _check_block(block, seen)
    return blocks


def _check_block(block: dict[str, Any], seen: set[str]) -> None:
    match block.get("type"):
        case "markdown":
            if not str(block.get("text", "")).strip():
                raise Refused("invalid_blocks")
        case "section":
            text = block.get("text", {})
            if text.get("type") not in ("mrkdwn", "plain_text") or not 1 <= len(text.get("text", "")) <= 3000:
                raise Refused("invalid_blocks")
        case "actions":
            elements = block.get("elements", [])
            if not 1 <= len(elements) <= 25:
                raise Refused("invalid_blocks")
            for element in elements:
                _check_button(element, seen)
        case _:
            raise Refused("invalid_blocks")


def _check_button(button: dict[str, Any], seen: set[str]) -> None:
    text = button.get("text", {})
    good = button.get("type") == "button" and text.get("type") == "plain_text" and 1 <= len(text.get("text", "")) <= 75
    if not good or len(button.get("value", "")) > 2000 or button.get("action_id") in seen or not button.get("action_id"):
        raise Refused("invalid_blocks")
    seen.add(button["action_id"])


def shown_text(text: str, blocks: list[dict[str, Any]]) -> str:
    """What a person reads: the blocks where there are any, else the text."""
    written = [block["text"] if block["type"] == "markdown" else block["text"]["text"] for block in blocks if block["type"] != "actions"]
    return "\n".join(written) if written else text


def pings_in(text: str) -> list[str]:
    return _PING.findall(text)
