"""What the ignore files in a folder of skills leave out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from features.skills.folder_walk import Entry, Folder

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["Ignored"]

_FILES = (".gitignore", ".ignore", ".fdignore")
_LONGEST = 64 * 1024


class Ignored:
    """The rules of a folder and of those above it; a path that any of them ignores is left out."""

    def __init__(self, rules: "tuple[tuple[str, GitIgnoreSpec], ...]" = ()) -> None:
        self._rules = rules

    def within(self, folder: Folder, path: str, entries: Sequence[Entry]) -> "Ignored":
        lines: list[str] = []
        for entry in entries:
            if entry.name in _FILES and entry.is_file:
                lines += folder.read(entry.name, limit=_LONGEST).decode("utf-8", "replace").splitlines()
        if not lines:
            return self
        from pathspec import GitIgnoreSpec
        from pathspec.patterns.gitignore import GitIgnorePatternError

        try:
            return Ignored((*self._rules, (f"{path}/", GitIgnoreSpec.from_lines(lines))))
        except GitIgnorePatternError:
            return self

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        written = f"{path}/" if is_folder else path
        return any(spec.match_file(written.removeprefix(base)) for base, spec in self._rules)
