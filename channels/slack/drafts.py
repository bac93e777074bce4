"""What drafts show, as far as it is known: a streamed text that is complete needs no edit."""

import hashlib
from collections import OrderedDict

__all__ = ["Drafts"]

_KEPT = 500


class Drafts:
    """The latest 500 finished streams, by the hash of their text."""

    def __init__(self) -> None:
        self._shown: OrderedDict[str, bytes] = OrderedDict()

    def finished(self, ref: str, text: str) -> None:
        """A stream was stopped and shows ``text``, all of it."""
        self._shown[ref] = _hash(text)
        if len(self._shown) > _KEPT:
            self._shown.popitem(last=False)

    def shows(self, ref: str, text: str) -> bool:
        return self._shown.get(ref) == _hash(text)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).digest()
