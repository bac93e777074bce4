"""The tables of access."""

from features.contracts.database import Migrations

__all__ = ["ACCESS_MIGRATIONS"]

_MEMBERS = """
    CREATE TABLE access_members (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, owner INTEGER NOT NULL,
        admitted_by TEXT NOT NULL, admitted_at TEXT NOT NULL
    )
"""
_CODES = """
    CREATE TABLE access_codes (
        digest TEXT PRIMARY KEY, salt TEXT NOT NULL, person TEXT NOT NULL, name TEXT NOT NULL, issued_at TEXT NOT NULL
    )
"""
_WRONG_CODES = "CREATE TABLE access_wrong_codes (source TEXT NOT NULL, tried_at TEXT NOT NULL)"
_ATTEMPTS = """
    CREATE TABLE access_attempts (
        person TEXT NOT NULL, place TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL,
        first_at TEXT NOT NULL, last_at TEXT NOT NULL, PRIMARY KEY (person, place)
    )
"""

_LOG = """
    CREATE TABLE access_log (
        position BIGINT PRIMARY KEY, at TEXT NOT NULL, event TEXT NOT NULL, who TEXT NOT NULL, by_whom TEXT NOT NULL, detail TEXT NOT NULL
    )
"""

ACCESS_MIGRATIONS = Migrations(slice="access", steps=((_MEMBERS, _CODES, _WRONG_CODES, _ATTEMPTS), (_LOG,)))
