"""What a chat hears of its session's compactions and of models that stand in for others."""

from collections.abc import Callable

from bot.conversations.services import ConversationServices
from bot.delivery.wording import compacted_text, fallback_text
from features.agent import AgentSession
from features.contracts.chat import Address
from features.contracts.events import CompactionEnd, ModelFallback, SessionEvent

__all__ = ["SummingUp"]

_NOTED = "I will, as soon as the step that I am at is done."
_STOPPED = "Nothing was summed up; everything is as it was."


class SummingUp:
    """
    Args:
        tell: puts a text into the chat, without being waited for.
    """

    def __init__(self, address: Address, services: ConversationServices, tell: Callable[[str], None]) -> None:
        self._address = address
        self._services = services
        self._tell = tell
        self._noted = False

    async def compact(self, session: AgentSession, instructions: str) -> str:
        """Sum up; gives what to say about it. While a run goes on that is done in its next pause, and told then."""
        if session.running:
            self._noted = True
            await session.compact(instructions)
            return _NOTED
        # A view without a text: people see that something goes on.
        view = self._services.channels[self._address.channel].live(self._address, reply_to=None, opened=lambda ref: None)
        try:
            result = await session.compact(instructions)
        finally:
            await view.close()
        return _NOTED if result is None else compacted_text(result)

    def on_event(self, event: SessionEvent) -> None:
        if isinstance(event, ModelFallback):
            self._tell(fallback_text(event))
        elif isinstance(event, CompactionEnd) and event.reason == "manual" and self._noted:
            self._noted = False
            self._tell(compacted_text(event.result) if event.result is not None else event.error_message or _STOPPED)
