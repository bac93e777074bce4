"""What loading came to."""

from typing import Literal

import msgspec

from features.contracts.extensions import ExtensionSpec

__all__ = ["ExtensionState", "LoadedExtension", "LoadedExtensions"]

ExtensionState = Literal["active", "disabled", "untrusted", "failed"]


class LoadedExtension(msgspec.Struct, frozen=True, kw_only=True):
    """One that was found.

    ``active`` ones have a ``spec``; ``untrusted`` ones wait for an owner's word about ``digest``. ``reason`` says what is wrong, also of
    one that is active in an earlier version. ``origin`` is a path, or the package that brings it. ``root`` is the private name of its
    module, empty where it has none. ``own`` ones are those of a place.
    """

    name: str
    origin: str
    state: ExtensionState
    reason: str = ""
    digest: str = ""
    root: str = ""
    spec: ExtensionSpec | None = None
    own: bool = False


class LoadedExtensions(msgspec.Struct, frozen=True, kw_only=True):
    """In the order in which they were found, whatever their state."""

    all: tuple[LoadedExtension, ...] = ()

    @property
    def specs(self) -> tuple[ExtensionSpec, ...]:
        return tuple(extension.spec for extension in self.all if extension.spec is not None)

    @property
    def problems(self) -> tuple[LoadedExtension, ...]:
        return tuple(extension for extension in self.all if extension.state == "failed")
