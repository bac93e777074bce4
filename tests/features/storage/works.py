"""Works on the table of the ``notes`` fixture."""

from collections.abc import Callable

from features.contracts.database import Transaction


def add(text: str, note_id: int | None = None) -> Callable[[Transaction], int]:
    def work(transaction: Transaction) -> int:
        row = transaction.fetch_one("INSERT INTO notes VALUES (?, ?) RETURNING id", (note_id, text))
        assert row is not None
        return int(row[0])

    return work


def texts(transaction: Transaction) -> list[str]:
    return [text for (text,) in transaction.fetch_all("SELECT text FROM notes ORDER BY id")]
