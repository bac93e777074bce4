"""Finding ``pumice.toml``, reading it, and laying the environment over it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.config.errors import ConfigurationError

__all__ = ["FromEnvironment", "expand_home", "find_file", "lay_over", "read_file"]

_PREFIX = "PUMICE_"
_FILE_VARIABLE = "PUMICE_CONFIG"
_NAME = "pumice.toml"


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """A value that a variable gives: as TOML reads it, and as it was written."""

    variable: str
    value: Any
    text: str


def find_file(path: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The configuration file that holds here; None where there is none.

    Raises:
        ConfigurationError: a file that was asked for is not there.
    """
    named = environ.get(_FILE_VARIABLE, "")
    if path is not None or named:
        asked = cwd / expand_home(path if path is not None else Path(named), environ)
        if not asked.is_file():
            by = "--config" if path is not None else _FILE_VARIABLE
            raise ConfigurationError(f"{asked}, named by {by}, is no file. Write it, or leave {by} out to run without one.")
        return asked
    places = [cwd / _NAME]
    if environ.get("HOME"):
        places.append(Path(environ["HOME"]) / ".config" / "pumice" / _NAME)
    return next((place for place in places if place.is_file()), None)


def expand_home(path: Path, environ: Mapping[str, str]) -> Path:
    """``~`` at the start is the home folder."""
    home = environ.get("HOME")
    return Path(home, *path.parts[1:]) if home and path.parts[:1] == ("~",) else path


def read_file(path: Path) -> dict[str, Any]:
    """The file's tables, unchecked."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is no valid TOML: {error}. Correct that line.") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path} is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}. Save it as UTF-8."
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}. Let the host's user read it.") from None


def lay_over(table: dict[str, Any], environ: Mapping[str, str]) -> None:
    """Put what ``PUMICE_SECTION__KEY`` variables say into ``table``.

    An empty variable makes its key absent, whatever the file says. A name in a path (``providers.NAME``) that the file has is found again
    in any case and with ``_`` for ``-``; a new one is in lower case.
    """
    for variable in sorted(environ):
        if not variable.startswith(_PREFIX) or variable == _FILE_VARIABLE:
            continue
        parts = variable.removeprefix(_PREFIX).split("__")
        text = environ[variable]
        _put(table, parts, FromEnvironment(variable, _as_toml(text), text))


def _put(table: dict[str, Any], parts: list[str], value: FromEnvironment) -> None:
    for part in parts[:-1]:
        key = _known_spelling(table, part)
        below = table.setdefault(key, {})
        if isinstance(below, FromEnvironment):
            below = below.value
        if not isinstance(below, dict):
            raise ConfigurationError(f"{value.variable} goes into {key!r}, which is no table. Correct one of the two.")
        table[key] = below
        table = below
    table[_known_spelling(table, parts[-1])] = value


def _known_spelling(table: dict[str, Any], part: str) -> str:
    wanted = part.lower()
    return next((key for key in table if key.lower().replace("-", "_") == wanted), wanted)


def _as_toml(text: str) -> Any:
    try:
        read = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return read["value"] if len(read) == 1 else text  # a line end in the text may begin another key
