"""What the log shows, and what it never does."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from bot.logs import RecentLogs, configure_logs

SECRET = "12345:AAbbccdd"


class PlainRedactor:
    """Knows one secret in its plain form."""

    def add(self, value: str, *, name: str) -> None:
        raise NotImplementedError

    def redact(self, text: str) -> str:
        return text.replace(SECRET, "[REDACTED]")

    def contains_secret(self, text: str) -> bool:
        return SECRET in text

    def stream(self) -> "PlainStream":
        return PlainStream()


class PlainStream:
    def feed(self, piece: str) -> str:
        return piece

    def finish(self) -> str:
        return ""


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """The log's configuration belongs to the process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(False)
    root.handlers[:], root.level = handlers, level


def configure(level: str = "info", *, as_json: bool = True) -> tuple[io.StringIO, RecentLogs]:
    stream = io.StringIO()
    return stream, configure_logs(level, PlainRedactor(), json=as_json, stream=stream)


def test_a_record_is_an_event_with_its_facts() -> None:
    """Machines read the facts, people the event."""
    stream, _ = configure()
    logging.getLogger("pumice.telegram").warning("polling lost", extra={"facts": {"attempt": 3, "level": "x"}})

    line = json.loads(stream.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "polling lost", "level": "warning", "logger": "pumice.telegram", "attempt": 3, "level_": "x"}


def test_no_secret_passes_in_any_part_of_a_record() -> None:
    """Not in the message, its arguments, the facts, nor a traceback, whoever logs it."""
    for as_json in (True, False):
        stream, recent = configure(as_json=as_json)
        log = logging.getLogger("some.library")
        try:
            raise RuntimeError(f"GET /bot{SECRET}/getMe failed")
        except RuntimeError:
            log.exception("request %s failed", SECRET, extra={"facts": {"url": f"x{SECRET}"}})

        for text in (stream.getvalue(), recent.after()[0].text):
            assert SECRET not in text
            assert text.count("[REDACTED]") >= 3
            assert "RuntimeError" in text


def test_libraries_that_log_each_request_are_quiet() -> None:
    """A bot's token is in its addresses, and one line per poll hides the rest."""
    stream, _ = configure("debug")
    for name in ("httpx", "httpx2", "httpcore.http11", "telegram.ext", "uvicorn.access"):
        logging.getLogger(name).info("HTTP Request")
    assert stream.getvalue() == ""

    logging.getLogger("httpx").warning("trouble")
    assert "trouble" in stream.getvalue()


def test_the_level_is_kept() -> None:
    """Debugging is asked for."""
    stream, _ = configure("warning")
    logging.getLogger("pumice.x").info("quiet")
    logging.getLogger("pumice.x").error("loud")

    assert "quiet" not in stream.getvalue()
    assert "loud" in stream.getvalue()


def test_a_line_end_in_a_message_forges_no_record() -> None:
    """Names and texts of strangers may reach the log."""
    stream, _ = configure(as_json=False)
    logging.getLogger("pumice.x").info("from Eve\n2026-01-01 [error] forged", extra={"facts": {"name": "a\nb"}})

    assert stream.getvalue().count("\n") == 1


def test_a_record_that_cannot_be_formatted_is_not_dumped() -> None:
    """The standard library would print its arguments, unredacted."""
    stream, _ = configure()
    logging.getLogger("pumice.x").info("%d", SECRET)

    assert SECRET not in stream.getvalue()
    assert "a log record of pumice.x could not be written" in stream.getvalue()


def test_configuring_again_replaces_the_handler() -> None:
    """Otherwise every line would come twice."""
    first, _ = configure()
    second, _ = configure()
    logging.getLogger("pumice.x").info("once")

    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1


def test_the_last_lines_are_kept_and_no_more() -> None:
    """The page shows them; the memory is bounded, in lines and in their length."""
    stream, recent = configure()
    log = logging.getLogger("pumice.x")
    for number in range(600):
        log.info("line %d", number)
    log.info("x" * 100_000)

    lines = recent.after()
    assert len(lines) == 500
    assert "line 599" in lines[-2].text
    assert len(lines[-1].text) < 20_000
    assert recent.after(lines[-2].number) == [lines[-1]]
    assert stream.getvalue().count("line 0") == 1
