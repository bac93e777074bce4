"""What a chat has set for itself, kept per place and across restarts."""

import logging
from collections import OrderedDict
from typing import Any, Literal

import msgspec

from features.contracts.chat import Address
from features.contracts.database import Database, Migrations, Transaction
from features.contracts.models import ThinkingLevel
from features.contracts.sessions import TransactionWork

__all__ = ["SETTINGS_MIGRATIONS", "BusyMode", "ChatSettings", "SettingsStore", "Verbosity"]

BusyMode = Literal["steer", "follow_up", "interrupt", "collect"]
Verbosity = Literal["off", "status", "full"]

SETTINGS_MIGRATIONS = Migrations(
    slice="settings",
    steps=(("CREATE TABLE chat_settings (place TEXT PRIMARY KEY, changes TEXT NOT NULL)",),),
)

_log = logging.getLogger("pumice.settings")
_CACHED_PLACES = 4096


class ChatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the host behaves in a chat. ``model`` is ``provider/model``; ``time_zone`` is an IANA name."""

    model: str
    thinking: ThinkingLevel
    time_zone: str
    busy: BusyMode
    verbose: Verbosity
    stream: bool


class SettingsStore:
    """Only what a place has changed is stored, so that everything else follows the configuration. Implements ``PlaceFollower``."""

    def __init__(self, database: Database, defaults: ChatSettings) -> None:
        self.defaults = defaults
        self._database = database
        self._cache: OrderedDict[Address, ChatSettings] = OrderedDict()

    async def get(self, place: Address) -> ChatSettings:
        """The settings of a place, or of an address in it."""
        place = place.place
        if (known := self._cache.get(place)) is not None:
            self._cache.move_to_end(place)
            return known
        changes = await self._database.read(lambda transaction: _changes_of(transaction, place))
        return self._cache.get(place) or self._remember(place, changes)  # a change may have come in while this was reading

    async def change(self, place: Address, **changes: str | bool | None) -> ChatSettings:
        """Store some settings; None goes back to the configuration's.

        Raises:
            ValueError: no such setting, or not a value of it.
        """
        place = place.place
        given = {name: value for name, value in changes.items() if value is not None}
        unknown = changes.keys() - set(ChatSettings.__struct_fields__)
        if unknown or _bad_names(self.defaults, given):
            raise ValueError(f"these are no settings with such values: {changes!r}")

        def write(transaction: Transaction) -> dict[str, Any]:
            stored = _changes_of(transaction, place) | given
            kept = {name: value for name, value in stored.items() if changes.get(name, value) is not None}
            transaction.execute(
                "INSERT INTO chat_settings (place, changes) VALUES (?, ?) ON CONFLICT (place) DO UPDATE SET changes = excluded.changes",
                (str(place), msgspec.json.encode(kept).decode()),
            )
            return kept

        return self._remember(place, await self._database.write(write))

    def move_place(self, old: Address, new: Address) -> TransactionWork:
        def work(transaction: Transaction) -> None:
            transaction.execute(
                "INSERT INTO chat_settings (place, changes) SELECT ?, changes FROM chat_settings WHERE place = ? "
                "ON CONFLICT (place) DO UPDATE SET changes = excluded.changes",
                (str(new.place), str(old.place)),
            )
            transaction.execute("DELETE FROM chat_settings WHERE place = ?", (str(old.place),))

        return work

    def place_moved(self, old: Address, new: Address) -> None:
        self._cache.pop(old.place, None)
        self._cache.pop(new.place, None)

    def _remember(self, place: Address, changes: dict[str, Any]) -> ChatSettings:
        bad = _bad_names(self.defaults, changes)
        if bad:
            _log.warning("stored settings left out", extra={"facts": {"place": str(place), "settings": sorted(bad)}})
        good = {name: value for name, value in changes.items() if name not in bad}
        settings = msgspec.structs.replace(self.defaults, **good)
        self._cache[place] = settings
        self._cache.move_to_end(place)
        if len(self._cache) > _CACHED_PLACES:
            self._cache.popitem(last=False)
        return settings


def _changes_of(transaction: Transaction, place: Address) -> dict[str, Any]:
    row = transaction.fetch_one("SELECT changes FROM chat_settings WHERE place = ?", (str(place),))
    return msgspec.json.decode(row[0], type=dict[str, Any]) if row else {}


def _bad_names(defaults: ChatSettings, changes: dict[str, Any]) -> set[str]:
    """Names that another version may know, and values that it may have written."""
    bad = changes.keys() - set(ChatSettings.__struct_fields__)
    for name in changes.keys() - bad:
        try:
            msgspec.convert(msgspec.structs.asdict(defaults) | {name: changes[name]}, ChatSettings)
        except msgspec.ValidationError:
            bad.add(name)
    return bad
