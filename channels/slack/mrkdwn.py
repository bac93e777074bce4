"""Text with marked ranges as Slack's mrkdwn, and texts that ping nobody."""

import re
from bisect import bisect_left

from channels.markup import RichText, Span, split, units

__all__ = ["MAX_MARKDOWN_BLOCK", "MAX_TEXT", "escaped", "mrkdwn", "mrkdwn_parts", "without_pings"]

MAX_MARKDOWN_BLOCK = 12_000
MAX_TEXT = 3_900  # beyond 4,000 Slack refuses edits and cuts posts
_MAX_SPANS = 10_000
_MARKERS = {"bold": "*", "italic": "_", "strikethrough": "~", "code": "`"}
_PING = re.compile(r"<(?=[!@#])")
_WORD_JOINER = "\u2060"
_ZERO_WIDTH_SPACE = "\u200b"


def without_pings(text: str) -> str:
    """The text with Slack's control sequences (``<!here>``, ``<@U...>``) broken by an invisible character, so that they ping nobody."""
    return _PING.sub("<" + _WORD_JOINER, text)


def escaped(text: str) -> str:
    """As mrkdwn shows it literally."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def mrkdwn_parts(rich: RichText, *, limit: int = MAX_TEXT) -> list[str]:
    """Cut into texts that are not longer than the limit as Slack counts them, escapes and marks included."""
    parts: list[str] = []
    waiting = [rich]
    while waiting:
        piece = waiting.pop()
        written = mrkdwn(piece)
        if units(written) <= limit:
            parts += [written] if written.strip() else []
            continue
        size = units(piece.text)
        room = max(2, min(limit, size * limit // units(written) - 1))
        if room < size:
            waiting += reversed(split(piece, limit=room, max_spans=_MAX_SPANS))
        else:  # a word with an address that is longer than a message
            parts.append(escaped(piece.text))
    return parts


def mrkdwn(rich: RichText) -> str:
    """Write the ranges as marks. A mark beside a letter gets an invisible space, or Slack would not read it as one."""
    inner = [_tight(rich.text, span) for span in rich.spans if span.kind != "blockquote"]
    starts = [span.start for span in inner]
    written: list[str] = []

    def write(start: int, end: int, line_start: str = "") -> None:
        piece = _marked(rich.text, start, end, inner[bisect_left(starts, start) : bisect_left(starts, end)])
        written.append("\n".join(line_start + line for line in piece.split("\n")) if line_start else piece)

    at = 0
    for quote in (span for span in rich.spans if span.kind == "blockquote"):
        write(at, quote.start)
        write(quote.start, quote.end, "> ")
        at = quote.end
    write(at, len(rich.text))
    return "".join(written)


def _tight(text: str, span: Span) -> Span:
    """Without the blanks at its ends, beside which Slack reads no mark."""
    if span.kind not in _MARKERS:
        return span
    piece = text[span.start : span.end]
    start = span.start + len(piece) - len(piece.lstrip())
    return Span(span.kind, start, max(start, span.start + len(piece.rstrip())), span.value)


def _marked(text: str, start: int, end: int, spans: list[Span]) -> str:
    opening = [(span.start, 1, order, span) for order, span in enumerate(spans)]
    closing = [(span.end, 0, -order, span) for order, span in enumerate(spans)]
    pieces: list[str] = []
    at, in_code = start, False
    for position, opens, _, span in sorted(opening + closing, key=lambda each: each[:3]):
        pieces.append(_literal(text[at:position], in_code=in_code))
        at = position
        is_code = span.kind in ("pre", "code")
        if is_code or not in_code:
            pieces.append(_mark(text, span, opening=bool(opens)))
        if is_code:
            in_code = bool(opens)
    pieces.append(escaped(text[at:end]))
    return "".join(pieces)


def _literal(text: str, *, in_code: bool) -> str:
    written = escaped(text)
    return written.replace("```", "`" + _ZERO_WIDTH_SPACE + "``") if in_code else written


def _mark(text: str, span: Span, *, opening: bool) -> str:
    if span.kind == "pre":
        return "```\n" if opening else "\n```"
    if span.kind == "text_link":
        return f"<{escaped(span.value).replace('|', '%7C')}|" if opening else ">"
    if span.kind == "code" and "`" in text[span.start : span.end]:
        return ""  # mrkdwn has no way to write it
    marker = _MARKERS.get(span.kind, "")
    beside = text[span.start - 1 : span.start] if opening else text[span.end : span.end + 1]
    gap = _ZERO_WIDTH_SPACE if marker and beside.isalnum() else ""
    return gap + marker if opening else marker + gap
