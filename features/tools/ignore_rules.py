"""What ``.gitignore`` files leave out."""

from collections.abc import Iterator

from features.contracts.errors import ModelMustAct
from features.tools.linear_pattern import LineTest, regex_test

__all__ = ["IgnoreRules"]

_MAX_RULES = 2000


class IgnoreRules:
    """The rules of one folder and of those above it; the deepest file's last fitting rule decides, as in git."""

    def __init__(self, base: str = "", rules: tuple[tuple[LineTest, bool], ...] = (), above: "IgnoreRules | None" = None) -> None:
        self._base = base
        self._rules = rules
        self._above = above

    def within(self, folder: str, text: str) -> "IgnoreRules":
        """These rules and those of a ``.gitignore`` in ``folder`` (relative, with a slash at its end; ``""`` is the top)."""
        return IgnoreRules(folder, tuple(_rules(text))[::-1], self)

    def leave_out(self, path: str) -> bool:
        """Whether to leave out a relative path; a folder's ends in a slash."""
        own = path[len(self._base) :]
        for fits, ignored in self._rules:
            if fits(own):
                return ignored
        return self._above is not None and self._above.leave_out(path)


def _rules(text: str) -> Iterator[tuple[LineTest, bool]]:
    from pathspec.patterns.gitignore import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    for line in text.splitlines()[:_MAX_RULES]:
        try:
            pattern, ignored = GitIgnoreSpecPattern.pattern_to_regex(line)
            if pattern is not None and ignored is not None:
                yield regex_test(pattern), ignored
        except (GitIgnorePatternError, ModelMustAct):
            continue  # git passes over what it cannot read, too
