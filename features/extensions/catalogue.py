"""The extensions of a running host: those of all chats, each place's own, and what owners decided about them."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from features.contracts.errors import UserMustAct
from features.contracts.extensions import ExtensionSpec
from features.contracts.sessions import TransactionWork
from features.extensions.choices import ExtensionChoices, PlaceChoices
from features.extensions.loaded import LoadedExtension, LoadedExtensions
from features.extensions.loading import ExtensionLoader, FoundExtension

__all__ = ["ExtensionCatalogue", "ExtensionLease"]

_SHORTEST_DIGEST = 12
_REMEMBERED = 1000
_NO_SANDBOX = (
    "without a sandbox on this machine, extensions of a chat run in private chats with owners alone; 'pumice doctor' says what the "
    "sandbox lacks"
)


class ExtensionLease:
    """The extensions that one session works with; they stay importable until ``close``.

    ``news`` are those of the place that do not run and that this host has not spoken of yet.
    """

    def __init__(
        self,
        loaded: LoadedExtensions,
        *,
        contents: frozenset[str],
        news: Sequence[LoadedExtension],
        let_go: Callable[[Sequence[LoadedExtension]], None],
    ) -> None:
        self.all = loaded.all
        self.specs: tuple[ExtensionSpec, ...] = loaded.specs
        self.news = tuple(news)
        self._contents = contents
        self._let_go = let_go

    def close(self) -> None:
        """Once the session is closed; again is harmless."""
        held, self.all, self.specs = self.all, (), ()
        self._let_go(held)

    def reads_like(self, found: Iterable[FoundExtension]) -> bool:
        """Whether the place's folder holds what it held when this was taken."""
        return self._contents == _contents(found)


class ExtensionCatalogue:
    """
    Args:
        paths: what the configuration names.
        entry_points: whether installed packages may bring extensions.
    """

    def __init__(
        self, loader: ExtensionLoader, choices: ExtensionChoices, *, paths: Sequence[Path] = (), entry_points: bool = True
    ) -> None:
        self._loader = loader
        self._choices = choices
        self._paths = tuple(paths)
        self._entry_points = entry_points
        self._host = LoadedExtensions()
        self._version = 0
        self._changed: Counter[str] = Counter()
        self._in_use: Counter[str] = Counter()
        self._spoken_of: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._loading = asyncio.Lock()

    async def load(self) -> LoadedExtensions:
        """Load those of all chats, or load them again. An extension whose new version does not load stays at work as it was.

        Sessions that are open keep what they have; ``version`` tells them that there is something else.
        """
        async with self._loading:
            fresh = await self._loader.load(self._paths, entry_points=self._entry_points)
            before, self._host = self._host, _with_earlier(fresh, self._host)
            self._hold(self._host.all)
            self._let_go(before.all)
            self._version += 1
            return self._host

    def version(self, place: str) -> int:
        """Changes whenever a session of the place would get other extensions than before."""
        return self._version + self._changed[place]

    async def take(self, place: str, folder: Path, *, own: bool) -> ExtensionLease:
        """What a session of ``place`` shall work with.

        Args:
            folder: where the place's own extensions are; need not exist.
            own: whether those may run at all.
        """
        host = self._host.all
        self._hold(host)  # they may be loaded again while this waits
        try:
            choices = await self._choices.of(place)
            found = await self._loader.read_place(folder)
            mine = await self._load_own(found, choices, host, own=own)
            switched = LoadedExtensions(all=(*(_switched_off(extension, choices) for extension in host), *mine))
            self._hold(switched.all)
            return ExtensionLease(switched, contents=_contents(found), news=self._news(place, mine), let_go=self._let_go)
        finally:
            self._let_go(host)

    async def _load_own(
        self, found: Sequence[FoundExtension], choices: PlaceChoices, host: Sequence[LoadedExtension], *, own: bool
    ) -> tuple[LoadedExtension, ...]:
        if not found:
            return ()
        names = [extension.name for extension in host if extension.state != "failed"]
        trusted = choices.trusted if own else ()
        loaded = await self._loader.load_place(found, trusted=trusted, names=names, disabled=choices.disabled)
        return loaded.all if own else tuple(_unsandboxed(extension) for extension in loaded.all)

    async def is_stale(self, lease: ExtensionLease, folder: Path) -> bool:
        """Whether the place's folder has changed since; then take again."""
        return not lease.reads_like(await self._loader.read_place(folder))

    async def trust(self, place: str, folder: Path, digest: str, *, by: str) -> str:
        """Let a content run in a place; gives the extension's name.

        Args:
            digest: at least its first 12 digits, as they were shown to whoever decided.

        Raises:
            UserMustAct: nothing like that is there now.
        """
        found = await self._loader.load_place(await self._loader.read_place(folder), trusted=())
        matching = [one for one in found.all if one.digest and len(digest) >= _SHORTEST_DIGEST and one.digest.startswith(digest.lower())]
        if len(matching) != 1:
            raise UserMustAct(
                "No extension here has that content any more; it was changed or taken away. `/extensions` shows what is there."
            )
        extension = matching[0]
        if extension.state == "failed":
            raise UserMustAct(f"{extension.name} cannot run: {extension.reason}.")
        await self._choices.trust(place, extension.digest, name=extension.name, by=by)
        self._changed[place] += 1
        return extension.name

    async def disable(self, place: str, name: str, *, by: str) -> None:
        await self._choices.disable(place, name, by=by)
        self._changed[place] += 1

    async def enable(self, place: str, name: str) -> None:
        await self._choices.enable(place, name)
        self._changed[place] += 1

    def move_place(self, old: str, new: str) -> TransactionWork:
        """SQL that brings what was decided about one place's extensions under another name of it."""
        return self._choices.move(old, new)

    def place_moved(self, old: str, new: str) -> None:
        self._changed[old] += 1
        self._changed[new] += 1

    def close(self) -> None:
        """Once no session is open any more."""
        self._loader.close()

    def _hold(self, extensions: Iterable[LoadedExtension]) -> None:
        self._in_use.update(extension.root for extension in extensions if extension.root)

    def _let_go(self, extensions: Iterable[LoadedExtension]) -> None:
        for extension in extensions:
            if not extension.root:
                continue
            self._in_use[extension.root] -= 1
            if self._in_use[extension.root] <= 0:
                del self._in_use[extension.root]
                self._loader.release(extension)

    def _news(self, place: str, mine: Sequence[LoadedExtension]) -> list[LoadedExtension]:
        news = []
        for extension in mine:
            key = (place, extension.digest or extension.reason)
            if extension.state in ("untrusted", "failed") and key not in self._spoken_of:
                self._spoken_of[key] = None
                news.append(extension)
        while len(self._spoken_of) > _REMEMBERED:
            self._spoken_of.popitem(last=False)
        return news


def _contents(found: Iterable[FoundExtension]) -> frozenset[str]:
    return frozenset(f"{one.path}:{one.snapshot.digest if one.snapshot is not None else one.problem}" for one in found)


def _with_earlier(fresh: LoadedExtensions, before: LoadedExtensions) -> LoadedExtensions:
    """A gate that somebody is in the middle of editing must not fall open meanwhile: what worked goes on until its successor works."""
    working = {extension.origin: extension for extension in before.all if extension.spec is not None}
    names = {extension.name for extension in fresh.all if extension.spec is not None}

    def chosen(extension: LoadedExtension) -> LoadedExtension:
        earlier = working.get(extension.origin)
        if extension.state != "failed" or not extension.digest or earlier is None or earlier.name in names:
            return extension
        return msgspec.structs.replace(earlier, reason=f"its new version fails, so the one before is at work: {extension.reason}")

    return LoadedExtensions(all=tuple(chosen(extension) for extension in fresh.all))


def _switched_off(extension: LoadedExtension, choices: PlaceChoices) -> LoadedExtension:
    if extension.state != "active" or extension.name not in choices.disabled:
        return extension
    return msgspec.structs.replace(extension, state="disabled", spec=None, reason="in this chat", root="")


def _unsandboxed(extension: LoadedExtension) -> LoadedExtension:
    return msgspec.structs.replace(extension, reason=_NO_SANDBOX) if extension.state == "untrusted" else extension
