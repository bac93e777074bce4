"""The host's log: one line per record on stderr, redacted, and the last ones in memory for the page."""

import logging
import sys
from collections import deque
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from features.contracts.processes import SecretRedactor

__all__ = ["RecentLine", "RecentLogs", "configure_logs"]

_QUIET = ("httpx", "httpx2", "httpcore", "httpcore2", "telegram", "uvicorn.access", "uvicorn.error", "asyncio", "PIL", "aiosqlite")
_LONGEST_LINE = 16384
_Event = MutableMapping[str, Any]


class RecentLine(msgspec.Struct, frozen=True, kw_only=True):
    """A redacted line of the log; ``number`` rises by one with each."""

    number: int
    at: datetime
    level: str
    text: str


class RecentLogs:
    """The last lines, bounded. Filled by the log's handler, under its lock."""

    def __init__(self, limit: int = 500) -> None:
        self._lines: deque[RecentLine] = deque(maxlen=limit)
        self._written = 0

    def add(self, *, at: datetime, level: str, text: str) -> None:
        self._written += 1
        self._lines.append(RecentLine(number=self._written, at=at, level=level, text=text))

    def after(self, number: int = 0) -> list[RecentLine]:
        """What came after a line that was seen; all there is for 0."""
        return [line for line in tuple(self._lines) if line.number > number]


def configure_logs(level: str, redactor: SecretRedactor, *, json: bool, stream: TextIO | None = None) -> RecentLogs:
    """Send every record of the process, libraries' too, through the redactor to ``stream``.

    Replaces what was configured before. Libraries that log each request are heard from warnings on: a bot's token is in its addresses.

    Args:
        level: ``debug`` to ``critical``.
        json: one JSON object per line, for machines; else a line for people.
        stream: standard error where it is not given.
    """
    recent = RecentLogs()
    target = stream or sys.stderr
    handler = _RedactingHandler(target, redactor, recent)
    handler.setFormatter(_formatter(json=json, colors=not json and target.isatty()))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    logging.captureWarnings(True)
    return recent


class _RedactingHandler(logging.StreamHandler[TextIO]):
    """Redacts the finished line, so that facts, tracebacks and what a library put together are all covered."""

    def __init__(self, stream: TextIO, redactor: SecretRedactor, recent: RecentLogs) -> None:
        super().__init__(stream)
        self._redactor = redactor
        self._recent = recent

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self._redactor.redact(self.format(record))
            if len(line) > _LONGEST_LINE:
                line = line[:_LONGEST_LINE] + "..."
            self._recent.add(at=datetime.fromtimestamp(record.created, UTC), level=record.levelname.lower(), text=line)
            self.stream.write(line + self.terminator)
            self.flush()
        except (ValueError, TypeError, KeyError, AttributeError, OSError):
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        """The standard answer prints the record as it is, unredacted."""
        try:
            self.stream.write(f"a log record of {record.name} could not be written{self.terminator}")
        except (ValueError, OSError):  # the stream itself is gone; there is nowhere left to say so
            return


def _formatter(*, json: bool, colors: bool) -> logging.Formatter:
    import structlog

    renderer: Any
    if json:
        renderer = structlog.processors.JSONRenderer(default=repr)
    else:
        renderer = structlog.dev.ConsoleRenderer(
            colors=colors, exception_formatter=structlog.dev.plain_traceback, pad_event_to=0, timestamp_key="timestamp"
        )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            _add_time,
            _add_facts,
            structlog.processors.format_exc_info,
        ],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *([] if json else [_on_one_line]), renderer],
    )


def _add_time(_logger: Any, _method: str, event: _Event) -> _Event:
    event["timestamp"] = datetime.fromtimestamp(event["_record"].created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return event


def _add_facts(_logger: Any, _method: str, event: _Event) -> _Event:
    facts = getattr(event["_record"], "facts", None)
    if isinstance(facts, dict):
        for name, value in facts.items():
            event[name if name not in event else f"{name}_"] = value
    return event


def _on_one_line(_logger: Any, _method: str, event: _Event) -> _Event:
    """A line end in a message must not look like another record."""
    event["event"] = str(event.get("event", "")).replace("\r", "\\r").replace("\n", "\\n")
    return event
