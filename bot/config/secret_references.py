"""Secrets: where a reference points, and what is there."""

import stat
from collections.abc import Collection, Mapping
from pathlib import Path

from bot.config.errors import ConfigurationError
from bot.config.source import expand_home
from bot.config.values import Secret

__all__ = ["UNREAD", "SecretReferences", "is_reference"]

UNREAD = Secret("(not read)")

_SHORTEST = 8  # a shorter value stands in ordinary text by chance, so redaction would destroy it
_LONGEST_FILE = 65536
_KINDS = ("env:", "file:", "credential:")


def is_reference(text: str) -> bool:
    return text.startswith(_KINDS)


class SecretReferences:
    """Resolves references and remembers what they gave.

    Args:
        needed: the only keys whose secret must be there, None for all; any other that cannot be had is ``UNREAD``.
    """

    def __init__(self, environ: Mapping[str, str], base: Path, *, needed: Collection[str] | None = None) -> None:
        self._environ = environ
        self._base = base
        self._needed = needed
        self.found: list[tuple[str, str]] = []
        self.files: list[Path] = []
        self.warnings: list[str] = []

    def resolve(self, key: str, text: str) -> Secret:
        """The secret that ``text`` refers to, or is.

        Raises:
            ConfigurationError: it cannot be read, is empty or is too short.
        """
        try:
            return self._resolve(key, text)
        except ConfigurationError:
            if self._needed is None or key in self._needed:
                raise
            return UNREAD

    def _resolve(self, key: str, text: str) -> Secret:
        kind, _, name = text.partition(":")
        if text.startswith("env:"):
            value = self._from_variable(key, name)
        elif text.startswith("file:"):
            value = self._from_file(key, self._base / expand_home(Path(name), self._environ))
        elif text.startswith("credential:"):
            value = self._from_credential(key, name)
        else:
            kind, value = "the configuration", text
            self.warnings.append(f"{key} holds its secret in plain text. Refer to it: env:NAME, file:PATH or credential:NAME.")
        if len(value) < _SHORTEST:
            source = text if kind != "the configuration" else kind
            raise ConfigurationError(
                f"{key} (from {source}) has {len(value)} characters; a secret needs at least {_SHORTEST}. Give it a longer one."
            )
        secret = Secret(value)
        self.found.append((key, secret))
        return secret

    def _from_variable(self, key: str, name: str) -> str:
        value = self._environ.get(name)
        if value is None:
            raise ConfigurationError(f"{key} refers to the variable {name!r}, which is not set. Set it, or leave {key} empty.")
        if not value.strip():
            raise ConfigurationError(f"{key} refers to the variable {name!r}, which is empty. Fill it, or leave {key} empty.")
        return value.strip()

    def _from_credential(self, key: str, name: str) -> str:
        folder = self._environ.get("CREDENTIALS_DIRECTORY", "")
        if not folder:
            raise ConfigurationError(
                f"{key} refers to the systemd credential {name!r}, but there is no $CREDENTIALS_DIRECTORY. "
                "Add LoadCredential= to the unit, or use env: or file:."
            )
        if not name or "/" in name or name in (".", ".."):
            raise ConfigurationError(f"{key} refers to the credential {name!r}, which is no credential's name. Write its plain name.")
        return self._from_file(key, Path(folder) / name, checked=False)

    def _from_file(self, key: str, path: Path, *, checked: bool = True) -> str:
        try:
            with path.open("rb") as file:
                mode = stat.S_IMODE(path.stat().st_mode)
                data = file.read(_LONGEST_FILE + 1)
            value = data.decode().strip()
        except OSError as error:
            raise ConfigurationError(
                f"{key} refers to the file {path}, which cannot be read: {error.strerror}. Correct the path or its rights."
            ) from None
        except UnicodeDecodeError:
            raise ConfigurationError(f"{key} refers to the file {path}, which is no text. Put the secret alone into it.") from None
        if not value:
            raise ConfigurationError(f"{key} refers to the file {path}, which is empty. Put the secret into it.")
        if len(data) > _LONGEST_FILE:
            raise ConfigurationError(
                f"{key} refers to the file {path}, which is larger than {_LONGEST_FILE} bytes. Put the secret alone into it."
            )
        self.files.append(path)
        if checked and mode & 0o077:
            self.warnings.append(f"{key}: others may read {path} (mode {mode:04o}). Run: chmod 600 {path}")
        return value
