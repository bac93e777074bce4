"""From paths and packages to extensions that a session can have."""

import logging
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from features.contracts.extensions import Activate, ExtensionSpec
from features.extensions.loaded import LoadedExtension, LoadedExtensions
from features.extensions.private_modules import PrivateModules, activate_of, guarded
from features.extensions.sources import (
    BrokenExtensionError,
    ExtensionSource,
    Snapshot,
    check_name,
    check_priority,
    declared,
    find_sources,
    plain_name,
    read_snapshot,
)

__all__ = ["GROUP", "ExtensionLoader", "FoundExtension"]

log = logging.getLogger("pumice.extensions")

T = TypeVar("T")

GROUP = "pumice.extensions"
"""The entry-point group of installed packages."""
_DEADLINE_S = 10.0
_READING_S = 30.0


class FoundExtension(msgspec.Struct, frozen=True, kw_only=True):
    """What was read at a path, or why nothing could be."""

    path: Path
    snapshot: Snapshot | None = None
    problem: str = ""


class ExtensionLoader:
    """Finds, reads and imports. What is wrong with one extension is said of it and harms no other.

    Args:
        config: each extension's own table, by its name.
        disabled: names that are not imported.
        taken: names that the host itself uses.
        deadline_s: how long importing one extension may take.
    """

    def __init__(
        self,
        *,
        config: Mapping[str, Mapping[str, Any]] | None = None,
        disabled: Collection[str] = (),
        taken: Collection[str] = (),
        deadline_s: float = _DEADLINE_S,
    ) -> None:
        self._config = config or {}
        self._disabled = frozenset(disabled)
        self._taken = frozenset(taken)
        self._deadline_s = deadline_s
        self._modules = PrivateModules()

    async def load(self, paths: Sequence[Path] = (), *, entry_points: bool = True) -> LoadedExtensions:
        """Those of the whole host: what ``paths`` name, in that order, then what installed packages bring. The first of a name wins."""
        names = dict.fromkeys(self._taken, "the host itself")
        read: dict[Path, FoundExtension] = {}
        for path in paths:
            for found in await self._read(path, strict=False):
                read.setdefault(found.path.resolve(), found)  # a file and its folder may both be named
        loaded: list[LoadedExtension] = []
        with self._all_or_nothing(loaded):
            for found in read.values():
                loaded.append(await self._import(found, names))  # noqa: PERF401 - what is there must be known at every await
            if entry_points:
                for entry in await _in_thread(_installed):
                    loaded.append(await self._import_package(entry, names))  # noqa: PERF401 - as above
        return _logged(loaded)

    async def read_place(self, folder: Path) -> tuple[FoundExtension, ...]:
        """What is in a place's own folder, which need not exist; nothing of it is run."""
        if folder.is_symlink() or not folder.is_dir():
            return ()
        return tuple(await self._read(folder, strict=True))

    async def load_place(
        self, read: Iterable[FoundExtension], *, trusted: Collection[str], names: Collection[str] = (), disabled: Collection[str] = ()
    ) -> LoadedExtensions:
        """Import what was read in a place, and of it only what an owner trusts.

        Args:
            trusted: digests.
            names: those that the whole host's extensions have.
            disabled: names that are not imported in this place.
        """
        taken = dict.fromkeys(names, "an extension of the whole host") | dict.fromkeys(self._taken, "the host itself")
        loaded: list[LoadedExtension] = []
        with self._all_or_nothing(loaded):
            for found in read:
                extension = await self._import(found, taken, trusted=trusted, disabled=disabled)
                loaded.append(msgspec.structs.replace(extension, own=True))
        return _logged(loaded)

    def release(self, extension: LoadedExtension) -> None:
        """Forget the modules of an extension that no session is at work with any more."""
        if extension.root:
            self._modules.unload(extension.root)

    def close(self) -> None:
        self._modules.close()

    @contextmanager
    def _all_or_nothing(self, loaded: list[LoadedExtension]) -> Iterator[None]:
        """Whoever wanted them may be cancelled in the middle; nobody would release what is there by then."""
        try:
            yield
        except BaseException:
            for extension in loaded:
                self.release(extension)
            raise

    async def _read(self, path: Path, *, strict: bool) -> list[FoundExtension]:
        try:
            sources = await _in_thread(lambda: find_sources(path))
        except BrokenExtensionError as error:
            return [FoundExtension(path=path, problem=str(error))]
        return [await self._read_one(source, strict=strict) for source in sources]

    async def _read_one(self, source: ExtensionSource, *, strict: bool) -> FoundExtension:
        try:
            snapshot = await guarded(lambda: read_snapshot(source, strict=strict), deadline_s=_READING_S)
        except BrokenExtensionError as error:
            return FoundExtension(path=source.path, problem=str(error))
        return FoundExtension(path=source.path, snapshot=snapshot)

    async def _import(
        self,
        found: FoundExtension,
        names: dict[str, str],
        *,
        trusted: Collection[str] | None = None,
        disabled: Collection[str] = (),
    ) -> LoadedExtension:
        """``trusted`` None trusts whatever is there: the configuration named it. Puts the name into ``names``."""
        snapshot = found.snapshot
        if snapshot is None:
            return LoadedExtension(name=plain_name(found.path), origin=str(found.path), state="failed", reason=found.problem)
        loaded = LoadedExtension(name=plain_name(found.path), origin=str(found.path), state="failed", digest=snapshot.digest)
        try:
            says = await guarded(lambda: declared(snapshot), deadline_s=_READING_S)
            loaded = msgspec.structs.replace(loaded, name=says.name)
            if says.name in self._disabled or says.name in disabled:
                return msgspec.structs.replace(loaded, state="disabled")
            _take(says.name, names, loaded.origin)
            if trusted is not None and snapshot.digest not in trusted:
                return msgspec.structs.replace(loaded, state="untrusted")
            root, activate = await self._run(snapshot)
        except BrokenExtensionError as error:
            return msgspec.structs.replace(loaded, reason=str(error))
        return msgspec.structs.replace(
            loaded, state="active", root=root, spec=self._spec(says.name, activate, loaded.origin, says.priority)
        )

    async def _run(self, snapshot: Snapshot) -> tuple[str, Activate]:
        root = self._modules.reserve(snapshot)
        try:
            return root, await guarded(lambda: self._modules.load(root), deadline_s=self._deadline_s)
        except BaseException:
            self._modules.unload(root)
            raise

    async def _import_package(self, entry: EntryPoint, names: dict[str, str]) -> LoadedExtension:
        origin = f"package {entry.dist.name} {entry.dist.version}" if entry.dist is not None else f"package {entry.module}"
        loaded = LoadedExtension(name=entry.name, origin=origin, state="failed")
        try:
            if entry.name in self._disabled:
                return msgspec.structs.replace(loaded, state="disabled")
            _take(check_name(entry.name), names, origin)
            activate, priority = await guarded(lambda: _imported(entry), deadline_s=self._deadline_s)
        except BrokenExtensionError as error:
            return msgspec.structs.replace(loaded, reason=str(error))
        return msgspec.structs.replace(loaded, state="active", spec=self._spec(entry.name, activate, origin, priority))

    def _spec(self, name: str, activate: Activate, origin: str, priority: int) -> ExtensionSpec:
        return ExtensionSpec(name=name, activate=activate, origin=origin, priority=priority, config=self._config.get(name, {}))


def _take(name: str, names: dict[str, str], origin: str) -> None:
    if name in names:
        raise BrokenExtensionError(f"its name is that of {names[name]}; the first one counts")
    names[name] = origin


async def _in_thread(work: Callable[[], Iterable[T]]) -> list[T]:
    return await guarded(lambda: list(work()), deadline_s=_READING_S)


def _installed() -> Iterator[EntryPoint]:
    from importlib import invalidate_caches
    from importlib.metadata import entry_points

    invalidate_caches()  # a package may have been installed since the host started
    yield from sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def _imported(entry: EntryPoint) -> tuple[Activate, int]:
    """``activate`` and the priority of a package's extension; the entry point names its module, or ``activate`` in it."""
    loaded = entry.load()
    activate = activate_of(loaded if entry.attr else getattr(loaded, "activate", None))
    return activate, check_priority(getattr(sys.modules.get(entry.module), "PRIORITY", 0))


def _logged(loaded: list[LoadedExtension]) -> LoadedExtensions:
    for extension in loaded:
        if extension.state == "failed":
            log.warning(
                "extension not loaded",
                extra={"facts": {"extension": extension.name, "origin": extension.origin, "reason": extension.reason}},
            )
    return LoadedExtensions(all=tuple(loaded))
