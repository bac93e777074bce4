"""Who is admitted: by the configuration and by owners since."""

from datetime import datetime
from typing import Literal

import msgspec

from bot.config.chat_sections import AccessSection
from features.contracts.database import Database, Transaction
from features.contracts.sessions import TransactionWork

__all__ = ["Member", "Members", "store"]


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody, or a group, that is admitted.

    ``in_force`` is False for one who was paired while ``access.mode`` is ``allowlist``: then the configuration alone counts.
    """

    id: str
    kind: Literal["user", "group"]
    owner: bool
    source: Literal["configuration", "pairing"]
    name: str = ""
    admitted_by: str = ""
    admitted_at: datetime | None = None
    in_force: bool = True


class Members:
    """The admitted people and groups, in memory; changes are written by the caller's transaction first."""

    def __init__(self, options: AccessSection) -> None:
        self._options = options
        self._paired: dict[str, Member] = {}

    async def load(self, database: Database) -> None:
        rows = await database.read(
            lambda transaction: transaction.fetch_all(
                "SELECT id, kind, name, owner, admitted_by, admitted_at FROM access_members ORDER BY admitted_at, id"
            )
        )
        self._paired = {
            row[0]: Member(
                id=row[0],
                kind=row[1],
                owner=bool(row[3]),
                source="pairing",
                name=row[2],
                admitted_by=row[4],
                admitted_at=datetime.fromisoformat(row[5]),
                in_force=self.pairing,
            )
            for row in rows
        }

    @property
    def pairing(self) -> bool:
        """Whether those who were paired count; the stricter word wins."""
        return self._options.mode != "allowlist"

    def is_owner(self, person_id: str) -> bool:
        """Whoever holds the page's token or sits at the machine's terminal is one."""
        if person_id == "web:owner" or (person_id.startswith("console:") and len(person_id) > len("console:")):
            return True
        return person_id in self._options.owners or self._paired_as(person_id, "user", owner=True)

    def has_user(self, person_id: str) -> bool:
        return self.is_owner(person_id) or person_id in self._options.allow or self._paired_as(person_id, "user")

    def has_group(self, place_id: str) -> bool:
        return place_id in self._options.groups or self._paired_as(place_id, "group")

    def have_owner(self) -> bool:
        """Whether somebody who can be reached in a chat is an owner."""
        return bool(self._options.owners) or any(member.owner and member.in_force for member in self._paired.values())

    def configured_under(self, member_id: str) -> str | None:
        """The key of ``pumice.toml`` that admits this id."""
        lists = {"owners": self._options.owners, "allow": self._options.allow, "groups": self._options.groups}
        return next((f"access.{key}" for key, ids in lists.items() if member_id in ids), None)

    def everybody(self) -> list[Member]:
        options = self._options
        configured = [Member(id=person, kind="user", owner=True, source="configuration") for person in options.owners]
        configured += [Member(id=person, kind="user", owner=False, source="configuration") for person in options.allow]
        configured += [Member(id=place, kind="group", owner=False, source="configuration") for place in options.groups]
        return [*configured, *self._paired.values()]

    def get(self, member_id: str) -> Member | None:
        """One who was paired."""
        return self._paired.get(member_id)

    def put(self, member: Member) -> None:
        self._paired[member.id] = member

    def drop(self, member_id: str) -> bool:
        return self._paired.pop(member_id, None) is not None

    def _paired_as(self, member_id: str, kind: Literal["user", "group"], *, owner: bool = False) -> bool:
        member = self._paired.get(member_id)
        return member is not None and member.in_force and member.kind == kind and (member.owner or not owner)


def store(member: Member) -> TransactionWork:
    """SQL that keeps a member; an owner is not made less by being paired again."""
    assert member.admitted_at is not None
    values = (member.id, member.kind, member.name, int(member.owner), member.admitted_by, member.admitted_at.isoformat())

    def work(transaction: Transaction) -> None:
        transaction.execute(
            "INSERT INTO access_members (id, kind, name, owner, admitted_by, admitted_at) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET name = excluded.name, owner = excluded.owner, admitted_by = excluded.admitted_by, "
            "admitted_at = excluded.admitted_at",
            values,
        )

    return work
