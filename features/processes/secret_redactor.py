"""Known secrets are taken out of every text, whole and in pieces."""

import re
import threading
from collections.abc import Iterator

from features.contracts.errors import OperatorMustAct
from features.processes.prefix_automaton import PrefixAutomaton
from features.processes.secret_forms import secret_forms

__all__ = ["SecretRedactor"]

_REDACTED = "[REDACTED]"
_MIN_SECRET_CHARS = 8
_WINDOW_CHARS = 65_536
_SURROGATES = re.compile("[\ud800-\udfff]")

Span = tuple[int, int]


class _Index:
    """A set of patterns, ready to search. Immutable, so that threads can share it."""

    def __init__(self, patterns: frozenset[str]) -> None:
        import ahocorasick_rs  # only a host that knows a secret pays for it

        searchable = sorted({_searchable(pattern) for pattern in patterns})
        self._search = ahocorasick_rs.AhoCorasick(searchable, store_patterns=False)
        self.longest = max(map(len, searchable))
        self._searchable = searchable
        self._prefixes: PrefixAutomaton | None = None

    @property
    def prefixes(self) -> PrefixAutomaton:
        """Made when the first stream needs it."""
        if self._prefixes is None:
            self._prefixes = PrefixAutomaton(self._searchable)
        return self._prefixes

    def contains_secret(self, text: str) -> bool:
        return bool(self._search.find_matches_as_indexes(_searchable(text)))

    def spans(self, text: str, *, covered: int = 0) -> list[Span]:
        """Where the secrets are, in order; those that overlap are one span, so that no end of either is left over.

        Args:
            covered: this many characters at the beginning belong to a span that began before.
        """
        merged: list[Span] = [(0, covered)] if covered else []
        searchable = _searchable(text)
        if not self._search.find_matches_as_indexes(searchable):
            return merged
        for start, end in self._matches(searchable):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _matches(self, text: str) -> Iterator[Span]:
        """Every match, overlapping ones too, by where it starts; one window at a time, because there may be one for each character."""
        for offset in range(0, len(text), _WINDOW_CHARS):
            window = text[offset : offset + _WINDOW_CHARS + self.longest - 1]
            found = self._search.find_matches_as_indexes(window, overlapping=True)
            yield from sorted((offset + start, offset + end) for _, start, end in found if start < _WINDOW_CHARS)


class SecretRedactor:
    """Implements ``features.contracts.processes.SecretRedactor``; may be used from any thread."""

    def __init__(self) -> None:
        self._patterns: set[str] = set()
        self._index: _Index | None = None
        self._lock = threading.Lock()

    def add(self, value: str, *, name: str) -> None:
        """Learn a secret. White space around it does not count: files end in a line end, headers do not."""
        value = value.strip()
        if len(value) < _MIN_SECRET_CHARS:
            raise OperatorMustAct(
                f"the secret {name} has {len(value)} characters, so few that it cannot be told from other text. "
                f"Use one of at least {_MIN_SECRET_CHARS} characters."
            )
        with self._lock:
            if value not in self._patterns:
                self._patterns |= secret_forms(value)
                self._index = None

    def redact(self, text: str) -> str:
        index = self.index()
        if index is None or not (spans := index.spans(text)):
            return text
        return _replace(text, spans, len(text))

    def contains_secret(self, text: str) -> bool:
        index = self.index()
        return index is not None and index.contains_secret(text)

    def stream(self) -> "SecretStreamRedactor":
        return SecretStreamRedactor(self)

    def index(self) -> _Index | None:
        """What is searched for now; None while no secret is known."""
        if self._index is None and self._patterns:
            with self._lock:
                self._index = _Index(frozenset(self._patterns))
        return self._index


class SecretStreamRedactor:
    """Implements ``features.contracts.processes.StreamRedactor``.

    ``_tail`` is what is held back: the longest end of the text that a secret could go on from. The first ``_covered`` characters of it
    belong to a secret that was already replaced.
    """

    def __init__(self, redactor: SecretRedactor) -> None:
        self._redactor = redactor
        self._index: _Index | None = None
        self._tail = ""
        self._covered = 0
        self._node = 0

    def feed(self, piece: str) -> str:
        index = self._redactor.index()
        if index is None:
            return piece
        if index is not self._index:
            self._index, self._node = index, index.prefixes.step(0, _searchable(self._tail))
        text = self._tail + piece
        self._node = self._advance(index, piece)
        shown = len(text) - index.prefixes.held(self._node)
        spans = index.spans(text, covered=self._covered)
        safe = _replace(text, spans, shown, began_before=bool(self._covered))
        if shown:
            self._covered = next((end - shown for start, end in spans if start < shown < end), 0)
        self._tail = text[shown:]
        return safe

    def finish(self) -> str:
        tail, covered = self._tail, self._covered
        self._tail, self._covered, self._node = "", 0, 0
        if self._index is None:
            return tail
        return _replace(tail, self._index.spans(tail, covered=covered), len(tail), began_before=bool(covered))

    def _advance(self, index: _Index, piece: str) -> int:
        if len(piece) >= index.longest:
            return index.prefixes.step(0, _searchable(piece[-index.longest :]))
        return index.prefixes.step(self._node, _searchable(piece))


def _replace(text: str, spans: list[Span], until: int, *, began_before: bool = False) -> str:
    """``text`` up to ``until`` with every span replaced; a first span that began before was announced already."""
    parts: list[str] = []
    position = 0
    for number, (start, end) in enumerate(spans):
        if start >= until:
            break
        parts.append(text[position:start])
        if number or not began_before:
            parts.append(_REDACTED)
        position = min(end, until)
    parts.append(text[position:until])
    return "".join(parts)


def _searchable(text: str) -> str:
    """The same text, character for character, without the lone surrogates that the search cannot take."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
