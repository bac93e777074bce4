"""From TOML's tables to sections: every value against its type, every mistake with the key's whole path."""

import math
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from bot.config.errors import ConfigurationError
from bot.config.host_sections import Section
from bot.config.secret_references import SecretReferences, is_reference
from bot.config.source import FromEnvironment
from bot.config.values import Secret, SecretOrText
from bot.config.wording import shown, wanted

__all__ = ["Reader"]

S = TypeVar("S", bound=Section)
_ABSENT = object()


class Reader:
    """Reads sections. ``base`` is the folder that relative paths start from, ``source`` names the file in messages."""

    def __init__(self, secrets: SecretReferences, *, base: Path, home: Path | None, source: Path | None) -> None:
        self._secrets = secrets
        self._base = base
        self._home = home
        self._source = str(source) if source else "the configuration"
        self._root: type[Section] = Section

    def read(self, kind: type[S], table: dict[str, Any]) -> dict[str, Any]:
        """The fields of ``kind``, read from ``table``.

        Raises:
            ConfigurationError: the first mistake.
        """
        self._root = kind
        return self._fields(kind, table, "", self._source)

    def _value(self, kind: Any, value: Any, path: str, where: str) -> Any:
        if isinstance(value, FromEnvironment):
            return self._from_environment(kind, value, path)
        kind = _present(kind)
        if kind is Any:
            return self._free(value, path)
        if isinstance(kind, type) and issubclass(kind, Section):
            if not isinstance(value, dict):
                raise self._wrong(kind, value, path, where)
            return kind(**self._fields(kind, value, path, where))
        if get_origin(kind) is dict:
            if not isinstance(value, dict):
                raise self._wrong(kind, value, path, where)
            item = get_args(kind)[1]
            return {name: self._value(item, below, _join(path, name), where) for name, below in value.items() if not _is_absent(below)}
        if get_origin(kind) is tuple:
            if not isinstance(value, list):
                raise self._wrong(kind, value, path, where)
            item = get_args(kind)[0]
            return tuple(self._value(item, below, f"{path}[{i}]", where) for i, below in enumerate(value) if not _is_absent(below))
        return self._leaf(kind, value, path, where)

    def _free(self, value: Any, path: str) -> Any:
        """What is somebody else's to understand, such as an extension's table: as it was written, with secrets for their references."""
        if isinstance(value, FromEnvironment):
            return self._free(value.value, path)
        if isinstance(value, dict):
            return {name: self._free(below, _join(path, name)) for name, below in value.items() if not _is_absent(below)}
        if isinstance(value, list):
            return [self._free(below, f"{path}[{i}]") for i, below in enumerate(value)]
        return self._secrets.resolve(path, value) if isinstance(value, str) and is_reference(value) else value

    def _from_environment(self, kind: Any, given: FromEnvironment, path: str) -> Any:
        """A number may be meant as text where text is wanted: a secret of digits is still a text."""
        text_wanted = _present(kind) in (str, Secret, SecretOrText, Path)
        return self._value(kind, given.text if text_wanted and not isinstance(given.value, str) else given.value, path, given.variable)

    def _leaf(self, kind: Any, value: Any, path: str, where: str) -> Any:
        if kind in (Secret, SecretOrText, Path):
            if not isinstance(value, str):
                raise self._wrong(kind, value, path, where)
            return self._text(kind, value, path)
        try:
            read = msgspec.convert(value, kind)
        except msgspec.ValidationError:
            raise self._wrong(kind, value, path, where) from None
        if isinstance(read, float) and not math.isfinite(read):
            raise self._wrong(kind, value, path, where)
        return read

    def _text(self, kind: Any, text: str, path: str) -> Any:
        if kind is Path:
            below_home = self._home is not None and (text == "~" or text.startswith("~/"))
            return self._home / text[2:] if below_home and self._home else self._base / text
        if kind is SecretOrText and not is_reference(text):
            return SecretOrText(text)
        return kind(self._secrets.resolve(path, text))

    def _fields(self, kind: type[Section], table: dict[str, Any], path: str, where: str) -> dict[str, Any]:
        fields = {field.name: field for field in msgspec.structs.fields(kind)}
        other: str | None = getattr(kind, "OTHER_KEYS", None)
        read: dict[str, Any] = {}
        for key, value in table.items():
            if key in fields and key != other:
                if not _is_absent(value):
                    read[key] = self._value(fields[key].type, value, _join(path, key), where)
            elif other is not None and _is_absent(value):
                continue
            elif other is not None and not self._is_typo(kind, key):
                read.setdefault(other, {})[key] = self._value(get_args(fields[other].type)[1], value, _join(path, key), where)
            else:
                raise self._unknown(kind, path, key, value.variable if isinstance(value, FromEnvironment) else where)
        for name, field in fields.items():
            if name in read:
                continue
            if field.required and not (name == "kind" and self._kind_by_name(field.type, path, read)):
                raise ConfigurationError(f"{where}: {_join(path, name)} is missing; it must be {wanted(field.type)}. Add it.")
            if isinstance(field.default, Path):
                read[name] = self._base / field.default
            elif isinstance(field.default, Section):  # its own defaults may be relative paths too
                read[name] = type(field.default)(**self._fields(type(field.default), {}, _join(path, name), where))
        return read

    def _kind_by_name(self, kind: Any, path: str, read: dict[str, Any]) -> bool:
        """``[providers.anthropic]`` needs no ``kind = "anthropic"``."""
        name = path.rpartition(".")[2]
        if get_origin(kind) is not Literal or name not in get_args(kind):
            return False
        read["kind"] = name
        return True

    def _is_typo(self, kind: type[Section], key: str) -> bool:
        """Whether a key that could be any name is so near to a known one that it was surely meant."""
        known: tuple[str, ...] = getattr(kind, "OTHER_NAMES", ())
        names = [field.name for field in msgspec.structs.fields(kind)]
        return key not in known and bool(get_close_matches(key, [*known, *names], n=1, cutoff=0.75))

    def _wrong(self, kind: Any, value: Any, path: str, where: str) -> ConfigurationError:
        plain = _present(kind)
        near = ""
        if get_origin(plain) is Literal and isinstance(value, str):
            found = get_close_matches(value.lower(), get_args(plain), n=1)
            near = f" Did you mean {found[0]!r}?" if found else ""
        secret = plain is Secret or plain is SecretOrText
        return ConfigurationError(
            f"{where}: {path} is {'a ' + type(value).__name__ if secret else shown(value)}; it must be {wanted(kind)}.{near}"
        )

    def _unknown(self, kind: type[Section], path: str, key: str, where: str) -> ConfigurationError:
        own = [field.name for field in msgspec.structs.fields(kind)] + list(getattr(kind, "OTHER_NAMES", ()))
        near = get_close_matches(key.lower(), own, n=1)
        full = _join(path, key)
        if near:
            hint = f"Did you mean {_join(path, near[0])}?"
        elif elsewhere := _nearest_anywhere(full, list(_all_keys(self._root))):
            hint = f"Did you mean {elsewhere}?"
        else:
            hint = f"{path or 'The file'} has: {', '.join(sorted(own))}."
        return ConfigurationError(f"{where}: {full} is no known key. {hint}")


def _present(kind: Any) -> Any:
    """The type of a value that is there: without None."""
    if get_origin(kind) in (Union, UnionType):
        return next(option for option in get_args(kind) if option is not NoneType)
    return kind


def _is_absent(value: Any) -> bool:
    if isinstance(value, FromEnvironment):
        return value.value == "" or not value.text.strip()
    return isinstance(value, str) and value == ""


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _nearest_anywhere(full: str, known: list[str]) -> str | None:
    same_key = [key for key in known if key.rpartition(".")[2] == full.rpartition(".")[2].lower()]
    near = get_close_matches(full.lower(), known, n=1, cutoff=0.75) or get_close_matches(full.lower(), same_key, n=1, cutoff=0.0)
    return near[0] if near else None


def _all_keys(kind: type[Section], path: str = "") -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        full = _join(path, field.name)
        below = _present(field.type)
        if get_origin(below) is Annotated:
            below = get_args(below)[0]
        if get_origin(below) is dict:
            below, full = get_args(below)[1], f"{full}.NAME"
        yield full
        if isinstance(below, type) and issubclass(below, Section):
            yield from _all_keys(below, full)
