"""Sessions: the tree of what was said and done in one conversation, and where it is kept.

Owns the entries, the leaf that the next entry follows, and what of a branch the model reads; runs and their rules belong to the agent.
Order: an entry is on the disk before anybody sees it in ``messages``; entries of a session follow each other in the order of the calls.
Failure: an entry that cannot be read any more is left out, its neighbours are joined, and what is on the disk stays as it is.
"""

from features.sessions.database_store import SESSION_MIGRATIONS, DatabaseSessionStore
from features.sessions.jsonl_store import JsonlSessionStore
from features.sessions.manager import SessionManager
from features.sessions.memory_store import MemorySessionStore
from features.sessions.session_transfer import SessionTransfer

__all__ = ["SESSION_MIGRATIONS", "DatabaseSessionStore", "JsonlSessionStore", "MemorySessionStore", "SessionManager", "SessionTransfer"]
