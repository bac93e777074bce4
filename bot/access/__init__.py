"""Who may talk to the agent: the one gate before everything.

Deny by default: an empty list is nobody. People are known by the ids that platforms give them, never by names. What is decided here is kept
in memory and in the database, so that a revocation holds from the next message on.
"""

from bot.access.access import Access, Verdict
from bot.access.attempts import Attempt
from bot.access.audit import AuditRecord
from bot.access.members import Member
from bot.access.pairing import PendingCode
from bot.access.schema import ACCESS_MIGRATIONS

__all__ = ["ACCESS_MIGRATIONS", "Access", "Attempt", "AuditRecord", "Member", "PendingCode", "Verdict"]
