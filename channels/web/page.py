"""The web page's files, which never change while a host runs."""

import hashlib
from functools import cache
from pathlib import Path

import msgspec

__all__ = ["PageFile", "page_file"]

_FOLDER = Path(__file__).parent / "static"
_KINDS = {
    "index.html": "text/html",
    "app.js": "text/javascript",
    "chat.js": "text/javascript",
    "composer.js": "text/javascript",
    "connection.js": "text/javascript",
    "markdown.js": "text/javascript",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
}


class PageFile(msgspec.Struct, frozen=True):
    content: bytes
    media_type: str
    etag: str


def page_file(name: str) -> PageFile | None:
    """A file of the page; None for whatever is not one of them, so that no name leads out of the folder."""
    return _read(name) if name in _KINDS else None


@cache
def _read(name: str) -> PageFile:
    content = (_FOLDER / name).read_bytes()
    return PageFile(content, _KINDS[name], f'"{hashlib.sha256(content).hexdigest()[:20]}"')
