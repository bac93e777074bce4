"""Files on their way out."""

from pathlib import Path

from features.contracts.chat import OutboundFile

__all__ = ["MAX_UPLOAD_BYTES", "megabytes", "problem_with"]

MAX_UPLOAD_BYTES = 1024 * 1024 * 1024


def problem_with(file: OutboundFile) -> str | None:
    """Why a file is not even tried, in words for people; blocking."""
    name = file.name or file.path.name
    try:
        size = file.path.stat().st_size
        with file.path.open("rb"):
            pass
    except OSError as error:
        return f"{name} cannot be read: {error.strerror or error}."
    if not Path(file.path).is_file():
        return f"{name} is no file."
    if not size:
        return f"{name} is empty, and Slack takes no empty files."
    if size > MAX_UPLOAD_BYTES:
        return f"{name} has {megabytes(size)}; Slack takes files of at most {megabytes(MAX_UPLOAD_BYTES)}."
    return None


def megabytes(size: int) -> str:
    """A size as people say it, rounded up at one decimal so that a file just over a limit does not look like the limit."""
    tenths = -(-size * 10 // (1024 * 1024))
    return f"{tenths // 10} MB" if tenths % 10 == 0 else f"{tenths / 10:.1f} MB"
