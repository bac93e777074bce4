"""What all conversations of a host share."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import msgspec

from bot.conversations.attachments import Attachments
from bot.conversations.session_seat import SessionOpener
from bot.delivery import Inbox, Outbox
from bot.questions import Questions
from bot.settings import SettingsStore
from features.commands import CommandRegistry
from features.contracts.chat import Address, ChatChannel, ChatCommand, Person
from features.contracts.clock import Clock
from features.contracts.events import SessionEvent
from features.contracts.jobs import RunEnd
from features.contracts.messages import AssistantMessage
from features.contracts.sessions import TransactionWork
from features.sessions import SessionTransfer
from features.skills import SkillCatalog
from features.usage import UsageLedger

if TYPE_CHECKING:
    from bot.conversations.conversation import Conversation

__all__ = ["ConversationServices"]


class ConversationServices(msgspec.Struct, frozen=True, kw_only=True):
    """``context`` makes what a command is given; ``publish`` tells every session event to whoever watches; ``learn`` hears of commands that
    extensions bring.

    ``stop_apart`` stops what goes on for an address beside its conversation, and says whether anything did. ``still_admits`` says whether
    somebody may talk in a place at this moment, told whether it is a group and whether they were an owner. ``ended`` hears how the run of
    some messages ended, or that they were answered without one.
    """

    inbox: Inbox
    outbox: Outbox
    questions: Questions
    settings: SettingsStore
    opener: SessionOpener
    transfer: SessionTransfer
    channels: Mapping[str, ChatChannel]
    attachments: Attachments
    commands: CommandRegistry[Any]
    context: Callable[["Conversation", Person, bool, bool], Any]
    skills: SkillCatalog
    usage: UsageLedger
    publish: Callable[[Address, SessionEvent], None]
    clock: Clock
    ids: Callable[[], str]
    stop_apart: Callable[[Address], Awaitable[bool]] | None = None
    still_admits: Callable[[str, Address, bool, bool], bool] = lambda person, place, group, owner: True
    learn: Callable[[Sequence[ChatCommand]], None] = lambda commands: None
    ended: Callable[[tuple[str, ...], RunEnd, str], None] = lambda messages, end, error: None

    def spent(self, place: Address, zone: str, message: AssistantMessage) -> TransactionWork:
        """SQL that enters what a model call cost, on the day that it is in the place's zone."""
        return self.usage.record_work(str(place), f"{message.provider}/{message.model}", message.usage, day=self.today(zone))

    def today(self, zone: str) -> date:
        return self.clock.now().astimezone(ZoneInfo(zone)).date()
