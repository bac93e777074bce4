"""Chats become conversations: one actor per address, one session in its seat, at most one run at a time.

Owns the order in which what people say reaches a session, what belongs together in one turn, how a run is shown, and what becomes of it
when the host ends. Who may talk, and what is on its way in and out, belongs to access and delivery.
Order: messages of an address are dealt with as they came; control commands act at once, beside the queue. A message during a run follows
the chat's busy mode.
Failure: a defect ends the turn it happened in, with an error id that the person reads; the conversation and all others go on.
"""

from bot.conversations.conversation import Conversation
from bot.conversations.conversations import Conversations
from bot.conversations.standing import ConversationStatus, StopReport

__all__ = ["Conversation", "ConversationStatus", "Conversations", "StopReport"]
