"""The table of questions: what the host knows of them after a restart too."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from bot.delivery.inbox import answered
from features.contracts.chat import Address
from features.contracts.database import Migrations, Transaction
from features.contracts.sessions import TransactionWork

__all__ = ["QUESTION_MIGRATIONS", "QuestionRecord", "closed", "end_all_open", "ended", "find", "forget_before", "left_over", "opened"]

QUESTION_MIGRATIONS = Migrations(
    slice="questions",
    steps=(
        (
            """
            CREATE TABLE questions (
                id TEXT PRIMARY KEY,
                address TEXT NOT NULL,
                delivery_id TEXT NOT NULL,
                state TEXT NOT NULL,
                ending TEXT NOT NULL DEFAULT '',
                asked_at TEXT NOT NULL
            )
            """,
            "CREATE INDEX questions_state ON questions (state) WHERE state <> 'closed'",
            "CREATE INDEX questions_asked ON questions (asked_at)",
        ),
    ),
)

_COLUMNS = "id, address, delivery_id, state, ending"


class QuestionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """``ending`` says in a sentence what became of it. ``state``: somebody waits; over; over, and the buttons are gone too."""

    id: str
    address: Address
    delivery_id: str
    state: Literal["open", "ended", "closed"]
    ending: str


def opened(question_id: str, address: Address, delivery_id: str, at: datetime) -> TransactionWork:
    values = (question_id, str(address), delivery_id, at.isoformat())

    def work(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO questions (id, address, delivery_id, state, asked_at) VALUES (?, ?, ?, 'open', ?)", values)

    return work


def ended(question_id: str, ending: str, *, message_ids: tuple[str, ...] = ()) -> TransactionWork:
    """SQL that ends a question, unless that has happened already.

    Args:
        message_ids: accepted messages that were its answer, and call for nothing else.
    """

    def work(transaction: Transaction) -> None:
        transaction.execute("UPDATE questions SET state = 'ended', ending = ? WHERE id = ? AND state = 'open'", (ending, question_id))
        answered(message_ids, transaction)

    return work


def closed(question_id: str) -> TransactionWork:
    def work(transaction: Transaction) -> None:
        transaction.execute("UPDATE questions SET state = 'closed' WHERE id = ?", (question_id,))

    return work


def end_all_open(ending: str) -> TransactionWork:
    """SQL for a start: nobody waits for what an earlier process asked."""

    def work(transaction: Transaction) -> None:
        transaction.execute("UPDATE questions SET state = 'ended', ending = ? WHERE state = 'open'", (ending,))

    return work


def forget_before(moment: datetime) -> TransactionWork:
    def work(transaction: Transaction) -> None:
        transaction.execute("DELETE FROM questions WHERE state = 'closed' AND asked_at < ?", (moment.isoformat(),))

    return work


def left_over(transaction: Transaction, *, limit: int) -> list[QuestionRecord]:
    """What is over and may still have its buttons."""
    sql = f"SELECT {_COLUMNS} FROM questions WHERE state = 'ended' ORDER BY asked_at LIMIT ?"  # noqa: S608
    return [_record(row) for row in transaction.fetch_all(sql, (limit,))]


def find(transaction: Transaction, question_id: str) -> QuestionRecord | None:
    row = transaction.fetch_one(f"SELECT {_COLUMNS} FROM questions WHERE id = ?", (question_id,))  # noqa: S608
    return None if row is None else _record(row)


def _record(row: Sequence[str]) -> QuestionRecord:
    return msgspec.convert(
        {"id": row[0], "address": Address.parse(row[1]), "delivery_id": row[2], "state": row[3], "ending": row[4]}, QuestionRecord
    )
