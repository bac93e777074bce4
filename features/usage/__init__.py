"""What models cost: tokens and money per place, day and model.

Owns the sums; a single call is kept only in its session's entries. A day is a date in the place's own zone, as the caller says.
Order: a call is counted in the transaction that stores its answer, so that neither exists without the other.
Failure: figures that make no sense (negative, infinite) count as nothing rather than keeping an answer from being stored.
"""

from features.usage.ledger import USAGE_MIGRATIONS, UsageLedger

__all__ = ["USAGE_MIGRATIONS", "UsageLedger"]
