"""The extensions of each place."""

import asyncio
from collections.abc import Callable

from features.contracts.chat import Address
from features.contracts.sessions import TransactionWork
from features.extensions import ExtensionCatalogue, ExtensionLease, LoadedExtensions
from workspaces import Workspaces

__all__ = ["PlaceExtensions"]


class PlaceExtensions:
    """What the catalogue knows, by place.

    Args:
        may_have_own: whether the extensions in a place's own folder may run at all, once trusted.
    """

    def __init__(self, catalogue: ExtensionCatalogue, workspaces: Workspaces, *, may_have_own: Callable[[Address], bool]) -> None:
        self._catalogue = catalogue
        self._workspaces = workspaces
        self._may_have_own = may_have_own

    def version(self, place: Address) -> int:
        """Changes whenever a session of the place would get others than before."""
        return self._catalogue.version(str(place))

    async def take(self, place: Address) -> ExtensionLease:
        """What a session of the place works with; close it with the session."""
        folder = await asyncio.to_thread(self._workspaces.extensions, place)
        return await self._catalogue.take(str(place), folder, own=self._may_have_own(place))

    async def is_stale(self, place: Address, lease: ExtensionLease) -> bool:
        return await self._catalogue.is_stale(lease, await asyncio.to_thread(self._workspaces.extensions, place))

    async def reload(self) -> LoadedExtensions:
        """Load those of the whole host again; sessions take them up when they are idle."""
        return await self._catalogue.load()

    async def trust(self, place: Address, digest: str, *, by: str) -> str:
        """Let what has this digest run in the place; gives its name.

        Raises:
            UserMustAct: there is nothing like that.
        """
        folder = await asyncio.to_thread(self._workspaces.extensions, place)
        return await self._catalogue.trust(str(place), folder, digest, by=by)

    def move_place(self, old: Address, new: Address) -> TransactionWork:
        return self._catalogue.move_place(str(old.place), str(new.place))

    def place_moved(self, old: Address, new: Address) -> None:
        self._catalogue.place_moved(str(old.place), str(new.place))

    async def disable(self, place: Address, name: str, *, by: str) -> None:
        await self._catalogue.disable(str(place), name, by=by)

    async def enable(self, place: Address, name: str) -> None:
        await self._catalogue.enable(str(place), name)
