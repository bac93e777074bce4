"""The gate."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from random import Random

import msgspec

from bot.access import texts
from bot.access.attempts import Attempt, Attempts
from bot.access.audit import AuditEvent, AuditLog, AuditRecord, note
from bot.access.members import Member, Members, store
from bot.access.pairing import PairingCodes, PendingCode
from bot.config.chat_sections import AccessSection
from features.contracts.chat import Address, InboundMessage, Person
from features.contracts.clock import Clock
from features.contracts.database import Database, Transaction
from features.contracts.errors import UserMustAct
from features.contracts.sessions import TransactionWork

__all__ = ["OPERATOR", "Access", "Verdict"]

OPERATOR = "cli"
"""Who approves on the machine's command line."""

_NOTICES_PER_HOUR = 10
_log = logging.getLogger("pumice.access")


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a message. ``reply`` goes to where it came from, ``tell_owners`` to the owners; both are bounded."""

    admitted: bool
    owner: bool = False
    reply: str | None = None
    tell_owners: str | None = None


_REFUSED = Verdict(admitted=False)


class Access:
    """Contract.

    - ``judge`` decides on every message before it is stored: text, edit, button, command, file. A refusal is recorded.
    - ``is_owner`` and ``admits`` answer from memory and are true from the moment that ``approve`` or ``revoke`` returns.
    - An anonymous sender is never admitted. A name admits nobody.
    - It follows a group to another id (``PlaceFollower``).

    Args:
        random: makes the pairing codes; ``SystemRandom``, so that nobody computes them.
        welcome: tells a person, by id, that they were admitted; None where nobody can be written to.
        revoked: stops what goes on for a person or a group; None where nothing does.
    """

    def __init__(
        self,
        options: AccessSection,
        database: Database,
        clock: Clock,
        random: Random,
        *,
        welcome: Callable[[str], Awaitable[None]] | None = None,
        revoked: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._options = options
        self._database = database
        self._clock = clock
        self._members = Members(options)
        self._codes = PairingCodes(database, clock, random)
        self._attempts = Attempts(database, clock)
        self._welcome = welcome
        self._revoked = revoked
        self._audit = AuditLog(database)
        self._notices: deque[datetime] = deque(maxlen=_NOTICES_PER_HOUR)
        self._changing = asyncio.Lock()

    async def load(self) -> None:
        """Read what was decided before; once, before anything is judged."""
        await self._members.load(self._database)
        await self._codes.load()
        await self._attempts.load()

    def is_owner(self, person_id: str) -> bool:
        return self._members.is_owner(person_id)

    def admits(self, person_id: str, place: Address, group: bool) -> bool:
        """Whether somebody's messages from a place are heard; in an admitted group everybody's are."""
        if self._options.mode == "open":
            return True
        return self._members.has_group(str(place.place)) if group else self._members.has_user(person_id)

    async def judge(self, message: InboundMessage) -> Verdict:
        owner = not message.sender.anonymous and self.is_owner(message.sender.id)
        admitted = self.admits(message.sender.id, message.address, message.group)
        if message.group and not message.addressed and not (admitted and self._options.group_trigger == "always"):
            return _REFUSED  # other people's talk: neither answered nor recorded
        if message.sender.anonymous:
            return await self._refuse_anonymous(message, admitted=admitted)
        if admitted:
            return Verdict(admitted=True, owner=owner)
        if not message.group:
            return await self._refuse_stranger(message)
        if owner and self._members.pairing and texts.asks_to_pair(message, "pair"):
            return Verdict(admitted=True, owner=True)
        return await self._refuse_in_group(message, owner=owner)

    async def approve(self, code: str, by: str, *, owner: bool = False) -> str:
        """Admit whoever holds ``code``; returns a sentence that says who.

        The first person whom the operator admits on a host without owners becomes one.

        Args:
            by: an owner's id, or ``OPERATOR``.
            owner: make the person an owner.

        Raises:
            UserMustAct: no owner, no such code, too many wrong ones, or a mode without pairing.
        """
        self._require_owner(by)
        self._require_pairing()
        async with self._changing:
            found = await self._codes.find(code, by)
            first = _is_operator(by) and not self._members.have_owner()
            member = self._new_member(found.person, "user", name=found.name, by=by, owner=owner or first or self.is_owner(found.person))
            keep = store(member)
            noted = self._noted("admitted", member.id, by=by, detail=" ".join(filter(None, (member.name, "as an owner" * member.owner))))

            def write(transaction: Transaction) -> None:
                keep(transaction)
                noted(transaction)
                transaction.execute("DELETE FROM access_codes WHERE person = ?", (found.person,))
                transaction.execute("DELETE FROM access_wrong_codes WHERE source = ?", (by,))

            await self._database.write(write)
            self._members.put(member)
            self._codes.forget(found.person, by=by)
        await self._attempts.forget(found.person)
        if self._welcome is not None:
            await self._welcome(member.id)
        _log.info("admitted", extra={"facts": {"person": member.id, "by": by, "owner": member.owner}})
        who = texts.called(Person(id=found.person, name=found.name))
        return f"{who} may talk to me now" + (" and is an owner." if member.owner else ".")

    async def admit_group(self, place: Address, by: str) -> str:
        """Admit a whole group, in which everybody may then talk; returns a sentence that says so.

        Raises:
            UserMustAct: ``by`` is no owner, or the mode has no pairing.
        """
        self._require_owner(by)
        self._require_pairing()
        group = str(place.place)
        if self._members.has_group(group):
            return "I answer in this group already."
        async with self._changing:
            member = self._new_member(group, "group", name="", by=by, owner=False)
            keep, noted = store(member), self._noted("admitted", group, by=by, detail="the whole group")
            await self._database.write(lambda transaction: (keep(transaction), noted(transaction)))
            self._members.put(member)
        _log.info("admitted", extra={"facts": {"group": group, "by": by}})
        return "From now on everybody in this group may talk to me."

    async def revoke(self, person_or_chat: str, by: str) -> bool:
        """Take an admission back, at once, also from what goes on; False where there was none.

        Raises:
            UserMustAct: the configuration admits them, so it has to be changed there.
        """
        async with self._changing:
            removed = self._members.drop(person_or_chat)  # first here: whatever happens to the disk, the door is shut
            self._codes.forget(person_or_chat)
            noted = self._noted("revoked", person_or_chat, by=by)

            def write(transaction: Transaction) -> None:
                if removed:
                    noted(transaction)
                transaction.execute("DELETE FROM access_members WHERE id = ?", (person_or_chat,))
                transaction.execute("DELETE FROM access_codes WHERE person = ?", (person_or_chat,))

            await self._database.write(write)
        if removed:
            _log.info("revoked", extra={"facts": {"id": person_or_chat, "by": by}})
            if self._revoked is not None:
                await self._revoked(person_or_chat)
        if key := self._members.configured_under(person_or_chat):
            raise UserMustAct(f"{person_or_chat} is admitted by `{key}` in the configuration. Take it out there and restart the host.")
        return removed

    def move_place(self, old: Address, new: Address) -> TransactionWork:
        """Keep a group admitted that its platform has given another id, also one that the configuration names by the old."""
        moved = self._moved_group(old, new)
        noted = self._noted("moved", str(old.place), detail=f"to {new.place}")

        def work(transaction: Transaction) -> None:
            if moved is not None:
                store(moved)(transaction)
                noted(transaction)
            transaction.execute("DELETE FROM access_members WHERE id = ? AND kind = 'group'", (str(old.place),))

        return work

    def place_moved(self, old: Address, new: Address) -> None:
        moved = self._moved_group(old, new)
        if (member := self._members.get(str(old.place))) is not None and member.kind == "group":
            self._members.drop(member.id)
        if moved is None:
            return
        self._members.put(moved)
        if key := self._members.configured_under(str(old.place)):
            facts = {"key": key, "old": str(old.place), "new": str(new.place)}
            _log.warning("a group has another id now; write the new one into the configuration", extra={"facts": facts})

    def _moved_group(self, old: Address, new: Address) -> Member | None:
        """The admitted group under its new id; None where it is not admitted, or was moved before."""
        if not self._members.has_group(str(old.place)) or self._members.has_group(str(new.place)):
            return None
        member = self._members.get(str(old.place))
        if member is None:
            return self._new_member(str(new.place), "group", name="", by="configuration", owner=False)
        return msgspec.structs.replace(member, id=str(new.place))

    async def members(self) -> list[Member]:
        return self._members.everybody()

    def pending(self) -> list[PendingCode]:
        """Strangers who hold a code."""
        return list(self._codes.pending())

    async def log(self, limit: int = 100) -> list[AuditRecord]:
        """What was decided and tried, the newest first."""
        return await self._audit.latest(limit)

    def still_admits(self, person_id: str, place: Address, *, group: bool, owner: bool) -> bool:
        """Whether somebody whose message was admitted when it came is so now; an owner in a group that is none of ours yet, too."""
        return self.admits(person_id, place, group) or (owner and self.is_owner(person_id))

    def attempts(self) -> list[Attempt]:
        """Who was refused, the newest first."""
        return self._attempts.latest()

    async def _refuse_stranger(self, message: InboundMessage) -> Verdict:
        person = message.sender
        name = texts.plain_name(person)
        first = await self._attempts.note(person.id, str(message.address.place), name)
        pairing = self._members.pairing
        reply = None
        if message.kind == "message" and pairing:
            code = await self._codes.issue(person.id, name, asked=texts.asks_to_pair(message, "start", "pair"))
            reply = texts.pairing_reply(code, owner_known=self._members.have_owner()) if code else None
        elif message.kind == "message" and first:
            reply = texts.not_admitted(person)
        notice = texts.stranger_wrote(person, pairing=pairing) if first and self._may_notify() else None
        return Verdict(admitted=False, reply=reply, tell_owners=notice)

    async def _refuse_in_group(self, message: InboundMessage, *, owner: bool) -> Verdict:
        place, person = str(message.address.place), message.sender
        news = not self._attempts.seen_in(place)
        first = await self._attempts.note(person.id, place, texts.plain_name(person))
        if owner:
            return Verdict(admitted=False, owner=True, reply=texts.here_by_pairing(pairing=self._members.pairing) if first else None)
        return Verdict(admitted=False, tell_owners=texts.group_wrote(person, place) if news and self._may_notify() else None)

    async def _refuse_anonymous(self, message: InboundMessage, *, admitted: bool) -> Verdict:
        place = str(message.address.place)
        first = await self._attempts.note(f"{message.address.channel}:anonymous", place, "")
        return Verdict(admitted=False, reply=texts.ADMINS_STAY_ANONYMOUS if admitted and first and message.group else None)

    def _may_notify(self) -> bool:
        """A crowd of strangers must not become a flood for the owners."""
        now = self._clock.now()
        if len(self._notices) == _NOTICES_PER_HOUR and now < self._notices[0] + timedelta(hours=1):
            return False
        self._notices.append(now)
        return True

    def _new_member(self, member_id: str, kind: str, *, name: str, by: str, owner: bool) -> Member:
        return Member(
            id=member_id,
            kind="group" if kind == "group" else "user",
            owner=owner,
            source="pairing",
            name=name,
            admitted_by=by,
            admitted_at=self._clock.now(),
        )

    def _noted(self, event: AuditEvent, who: str, *, by: str = "", detail: str = "") -> TransactionWork:
        return note(AuditRecord(at=self._clock.now(), event=event, who=who, by=by, detail=detail))

    def _require_owner(self, by: str) -> None:
        if by != OPERATOR and not self.is_owner(by):
            raise UserMustAct("Only owners may admit somebody. Ask one of them.")

    def _require_pairing(self) -> None:
        if not self._members.pairing:
            raise UserMustAct(
                "`access.mode` is `allowlist`: the configuration alone says who may talk. Add the id to `access.allow` or `access.groups`."
            )


def _is_operator(by: str) -> bool:
    """Whoever has the machine in hand: its command line, its terminal chat, its page."""
    return by == OPERATOR or by == "web:owner" or by.startswith("console:")
