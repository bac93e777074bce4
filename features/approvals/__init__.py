"""Approvals: what a tool may do unasked, and what a person has to allow first.

Owns the policy of each tool, the patterns of commands that never ask, and what was allowed for good in a chat; how a question looks and who
may answer it belongs to whoever hosts the chat.
Order: it is the last to see a call, so what is asked about is what other extensions made of it; from then on the call cannot be changed.
What is allowed for good is on the disk before the call runs.
Failure: no answer in time, nobody there to ask, a table that cannot be read: the call does not run, and the model reads why.
"""

from features.approvals.approvals import Approvals
from features.approvals.grants import APPROVAL_MIGRATIONS, Grant
from features.approvals.options import ApprovalOptions

__all__ = ["APPROVAL_MIGRATIONS", "ApprovalOptions", "Approvals", "Grant"]
