"""A text as Slack takes it: the calls' arguments, richest form first."""

import asyncio
from typing import Any

import msgspec

from channels.markup import RichText, plain, render, units
from channels.slack.mrkdwn import MAX_MARKDOWN_BLOCK, escaped, mrkdwn_parts, without_pings

__all__ = ["Part", "plain_parts", "rendered_parts"]

_ASIDE_CHARS = 16_000
_MAX_FALLBACK = 300
_BLOCK_SLACK = 200  # what invisible characters and notes may add


class Part(msgspec.Struct, frozen=True):
    """One message: Slack's own Markdown block where ``markdown`` is set, else ``text`` as mrkdwn. ``text`` is the notification too."""

    text: str
    markdown: str = ""

    def arguments(self, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        """Args: blocks: what stands under the text."""
        written: dict[str, Any] = {"text": self.text, "unfurl_links": False, "unfurl_media": False}
        if self.markdown:
            written["blocks"] = [{"type": "markdown", "text": self.markdown}, *blocks]
        elif blocks:
            section = {"type": "section", "text": {"type": "mrkdwn", "text": self.text, "verbatim": True}, "expand": True}
            written["blocks"] = [section, *blocks] if units(self.text) <= 3000 else None
        return written


async def rendered_parts(markdown: str) -> list[Part]:
    """The same text gives the same parts. A long one is rendered beside the loop, so that other chats do not wait."""
    if len(markdown) > _ASIDE_CHARS:
        return await asyncio.to_thread(_parts, markdown)
    return _parts(markdown)


def plain_parts(text: str) -> list[Part]:
    """The text as it was written, for what Slack cannot take formatted."""
    return [Part(part) for part in mrkdwn_parts(plain(text))]


def _parts(markdown: str) -> list[Part]:
    rich = render(markdown)
    if not rich.text.strip():
        return []
    if units(markdown) <= MAX_MARKDOWN_BLOCK - _BLOCK_SLACK:
        return [Part(_fallback(rich), without_pings(markdown))]
    return [Part(part) for part in mrkdwn_parts(rich)]


def _fallback(rich: RichText) -> str:
    """What a notification shows."""
    text = " ".join(rich.text[: 2 * _MAX_FALLBACK].split())
    return escaped(text if len(text) <= _MAX_FALLBACK else text[: _MAX_FALLBACK - 1] + "…")
