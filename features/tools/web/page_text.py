"""What a page says, as text that a model can read."""

import codecs
import json
import re

import msgspec

from features.contracts.errors import ModelMustAct
from features.tools.text_lines import SNIFF_BYTES, looks_binary
from features.tools.truncation import size_text
from features.tools.web.page_fetcher import Page

__all__ = ["PageText", "page_text"]

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(
    r"text/.+|application/(?:.+\+)?(?:json|xml|yaml|toml|javascript|ecmascript|x-ndjson|x-sh|sql|x-yaml|x-javascript)|image/svg\+xml"
)
_META_CHARSET = re.compile(
    rb"""<(?:meta\b[^>]{0,200}?\bcharset|\?xml\b[^>]{0,100}?\bencoding)\s{0,5}=\s{0,5}["']?\s{0,5}([\w.:-]{1,40})""", re.IGNORECASE
)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_WIDE_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NO_CHARSETS = ("idna", "punycode", "raw_unicode_escape", "unicode_escape", "undefined")
_TITLE = re.compile(r"<title\b[^>]{0,200}>(.{0,400}?)</title", re.IGNORECASE | re.DOTALL)
_HTML_AHEAD = re.compile(rb"\s{0,200}(?:<!doctype html|<html\b|<head\b|<body\b)", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n{3,}")
_UNDECLARED = ("", "application/octet-stream")


class PageText(msgspec.Struct, frozen=True, kw_only=True):
    """``kind`` is the content type without its parameters."""

    text: str
    title: str
    kind: str


def page_text(page: Page) -> PageText:
    """Blocks for as long as a large page takes to read, so it belongs into a thread.

    Raises:
        ModelMustAct: it is no text.
    """
    kind = _kind(page)
    if kind in _HTML:
        html = _decoded(page, kind)
        return PageText(text=_readable(html, page.url), title=_title(html), kind=kind)
    if not _TEXT.fullmatch(kind) or _only_claims_to_be_text(page):
        more = "" if page.complete else " or more"
        raise ModelMustAct(f"{page.url} is {kind or 'of unknown type'} ({size_text(len(page.data))}{more}); web_fetch reads text only")
    text = _decoded(page, kind)
    return PageText(text=_indented(text) if kind.endswith("json") else text.strip(), title="", kind=kind)


def _kind(page: Page) -> str:
    declared = page.content_type.partition(";")[0].strip().lower()
    if declared not in _UNDECLARED:
        return declared
    head = page.data[:SNIFF_BYTES]
    if _HTML_AHEAD.match(head):
        return _HTML[0]
    return declared if looks_binary(head) else "text/plain"


def _only_claims_to_be_text(page: Page) -> bool:
    wide = page.data.startswith(_WIDE_BOMS) or _parameter(page.content_type).lower().startswith("utf-16")
    return not wide and b"\0" in page.data[:SNIFF_BYTES]


def _decoded(page: Page, kind: str) -> str:
    """In the charset of the byte order mark, of the header, or of the page itself; else UTF-8, else what old pages were written in."""
    data = page.data
    for bom, name in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(name, "replace")
    named = [_parameter(page.content_type)]
    if (in_page := _META_CHARSET.search(data[:4096])) is not None:
        named.append(in_page[1].decode("ascii", "replace"))
    for name in named:
        if (codec := _codec(name)) is not None:
            return data.decode(codec, "replace")
    try:
        return data.decode("utf-8", "strict" if page.complete else "ignore")
    except UnicodeDecodeError:
        return data.decode("cp1252" if kind in _HTML else "utf-8", "replace")


def _parameter(content_type: str) -> str:
    found = re.search(r"""charset\s{0,5}=\s{0,5}["']?([\w.:-]{1,40})""", content_type, re.IGNORECASE)
    return found[1] if found is not None else ""


def _codec(name: str) -> str | None:
    """A charset that Python has; one that is no charset of texts (zlib, rot13, idna) does not count."""
    try:
        "a".encode(name)
        known = codecs.lookup(name).name.replace("-", "_")
    except (LookupError, ValueError):
        return None
    if known in ("iso8859_1", "ascii"):  # browsers read both as Windows-1252, and so pages are written
        return "cp1252"
    return None if known in _NO_CHARSETS else known


def _readable(html: str, url: str) -> str:
    """Markdown, with whole addresses, without menus, scripts and what the page hides."""
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    options = ConversionOptions(
        base_url=url,
        extract_metadata=False,
        inline_data_media="alt_text_only",
        autolinks=False,
        preprocessing=PreprocessingOptions(remove_forms=False),  # some sites wrap whole pages into one
    )
    content = convert(html.replace("\0", ""), options).content
    return _BLANK_LINES.sub("\n\n", content or "").strip()


def _title(html: str) -> str:
    from html import unescape

    found = _TITLE.search(html[:100_000])
    return " ".join(unescape(found[1]).split()) if found is not None else ""


def _indented(text: str) -> str:
    """JSON on many lines, so that it can be read in parts."""
    if "\n" in text.strip():
        return text.strip()
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text.strip()
