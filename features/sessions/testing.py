"""Entries for tests, short to write and to append."""

from features.contracts.messages import AssistantMessage, TextBlock, ToolResultMessage, Usage, UserMessage
from features.contracts.sessions import MessageEntry, SessionHeader, TransactionWork
from features.sessions.manager import SessionManager

__all__ = ["TIMESTAMP", "append_message", "assistant", "header", "said", "user"]

TIMESTAMP = "2026-01-05T09:00:00.000Z"


def user(text: str) -> UserMessage:
    return UserMessage(content=text, timestamp=1)


def assistant(text: str, *, model: str = "test/claude-test") -> AssistantMessage:
    """An answer; ``model`` is ``provider/id``."""
    provider, _, model_id = model.partition("/")
    return AssistantMessage(
        content=[TextBlock(text=text)], api="test", provider=provider, model=model_id, usage=Usage(), stop_reason="stop", timestamp=2
    )


def said(entry_id: str, text: str, *, parent: str | None = None, timestamp: str = TIMESTAMP) -> MessageEntry:
    """An entry with a person's message."""
    return MessageEntry(id=entry_id, parent_id=parent, timestamp=timestamp, message=user(text))


def header(session_id: str, *, timestamp: str = TIMESTAMP) -> SessionHeader:
    return SessionHeader(version=3, id=session_id, timestamp=timestamp, cwd="/somewhere")


async def append_message(
    manager: SessionManager, message: UserMessage | AssistantMessage | ToolResultMessage, *, also: TransactionWork | None = None
) -> str:
    """Store a message at the end of the branch; returns its entry's id."""
    entry = manager.new_message_entry(message)
    await manager.append([entry], also=also)
    return entry.id
