"""The spellings in which a secret can turn up in a text."""

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

__all__ = ["secret_forms"]

_WRAP_COLUMNS = (76, 64)
"""Where ``base64`` and ``openssl base64`` break their lines."""


def secret_forms(value: str) -> set[str]:
    """The value itself and its base64, URL, hex and JSON spellings."""
    raw = value.encode("utf-8", "surrogatepass")
    return {value, raw.hex(), raw.hex().upper(), *_base64_forms(raw), *_url_forms(raw), *_json_forms(value)}


def _base64_forms(raw: bytes) -> Iterator[str]:
    """The value encoded alone, and what of it stands in the encoding of any longer text at each of the three alignments.

    A character that also holds bits of the neighbouring bytes cannot be known and is left out.
    """
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        alone = encode(raw).decode("ascii")
        known = alone[: len(raw) * 8 // 6]
        for form in (alone, alone.rstrip("="), known):
            yield form
            yield from ("\n".join(form[start : start + columns] for start in range(0, len(form), columns)) for columns in _WRAP_COLUMNS)
        for before in (1, 2):
            yield encode(bytes(before) + raw).decode("ascii")[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]


def _url_forms(raw: bytes) -> Iterator[str]:
    for quoted in (quote(raw), quote(raw, safe=""), quote_plus(raw)):
        yield quoted
        yield re.sub(r"%[0-9A-F]{2}", lambda escape: escape.group().lower(), quoted)


def _json_forms(value: str) -> Iterator[str]:
    """As JSON writers put it: only what must be escaped; everything beyond ASCII; what would be dangerous in HTML; slashes too."""
    for plain in (json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1]):
        html_safe = re.sub(r"[<>&']", lambda sign: f"\\u{ord(sign.group()):04x}", plain)
        for form in (plain, plain.replace("/", "\\/"), html_safe):
            yield form
            yield re.sub(r"(?<!\\)((?:\\\\)*)\\u([0-9a-f]{4})", lambda escape: f"{escape[1]}\\u{escape[2].upper()}", form)
