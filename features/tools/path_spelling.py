"""How a path may be meant that a model wrote."""

import os
import re
import unicodedata

__all__ = ["spellings"]

_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_BEFORE_AM_PM = re.compile(r" (?=[AaPp][Mm]\b)")


def spellings(written: str, *, guess: bool) -> list[str]:
    """What to look for, best first; the last is the one to take where nothing is found.

    Models put an ``@`` before a path, turn unusual spaces into plain ones and back, and type an ASCII apostrophe; macOS decomposes accents
    and writes screenshots' times with a narrow no-break space.
    """
    plain = os.path.expanduser(_SPACES.sub(" ", written.removeprefix("@")))  # noqa: PTH111 - "~user" without a home stays as it is
    if not guess:
        return [written, plain]
    decomposed = unicodedata.normalize("NFD", plain)
    variants = [
        _BEFORE_AM_PM.sub("\u202f", plain),
        decomposed,
        plain.replace("'", "\u2019"),
        decomposed.replace("'", "\u2019"),
    ]
    return list(dict.fromkeys([written, plain, *variants])) + [plain]
