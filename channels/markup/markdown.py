"""Markdown to text with marked ranges.

What looks like HTML stays as it was written. Any prefix of a text renders, so a text can be shown while it grows.
"""

import logging
import re
from functools import cache
from typing import TYPE_CHECKING

from channels.markup.rich_text import RichText, Span, clean
from channels.markup.text_table import aligned

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["italic_line", "plain", "render", "tail"]

_log = logging.getLogger("pumice.markup")
_MAX_NESTING = 60
_BULLETS = ("•", "◦", "▪")
_LINKABLE = re.compile(r"(https?|tg|ton)://", re.IGNORECASE)
_LANGUAGE = re.compile(r"[\w+#.\-]{1,32}")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_INLINE_MARKS = {"strong": "bold", "em": "italic", "s": "strikethrough"}


def plain(text: str) -> RichText:
    return RichText(clean(text).strip("\n"))


def italic_line(text: str) -> RichText:
    """One line in italics; empty where there is nothing to see."""
    line = " ".join(clean(text).split())
    return RichText(line, (Span("italic", 0, len(line)),) if line else ())


def render(markdown: str) -> RichText:
    """Render CommonMark with tables and strikethrough."""
    source = clean(markdown)
    if not source.strip():
        return RichText("")
    try:
        tokens = _parser().parse(source)
        if max((token.level for token in tokens), default=0) >= _MAX_NESTING - 2:  # deeper, the parser drops text
            return plain(source)
        return _Renderer().render(tokens)
    except Exception:  # a defect of the parser must not cost the answer
        _log.exception("markdown failed", extra={"facts": {"chars": len(source)}})
        return plain(source)


def tail(markdown: str, chars: int) -> str:
    """The end of a growing text, from a paragraph's start, with a fence reopened that began before.

    It costs what ``chars`` costs to render, however long the text is.
    """
    if len(markdown) <= chars:
        return markdown
    cut = markdown.find("\n", len(markdown) - chars) + 1 or len(markdown) - chars
    opened: re.Match[str] | None = None
    for found in _FENCE.finditer(markdown, 0, cut):
        if opened is None:
            opened = found
        elif found[1].startswith(opened[1]) and not found[2].strip():
            opened = None
    return f"{opened[0]}\n{markdown[cut:]}" if opened else markdown[cut:]


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_NESTING})
    return parser.enable(["table", "strikethrough"]).disable("reference")  # a definition nobody refers to would vanish


class _Writer:
    """Text and spans as they come. A kind that is open already is not opened again, so ranges nest by construction."""

    def __init__(self) -> None:
        self.length = 0
        self._pieces: list[str] = []
        self._open: list[tuple[str, int, str]] = []
        self._spans: list[tuple[int, int, int, Span]] = []
        self._ignored: dict[str, int] = {}

    def write(self, text: str) -> None:
        self._pieces.append(text)
        self.length += len(text)

    def inside(self, kind: str) -> bool:
        return any(open_kind == kind for open_kind, _, _ in self._open)

    def open(self, kind: str, value: str = "") -> None:
        if self.inside(kind):
            self._ignored[kind] = self._ignored.get(kind, 0) + 1
        else:
            self._open.append((kind, self.length, value))

    def close(self, kind: str) -> None:
        if self._ignored.get(kind):
            self._ignored[kind] -= 1
            return
        position = next(index for index, (open_kind, _, _) in enumerate(self._open) if open_kind == kind)
        _, start, value = self._open.pop(position)
        if self.length > start:
            self._spans.append((start, -self.length, position, Span(kind, start, self.length, value)))

    def alone(self, kind: str, text: str) -> None:
        """Code in a line: no other mark may cover it but a quote, so the others end before it and go on behind it."""
        paused = [(open_kind, value) for open_kind, _, value in self._open if open_kind != "blockquote"]
        ignored = self._ignored
        self._ignored = {}
        for open_kind, _ in reversed(paused):
            self.close(open_kind)
        self.open(kind)
        self.write(text)
        self.close(kind)
        for open_kind, value in paused:
            self.open(open_kind, value)
        self._ignored = ignored

    def finish(self) -> RichText:
        text = "".join(self._pieces)
        spans = [span for _, _, _, span in sorted(self._spans, key=lambda each: each[:3])]
        return RichText(text, tuple(span for span in spans if text[span.start : span.end].strip()))


class _Renderer:
    """Walks the parser's tokens once. Newlines between blocks are owed and paid when the next block begins."""

    def __init__(self) -> None:
        self._out = _Writer()
        self._owed = 0
        self._at_line_start = True
        self._indents: list[str] = []
        self._marker = ""
        self._lists: list[int | None] = []
        self._quotes = 0
        self._rows: list[list[str]] = []
        self._alignments: list[str] = []
        self._links: list[str] = []

    def render(self, tokens: "list[Token]") -> RichText:
        for token in tokens:
            if self._rows and token.type == "inline":
                self._rows[-1].append(_cell(token))
            else:
                getattr(self, f"_{token.type}", _nothing)(token)
        return self._out.finish()

    # blocks

    def _begin(self) -> None:
        """Start a line for a block: what is owed, the indentation and the item's marker."""
        self._separate()
        if self._at_line_start:
            self._out.write("".join(self._indents[: -1 if self._marker else None]) + self._marker)
            self._marker = ""
            self._at_line_start = False

    def _separate(self) -> None:
        if self._owed:
            self._out.write("\n" * self._owed)
            self._owed, self._at_line_start = 0, True

    def _end(self, newlines: int | None = None) -> None:
        self._owed = newlines if newlines is not None else (1 if self._lists else 2)

    def _new_line(self) -> None:
        self._out.write("\n" + "".join(self._indents))

    def _inline(self, token: "Token") -> None:
        self._begin()
        for child in token.children or ():
            getattr(self, f"_{child.type}", _nothing)(child)

    def _paragraph_close(self, token: "Token") -> None:
        self._end(1 if token.hidden else 2)

    def _heading_open(self, token: "Token") -> None:
        self._begin()
        self._out.open("bold")

    def _heading_close(self, token: "Token") -> None:
        self._out.close("bold")
        self._end(2)

    def _hr(self, token: "Token") -> None:
        self._begin()
        self._out.write("———")
        self._end()

    def _fence(self, token: "Token") -> None:
        language = _LANGUAGE.match(token.info.strip())
        self._code(token.content, language[0] if language else "")

    def _code_block(self, token: "Token") -> None:
        self._code(token.content, "")

    def _code(self, content: str, language: str) -> None:
        code = content.strip("\n").expandtabs(4) if content.strip() else ""
        if not code:
            return
        if self._marker:
            self._begin()
            self._out.write("\n")
        self._separate()
        self._at_line_start = False
        self._out.open("pre", language)
        self._out.write(code)
        self._out.close("pre")
        self._end()

    def _blockquote_open(self, token: "Token") -> None:
        self._separate()
        if self._marker:
            self._begin()
        self._quotes += 1
        if self._quotes > 1:  # no platform has quotes inside quotes
            self._indents.append("> ")
        self._out.open("blockquote")

    def _blockquote_close(self, token: "Token") -> None:
        self._out.close("blockquote")
        if self._quotes > 1:
            self._indents.pop()
        self._quotes -= 1
        self._end()

    def _bullet_list_open(self, token: "Token") -> None:
        self._lists.append(None)

    def _ordered_list_open(self, token: "Token") -> None:
        self._lists.append(int(token.attrs.get("start", 1)))

    def _bullet_list_close(self, token: "Token") -> None:
        self._lists.pop()
        self._end()

    _ordered_list_close = _bullet_list_close

    def _list_item_open(self, token: "Token") -> None:
        self._separate()
        if self._marker:  # an item that begins with a list
            self._begin()
            self._owed = 1
            self._separate()
        number = self._lists[-1]
        if number is None:
            depth = sum(1 for each in self._lists if each is None)
            self._marker = _BULLETS[min(depth, len(_BULLETS)) - 1] + " "
        else:
            self._marker = f"{number}. "
            self._lists[-1] = number + 1
        self._indents.append("  " if number is None else "   ")

    def _list_item_close(self, token: "Token") -> None:
        if self._marker:  # an empty item
            self._begin()
        self._indents.pop()
        self._owed = self._owed or 1

    # tables

    def _table_open(self, token: "Token") -> None:
        self._rows, self._alignments = [], []

    def _tr_open(self, token: "Token") -> None:
        self._rows.append([])

    def _th_open(self, token: "Token") -> None:
        self._alignments.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))

    def _table_close(self, token: "Token") -> None:
        rows, self._rows = self._rows, []
        self._code(aligned(rows, self._alignments), "")

    # inside a line

    def _text(self, token: "Token") -> None:
        self._out.write(token.content)

    def _softbreak(self, token: "Token") -> None:
        self._new_line()

    _hardbreak = _softbreak

    def _code_inline(self, token: "Token") -> None:
        if self._out.inside("text_link"):  # the address is worth more than the typeface
            self._out.write(token.content)
        else:
            self._out.alone("code", token.content)

    def _strong_open(self, token: "Token") -> None:
        self._out.open(_INLINE_MARKS[token.tag])

    def _strong_close(self, token: "Token") -> None:
        self._out.close(_INLINE_MARKS[token.tag])

    _em_open = _s_open = _strong_open
    _em_close = _s_close = _strong_close

    def _link_open(self, token: "Token") -> None:
        address = str(token.attrs.get("href", ""))
        self._links.append("" if token.markup == "autolink" and not _LINKABLE.match(address) else address)
        if _LINKABLE.match(address):
            self._out.open("text_link", address)

    def _link_close(self, token: "Token") -> None:
        address = self._links.pop()
        if _LINKABLE.match(address):
            self._out.close("text_link")
        elif address and not address.startswith("#"):
            self._out.write(f" ({address})")

    def _image(self, token: "Token") -> None:
        address = str(token.attrs.get("src", ""))
        label = token.content or address
        if _LINKABLE.match(address) and not self._out.inside("text_link"):
            self._out.open("text_link", address)
            self._out.write(label)
            self._out.close("text_link")
        else:
            self._out.write(label)


def _nothing(token: "Token") -> None:
    """Tokens that leave no trace: the frames of paragraphs and tables."""


def _cell(token: "Token") -> str:
    """A table's cell as plain text; code has no marks inside."""
    words: list[str] = []
    addresses: list[str] = []
    for child in token.children or ():
        if child.type == "link_open":
            addresses.append(str(child.attrs.get("href", "")))
        elif child.type == "link_close":
            if (address := addresses.pop()) and words[-1:] != [address]:
                words.append(f" ({address})")
        elif child.type in ("softbreak", "hardbreak"):
            words.append(" ")
        else:
            words.append(child.content)
    return "".join(words).strip()
