"""Commands of which it is certain what they run: one program and its arguments, with nothing for a shell to expand."""

from collections.abc import Sequence

import msgspec

__all__ = ["CommandPattern", "simple_argv"]

_NEVER = frozenset(";|&$()<>`\n")
"""Not even in quotes: whoever reads a pattern must not have to know how shells quote."""
_NOT_BARE = frozenset("*?[]{}~#!")
_LOOPS = ("for", "while", "until", "do", "done", "select", "in")
_CHOICES = ("if", "then", "elif", "else", "fi", "case", "esac")
_RESERVED = frozenset((*_LOOPS, *_CHOICES, "function", "time", "coproc"))
_BLANKS = " \t"

_Word = list[str | None]
"""The characters of a word; None stands for a bare ``*``."""


def simple_argv(command: str) -> tuple[str, ...] | None:
    """What bash runs for ``command``; None unless it is one simple command that says exactly that."""
    words = _words(command, wildcards=False)
    if not words:
        return None
    argv = tuple("".join(character or "" for character in word) for word in words)
    return None if argv[0] in _RESERVED or "=" in argv[0] or not argv[0] else argv


class CommandPattern(msgspec.Struct, frozen=True):
    """A simple command in which a bare ``*`` stands for any characters of one word, and as the last word for any further words.

    ``words`` are cut at their wildcards. The program is always named in full.
    """

    words: tuple[tuple[str, ...], ...]
    open_ended: bool

    @classmethod
    def parse(cls, text: str) -> "CommandPattern":
        """
        Raises:
            ValueError: it is no such pattern.
        """
        words = _words(text, wildcards=True)
        if not words:
            raise ValueError("it must be a single simple command, without ; | & $ ( ) < > ` or a line break")
        if None in words[0]:
            raise ValueError("it must name its program in full; a * may stand in the arguments only")
        if simple_argv(text.split()[0]) is None:
            raise ValueError("it does not begin with a program")
        open_ended = words[-1] == [None]
        return cls(tuple(_pieces(word) for word in (words[:-1] if open_ended else words)), open_ended)

    def matches(self, argv: Sequence[str]) -> bool:
        if len(argv) < len(self.words) or (len(argv) > len(self.words) and not self.open_ended):
            return False
        return all(_fits(pieces, word) for pieces, word in zip(self.words, argv, strict=False))


def _words(text: str, *, wildcards: bool) -> list[_Word] | None:
    """The words that bash makes of a text; None where it would do more than to split and unquote it."""
    if not all(character.isprintable() or character == "\t" for character in text) or _NEVER & set(text):
        return None
    words: list[_Word] = []
    word: _Word | None = None
    quote = ""
    characters = iter(text)
    for character in characters:
        if quote:
            assert word is not None
            if character == quote:
                quote = ""
            elif character == "\\" and quote == '"':
                following = next(characters, "")
                word += [following] if following in ('"', "\\") else ["\\", following]
            else:
                word.append(character)
            continue
        if character in _BLANKS:
            if word is not None:
                words.append(word)
            word = None
            continue
        word = [] if word is None else word
        if character in "'\"":
            quote = character
        elif character == "\\":
            following = next(characters, "")
            if not following:
                return None
            word.append(following)
        elif character == "*" and wildcards:
            word.append(None)
        elif character in _NOT_BARE:
            return None
        else:
            word.append(character)
    if word is not None:
        words.append(word)
    return None if quote else words


def _pieces(word: _Word) -> tuple[str, ...]:
    pieces = [""]
    for character in word:
        if character is None:
            pieces.append("")
        else:
            pieces[-1] += character
    return tuple(pieces)


def _fits(pieces: Sequence[str], word: str) -> bool:
    """Whether a word consists of the pieces in their order with anything between them; linear in the word."""
    first, *others = pieces
    if not others:
        return word == first
    *middle, last = others
    if len(word) < len(first) + len(last) or not word.startswith(first) or not word.endswith(last):
        return False
    at, end = len(first), len(word) - len(last)
    for piece in middle:
        found = word.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True
