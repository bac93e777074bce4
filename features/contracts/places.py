"""Places that their platform gives another id, as Telegram does when a group becomes a supergroup."""

from typing import Protocol

from features.contracts.chat import Address
from features.contracts.database import Transaction
from features.contracts.sessions import TransactionWork

__all__ = ["PlaceFollower", "moved_address", "readdress"]


class PlaceFollower(Protocol):
    """Whoever keeps something by place or address.

    Contract.

    - ``move_place`` gives SQL that brings everything of ``old`` under ``new``. It joins one transaction with everybody else's, and may run
      again: what has moved already stays, and where both have something, the chat that went on for longer, ``old``, wins.
    - ``place_moved`` is called after the commit, on the loop, and brings what is in memory up to it.
    - Nothing is at work in either place meanwhile.
    """

    def move_place(self, old: Address, new: Address) -> TransactionWork: ...

    def place_moved(self, old: Address, new: Address) -> None: ...


def moved_address(address: Address, old: Address, new: Address) -> Address:
    """An address as it reads after its place has moved; any other as it is."""
    if address.place != old.place:
        return address
    return Address(new.channel, new.chat, address.thread)


def readdress(transaction: Transaction, table: str, column: str, old: Address, new: Address) -> None:
    """Bring the rows of a table whose column holds an address, or a place, of ``old`` under ``new``."""
    before, after = str(old.place), str(new.place)
    transaction.execute(
        f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE {column} = ? OR substr({column}, 1, ?) = ?",  # noqa: S608
        (after, len(before) + 1, before, len(before) + 1, f"{before}/"),
    )
