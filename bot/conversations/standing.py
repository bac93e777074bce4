"""How a conversation stands, for people and programs that ask."""

import msgspec

__all__ = ["ConversationStatus", "StopReport"]


class StopReport(msgspec.Struct, frozen=True, kw_only=True):
    """``kept`` is how many messages wait; they are answered next."""

    was_running: bool
    kept: int


class ConversationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a conversation stands; model, sizes and session are empty until its session has been opened."""

    running: bool
    queued: int
    running_tools: tuple[str, ...]
    model: str
    context_tokens: int
    context_window: int
    session_id: str | None
    session_name: str
