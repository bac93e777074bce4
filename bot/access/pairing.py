"""Pairing codes: given to strangers, typed by owners."""

import hmac
import logging
from collections import deque
from datetime import datetime, timedelta
from hashlib import blake2b
from random import Random

import msgspec

from bot.access.audit import AuditRecord, note
from features.contracts.clock import Clock
from features.contracts.database import Database, Transaction
from features.contracts.errors import UserMustAct

__all__ = ["PairingCodes", "PendingCode"]

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # without what looks like something else: I L O 0 1
CODE_LENGTH = 8
LIFETIME = timedelta(hours=1)
PENDING_PER_PERSON = 3
PENDING_IN_ALL = 50
BETWEEN_CODES = timedelta(minutes=1)
WRONG_TRIES = 5
LOCKED_FOR = timedelta(hours=1)

_log = logging.getLogger("pumice.access")


class PendingCode(msgspec.Struct, frozen=True, kw_only=True):
    """A stranger who holds a code. The code itself is known to the stranger alone; here is its salted hash."""

    digest: str
    salt: str
    person: str
    name: str
    issued_at: datetime

    @property
    def expires_at(self) -> datetime:
        return self.issued_at + LIFETIME


class PairingCodes:
    """Bounded: three for a person, fifty in all, an hour each."""

    def __init__(self, database: Database, clock: Clock, random: Random) -> None:
        self._database = database
        self._clock = clock
        self._random = random
        self._pending: list[PendingCode] = []
        self._wrong: dict[str, deque[datetime]] = {}

    async def load(self) -> None:
        def read(transaction: Transaction) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
            codes = transaction.fetch_all("SELECT digest, salt, person, name, issued_at FROM access_codes ORDER BY issued_at")
            return codes, transaction.fetch_all("SELECT source, tried_at FROM access_wrong_codes ORDER BY tried_at")

        codes, tries = await self._database.read(read)
        self._pending = [
            PendingCode(digest=row[0], salt=row[1], person=row[2], name=row[3], issued_at=datetime.fromisoformat(row[4])) for row in codes
        ]
        self._wrong = {}
        for source, tried_at in tries:
            self._wrong.setdefault(source, deque(maxlen=WRONG_TRIES)).append(datetime.fromisoformat(tried_at))

    def pending(self) -> list[PendingCode]:
        """Those that are still good."""
        now = self._clock.now()
        self._pending = [code for code in self._pending if now < code.expires_at]
        return self._pending

    async def issue(self, person: str, name: str, *, asked: bool) -> str | None:
        """A code for a stranger; None where they have one, or there are too many.

        Args:
            asked: they said ``/start`` again, so the code may have been lost on its way.
        """
        now = self._clock.now()
        pending = self.pending()
        own = [code for code in pending if code.person == person]
        if len(pending) >= PENDING_IN_ALL or len(own) >= PENDING_PER_PERSON:
            return None
        if own and not (asked and now >= own[-1].issued_at + BETWEEN_CODES):
            return None
        text = "".join(self._random.choice(ALPHABET) for _ in range(CODE_LENGTH))
        salt = f"{self._random.getrandbits(64):016x}"
        code = PendingCode(digest=_digest(text, salt), salt=salt, person=person, name=name, issued_at=now)
        self._pending.append(code)
        oldest = (now - LIFETIME).isoformat()

        issued = note(AuditRecord(at=now, event="code", who=person, detail=name))

        def write(transaction: Transaction) -> None:
            issued(transaction)
            transaction.execute("DELETE FROM access_codes WHERE issued_at <= ?", (oldest,))
            transaction.execute(
                "INSERT INTO access_codes (digest, salt, person, name, issued_at) VALUES (?, ?, ?, ?, ?)",
                (code.digest, code.salt, code.person, code.name, now.isoformat()),
            )

        try:
            await self._database.write(write)
        except BaseException:  # whatever happened, a code that nobody was told must not count
            self._pending = [other for other in self._pending if other is not code]
            raise
        return text

    async def find(self, typed: str, by: str) -> PendingCode:
        """The stranger whose code this is.

        Raises:
            UserMustAct: there is none; after five wrong tries within an hour, nobody is looked for.
        """
        self._refuse_if_locked(by)
        text = "".join(letter for letter in typed.upper() if letter.isalnum())
        found = [code for code in self.pending() if hmac.compare_digest(_digest(text, code.salt), code.digest)]
        if found:
            return found[0]
        await self._count_wrong_try(by)
        raise UserMustAct("That code is unknown or has expired. Codes are good for an hour; the person gets a new one by writing `/start`.")

    def forget(self, person: str, *, by: str | None = None) -> None:
        """The person's codes are used up; ``by`` typed one right."""
        self._pending = [code for code in self._pending if code.person != person]
        if by is not None:
            self._wrong.pop(by, None)

    def _refuse_if_locked(self, by: str) -> None:
        tries = self._wrong.get(by, ())
        now = self._clock.now()
        recent = [tried_at for tried_at in tries if now < tried_at + LOCKED_FOR]
        if len(recent) >= WRONG_TRIES:
            minutes = -(-int((recent[0] + LOCKED_FOR - now).total_seconds()) // 60)
            raise UserMustAct(f"Too many wrong codes. Try again in {minutes} min.")

    async def _count_wrong_try(self, by: str) -> None:
        now = self._clock.now()
        self._wrong.setdefault(by, deque(maxlen=WRONG_TRIES)).append(now)
        _log.warning("wrong pairing code", extra={"facts": {"by": by}})
        oldest = (now - LOCKED_FOR).isoformat()
        tries = sum(now < tried_at + LOCKED_FOR for tried_at in self._wrong[by])
        records = [note(AuditRecord(at=now, event="wrong code", who=by, by=by))]
        if tries >= WRONG_TRIES:
            records.append(note(AuditRecord(at=now, event="locked out", who=by, detail=f"for {LOCKED_FOR}")))

        def write(transaction: Transaction) -> None:
            for record in records:
                record(transaction)
            transaction.execute("DELETE FROM access_wrong_codes WHERE tried_at <= ?", (oldest,))
            transaction.execute("INSERT INTO access_wrong_codes (source, tried_at) VALUES (?, ?)", (by, now.isoformat()))

        await self._database.write(write)


def _digest(text: str, salt: str) -> str:
    return blake2b(text.encode(), salt=bytes.fromhex(salt), digest_size=32).hexdigest()
