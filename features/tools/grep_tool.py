"""The ``grep`` tool, in Python: nothing to install, nothing to start."""

import os
import time
from collections import deque
from collections.abc import Iterator
from typing import BinaryIO, Literal

from features.contracts.errors import ModelMustAct
from features.contracts.models import ToolSpec
from features.contracts.tools import ToolInvocation, ToolResult
from features.tools.background import Stop, in_thread
from features.tools.file_walk import open_found, shown_name, walk
from features.tools.files import Located, WorkspaceFiles
from features.tools.linear_pattern import LineTest, glob_test, regex_test
from features.tools.search_result import SEARCH_LIMIT_S, listing
from features.tools.text_lines import SNIFF_BYTES, lines_of, looks_binary
from features.tools.truncation import size_text

__all__ = ["GrepTool"]

_DEFAULT_LIMIT = 100
_MAX_LIMIT = 10_000
_MAX_CONTEXT = 50
_SHOWN_CHARS = 500
_SEARCHED_BYTES = 16_384
"""Of a longer line the beginning is searched."""
_LONG_CHARS = 1000
_SLOW_S = 0.05
_MAX_SLOW_S = 0.5
"""The interpreter is held while a line is tested, so a pattern that is slow on long lines is given up."""


class GrepTool:
    """Implements ``features.contracts.tools.Tool``."""

    label = "Grep"
    prompt_snippet = "grep: search in files"
    prompt_guidelines: tuple[str, ...] = ()
    execution: Literal["parallel", "sequential"] = "parallel"
    spec = ToolSpec(
        name="grep",
        description=(
            "Search the contents of files with a regular expression (ripgrep's kind, but \\w and \\d are ASCII alone: \\p{L} is a letter "
            "of any language). Files that .gitignore names and binary files are left out. "
            f"At most {_DEFAULT_LIMIT} matches unless limit says otherwise; long lines are cut to {_SHOWN_CHARS} characters."
        ),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "What to search for"},
                "path": {"type": "string", "description": "File or folder to search, the workspace unless given"},
                "glob": {"type": "string", "description": "Only files that fit, like *.py or src/**/*.ts"},
                "ignoreCase": {"type": "boolean", "description": "Upper and lower case alike"},
                "literal": {"type": "boolean", "description": "Take the pattern as plain text"},
                "context": {"type": "integer", "minimum": 0, "maximum": _MAX_CONTEXT, "description": "Lines to show around each match"},
                "limit": {"type": "integer", "minimum": 1, "maximum": _MAX_LIMIT, "description": "How many matches at most"},
            },
            "required": ["pattern"],
        },
    )

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    async def run(self, call: ToolInvocation) -> ToolResult:
        return await in_thread(lambda stop: self._search(call, stop), limit_s=SEARCH_LIMIT_S)

    def _search(self, call: ToolInvocation, stop: Stop) -> ToolResult:
        arguments = call.arguments
        limit = arguments.get("limit", _DEFAULT_LIMIT)
        search = _Search(_line_test(arguments), limit=limit, context=arguments.get("context", 0), stop=stop)
        for name, file in _files(WorkspaceFiles(call.context), arguments, stop):
            with file:
                search.through(name, file)
            if search.is_over:
                break
        notices: list[str] = []
        if search.limit_reached:
            notices.append(f"{limit} matches limit reached. Use limit={limit * 2} for more, or refine pattern")
        if search.cut_lines:
            notices.append(f"Some lines truncated to {_SHOWN_CHARS} chars. Use read tool to see full lines")
        if search.partly_searched:
            notices.append(f"Of lines beyond {size_text(_SEARCHED_BYTES)} only the beginning was searched")
        return listing(search.lines, empty="No matches found", notices=notices, max_bytes=self._max_bytes, is_partial=stop.expired)


def _line_test(arguments: dict[str, object]) -> LineTest:
    pattern, ignore_case = str(arguments["pattern"]), bool(arguments.get("ignoreCase", False))
    if not pattern:
        raise ModelMustAct("the pattern is empty; every line would match")
    if not arguments.get("literal", False):
        return regex_test(pattern, ignore_case=ignore_case)
    if ignore_case:
        folded = pattern.casefold()
        return lambda line: folded in line.casefold()
    return lambda line: pattern in line


def _files(files: WorkspaceFiles, arguments: dict[str, object], stop: Stop) -> Iterator[tuple[str, BinaryIO]]:
    """Name and content of every file to search; the caller closes each."""
    start = files.locate(str(arguments.get("path", ".")))
    match files.kind(start):
        case "":
            raise ModelMustAct(f"Path not found: {start.path}")
        case "a directory":
            fits = glob_test(str(arguments["glob"])) if arguments.get("glob") else None
            yield from _files_below(files, start, fits, stop)
        case _:
            with files.open_file(start) as (file, _):
                yield shown_name(start.parts[-1]), file


def _files_below(files: WorkspaceFiles, start: Located, fits: LineTest | None, stop: Stop) -> Iterator[tuple[str, BinaryIO]]:
    for found in walk(files, start, stop):
        if found.kind != "file" or (fits is not None and not fits(found.path)):
            continue
        descriptor = open_found(found)
        if descriptor is not None:
            yield found.path, os.fdopen(descriptor, "rb")


class _Search:
    """The matches so far, in the form ``path:line: text``, context lines as ``path-line- text``."""

    def __init__(self, test: LineTest, *, limit: int, context: int, stop: Stop) -> None:
        self.lines: list[str] = []
        self.cut_lines = False
        self.partly_searched = False
        self.limit_reached = False
        self._slow_s = 0.0
        self._test = test
        self._limit = limit
        self._context = context
        self._stop = stop
        self._matches = 0

    @property
    def is_over(self) -> bool:
        return self.limit_reached or self._stop.expired

    def through(self, name: str, file: BinaryIO) -> None:
        if looks_binary(file.read(SNIFF_BYTES)):
            return
        file.seek(0)
        before: deque[tuple[int, str]] = deque(maxlen=self._context)
        following = 0
        shown_to = 0
        for number, (raw, size) in enumerate(lines_of(file, longest=_SEARCHED_BYTES), 1):
            self._stop.check()
            if self._stop.expired or (self.limit_reached and not following):
                return
            line = raw.decode("utf-8", "replace")
            self.partly_searched |= size > _SEARCHED_BYTES
            if not self.limit_reached and self._fits(line):
                self._separate(shown_to, before[0][0] if before else number)
                self.lines += [self._shown(name, "-", *earlier) for earlier in before]
                self.lines.append(self._shown(name, ":", number, line))
                before.clear()
                following, shown_to = self._context, number
                self._matches += 1
                self.limit_reached = self._matches >= self._limit
            elif following:
                self.lines.append(self._shown(name, "-", number, line))
                following, shown_to = following - 1, number
            else:
                before.append((number, line))

    def _fits(self, line: str) -> bool:
        if len(line) < _LONG_CHARS:
            return self._test(line)
        began = time.thread_time()
        fits = self._test(line)
        taken = time.thread_time() - began
        self._slow_s += taken if taken > _SLOW_S else 0.0
        if self._slow_s > _MAX_SLOW_S:
            raise ModelMustAct("this pattern takes too long on long lines; use a simpler one, or set literal")
        return fits

    def _separate(self, shown_to: int, first: int) -> None:
        if self._context and self.lines and first != shown_to + 1:
            self.lines.append("--")

    def _shown(self, name: str, mark: str, number: int, line: str) -> str:
        if len(line) > _SHOWN_CHARS:
            self.cut_lines = True
            line = f"{line[:_SHOWN_CHARS]}... [truncated]"
        return f"{name}{mark}{number}{mark} {line}"
