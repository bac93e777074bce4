"""One message on its way out, and the SQL of its row."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal

import msgspec

from bot.delivery.inbox import answered
from bot.delivery.schema import decode_outbound, encode_outbound, marks
from features.contracts.chat import Address, OutboundMessage
from features.contracts.database import Row, Transaction
from features.contracts.sessions import TransactionWork

__all__ = [
    "COLUMNS",
    "DRAFT_INTENDED",
    "Delivery",
    "Outcome",
    "from_row",
    "insert",
    "intend_draft",
    "note_draft",
    "store_progress",
    "upsert",
]

COLUMNS = "id, address, message, answers, run_id, state, done_parts, draft_ref, attempts, created_at, refs, outcome"

DRAFT_INTENDED = ""
"""The ``draft_ref`` of a run whose draft may be on show, but whose id is not known yet."""

Outcome = Literal["success", "error", "aborted"]
State = Literal["held", "pending", "sending", "sent", "refused"]


class Delivery(msgspec.Struct, kw_only=True):
    """A row of the outbox.

    ``state`` is what the database says: ``held`` (its run may add to it), ``pending``, ``sending`` (from here on its fate can be unknown),
    ``sent``, ``refused``. ``refs`` are the platform's ids of the ``done`` parts.
    """

    id: str
    address: Address
    message: OutboundMessage
    created_at: datetime
    answers: tuple[str, ...] = ()
    run_id: str | None = None
    state: State = "pending"
    done: int = 0
    draft: str | None = None
    attempts: int = 0
    refs: list[str | None] = []
    outcome: Outcome = "success"
    error: str | None = None


def insert(delivery: Delivery) -> Callable[[Transaction], None]:
    """SQL that puts a new row and marks what it answers."""
    return _put(delivery, "")


def upsert(delivery: Delivery, replaces: tuple[str, ...] = ()) -> TransactionWork:
    """SQL that puts the one row of a run, or writes it anew; it moves to the end of its chat, and keeps the draft that is known.

    Args:
        replaces: cut runs whose drafts it stands for.
    """
    gone = forget(tuple(run_id for run_id in replaces if run_id != delivery.run_id))
    put = _put(
        delivery,
        " ON CONFLICT (run_id) DO UPDATE SET id = excluded.id, position = excluded.position, message = excluded.message,"
        " answers = excluded.answers, state = excluded.state, created_at = excluded.created_at, outcome = excluded.outcome,"
        " draft_ref = coalesce(excluded.draft_ref, outbox.draft_ref)",
    )

    def work(transaction: Transaction) -> None:
        put(transaction)
        gone(transaction)

    return work


def forget(run_ids: tuple[str, ...]) -> TransactionWork:
    """SQL that takes away the rows of cut runs, which hold nothing but a draft's id."""

    def work(transaction: Transaction) -> None:
        if run_ids:
            transaction.execute(f"DELETE FROM outbox WHERE run_id IN ({marks(run_ids)}) AND state = 'held'", run_ids)  # noqa: S608

    return work


def _put(delivery: Delivery, on_conflict: str) -> TransactionWork:
    answers = delivery.answers
    values = (
        delivery.id,
        str(delivery.address),
        str(delivery.address.place),
        encode_outbound(delivery.message),
        msgspec.json.encode(answers).decode(),
        delivery.run_id,
        delivery.state,
        delivery.draft,
        delivery.created_at.isoformat(),
        delivery.outcome,
    )
    columns = "position, id, address, place, message, answers, run_id, state, draft_ref, created_at, outcome"
    values_sql = "(SELECT coalesce(max(position), 0) + 1 FROM outbox), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
    sql = f"INSERT INTO outbox ({columns}) VALUES ({values_sql}){on_conflict}"  # noqa: S608

    def work(transaction: Transaction) -> None:
        transaction.execute(sql, values)
        answered(answers, transaction)

    return work


def intend_draft(delivery: Delivery) -> TransactionWork:
    """SQL that notes, before a run's draft is shown, that one may be on show."""
    intended = msgspec.structs.replace(delivery, state="held", draft=DRAFT_INTENDED, answers=())
    return _put(intended, " ON CONFLICT (run_id) DO UPDATE SET draft_ref = coalesce(outbox.draft_ref, excluded.draft_ref)")


def note_draft(run_id: str, ref: str) -> TransactionWork:
    """SQL that keeps the id of a run's draft."""

    def work(transaction: Transaction) -> None:
        transaction.execute("UPDATE outbox SET draft_ref = ? WHERE run_id = ?", (ref, run_id))

    return work


def store_progress(delivery: Delivery) -> TransactionWork:
    """SQL that writes down how far the delivery came."""
    values = (
        delivery.state,
        delivery.done,
        msgspec.json.encode(delivery.refs).decode(),
        delivery.attempts,
        delivery.error,
        delivery.id,
    )

    def work(transaction: Transaction) -> None:
        transaction.execute("UPDATE outbox SET state = ?, done_parts = ?, refs = ?, attempts = ?, error = ? WHERE id = ?", values)

    return work


def from_row(row: Row) -> Delivery:
    """The delivery that a row of ``COLUMNS`` holds."""
    return Delivery(
        id=row[0],
        address=Address.parse(row[1]),
        message=decode_outbound(row[2]),
        answers=tuple(msgspec.json.decode(row[3])),
        run_id=row[4],
        state=row[5],
        done=row[6],
        draft=row[7] or None,
        attempts=row[8],
        created_at=datetime.fromisoformat(row[9]),
        refs=msgspec.json.decode(row[10]),
        outcome=row[11],
    )
