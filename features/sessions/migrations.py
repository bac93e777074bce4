"""Older versions of the session format, brought to the present one line by line."""

import json
from collections.abc import Mapping
from typing import Any

from features.sessions.json_line import DROP, changed, json_text, member

__all__ = ["migrated_line"]

_FIRST_TREE_VERSION = 2


def migrated_line(line: str, version: int, place: Mapping[str, str], ids_by_line: Mapping[int, str]) -> str:
    """A line of version 1 (a list without ids) or 2 (``hookMessage``) in version 3.

    Args:
        place: ``id`` and ``parentId`` as JSON, for a line that has none.
        ids_by_line: ids of the entries before it by the number of their line, the header's being 0.

    Raises:
        ValueError: the line is no JSON object.
    """
    changes: dict[str, str | object] = {}
    if version < _FIRST_TREE_VERSION:
        changes.update(place)
        if (index := member(line, "firstKeptEntryIndex")) is not None:
            kept = ids_by_line.get(_whole(json.loads(index)))
            changes["firstKeptEntryIndex"] = DROP
            # A compaction that kept from the header on, or from nowhere, names itself: it keeps nothing, as in pi, and stays readable.
            changes["firstKeptEntryId"] = json_text(kept) if kept is not None else place["id"]
    message = member(line, "message")
    if message is not None and "hookMessage" in message and json.loads(member(message, "role") or "null") == "hookMessage":
        changes["message"] = changed(message, {"role": '"custom"'})
    return changed(line, changes) if changes else line


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else -1
