"""What a session is given at once: one message, or several that belong together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from bot.delivery.inbox import StoredMessage
from features.contracts.agent import Heard, Prompt
from features.contracts.chat import Attachment, DueRun, InboundMessage
from features.contracts.clock import unix_ms
from features.contracts.messages import ImageBlock

__all__ = ["Fetched", "Turn", "as_message", "correction", "late_edit_note"]


@dataclass(slots=True)
class Fetched:
    """What came of a turn's attachments: a line for the model about each, the pictures among them, and what has to be told the person."""

    lines: list[str] = field(default_factory=list)
    images: list[ImageBlock] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Turn:
    """Messages on their way into a prompt.

    ``edits`` are ids of edits that were worked in; they are taken in together with what they changed. ``notes`` stand before the text.
    ``calls`` says that the text calls a skill or a template.
    """

    def __init__(self, messages: Sequence[StoredMessage]) -> None:
        self.messages = list(messages)
        self.edits: list[str] = []
        self.notes: list[str] = []
        self.fetched: Fetched | None = None
        self.calls = False
        self.heard: Heard | None = None

    @property
    def first(self) -> InboundMessage:
        return self.messages[0].message

    @property
    def ids(self) -> tuple[str, ...]:
        return (*(stored.id for stored in self.messages), *self.edits)

    @property
    def owner(self) -> bool:
        """Whether an owner said all of it."""
        return all(stored.owner for stored in self.messages)

    @property
    def run(self) -> DueRun | None:
        """The scheduled run that this is, None for what people said."""
        return self.first.run

    @property
    def joinable(self) -> bool:
        """Whether it may become one prompt with others: a call of a skill, an extension's wish and a scheduled run may not."""
        return not (self.calls or self.apart) and self.run is None

    @property
    def people(self) -> frozenset[str]:
        return frozenset(stored.message.sender.id for stored in self.messages)

    @property
    def attended(self) -> bool:
        return all(stored.message.attended for stored in self.messages)

    @property
    def apart(self) -> bool:
        """Whether nobody said it, so that it is no part of what people say and has an answer of its own."""
        return self.first.kind == "extension"

    @property
    def reply_to(self) -> str | None:
        """In a group an answer says whom it answers."""
        return self.first.under or (self.first.ref if self.first.group else None)

    @property
    def attachments(self) -> list[tuple[StoredMessage, Attachment]]:
        return [(stored, attachment) for stored in self.messages for attachment in stored.message.attachments]

    @property
    def empty(self) -> bool:
        return not any(stored.message.text.strip() or stored.message.attachments for stored in self.messages)

    @property
    def withdrawn(self) -> bool:
        """Whether all of it was taken back before anybody looked at it."""
        return self.empty and bool(self.edits)

    @property
    def text(self) -> str:
        """What was said, as it was typed."""
        return "\n".join(stored.message.text for stored in self.messages if stored.message.text.strip())

    def joins(self, stored: StoredMessage) -> None:
        self.messages.append(stored)
        self.fetched = self.heard = None

    def takes_over(self, others: Sequence["Turn"]) -> None:
        """Become one prompt with what was gathered after it."""
        for other in others:
            self.messages += other.messages
            self.edits += other.edits
            self.notes += other.notes
        self.fetched = self.heard = None

    def edit(self, edit: StoredMessage) -> StoredMessage | None:
        """Put an edit's text in place of the one it changes, or take a deleted one back; None if that message is not among these."""
        for index, stored in enumerate(self.messages):
            if stored.message.ref is not None and stored.message.ref == edit.message.ref:
                text, deleted = edit.message.text, edit.message.kind == "deletion"
                message = msgspec.structs.replace(stored.message, text="" if deleted else text)
                if deleted:
                    message = msgspec.structs.replace(message, attachments=())
                    self.fetched = None
                changed = msgspec.structs.replace(stored, message=message)
                self.messages[index] = changed
                self.heard = None
                self.edits.append(edit.id)
                return changed
        return None

    def prompt(self) -> Prompt:
        """What is said to the session, as its extensions have left it once they have heard it."""
        return self._prompt() if self.heard is None else self.heard.prompt

    def _prompt(self) -> Prompt:
        fetched = self.fetched or Fetched()
        if self.calls:
            return self._call(fetched)
        scheduled = [self.run.note] if self.run is not None else []
        parts = [*scheduled, *self.notes, *(self._said(group) for group in self._by_sender()), *fetched.lines]
        return Prompt(
            text="\n".join(part for part in parts if part),
            images=tuple(fetched.images),
            source_ids=self.ids,
            timestamp=unix_ms(self.first.sent_at),
            owner=self.owner,
            source="extension" if self.apart else "job" if self.run is not None else "person",
        )

    def _call(self, fetched: Fetched) -> Prompt:
        """What was typed apart from what stands around it, so that none of that becomes an argument."""
        return Prompt(
            text=self.text,
            preface="\n".join([*self.notes, *([f"{self.first.sender.name}:"] if self.first.group else [])]),
            postscript="\n".join(fetched.lines),
            expand=True,
            images=tuple(fetched.images),
            source_ids=self.ids,
            timestamp=unix_ms(self.first.sent_at),
            owner=self.owner,
        )

    def _by_sender(self) -> list[list[InboundMessage]]:
        groups: list[list[InboundMessage]] = []
        for stored in self.messages:
            if groups and groups[-1][0].sender.id == stored.message.sender.id:
                groups[-1].append(stored.message)
            else:
                groups.append([stored.message])
        return groups

    def _said(self, messages: list[InboundMessage]) -> str:
        text = "\n".join(message.text for message in messages if message.text.strip())
        return f"{messages[0].sender.name}: {text}" if messages[0].group else text


_CORRECTED = "(I have corrected my earlier message. It now reads:)"


def as_message(edit: StoredMessage) -> StoredMessage:
    """An edit as if it had been said anew."""
    return msgspec.structs.replace(edit, message=msgspec.structs.replace(edit.message, kind="message"))


def correction(edit: StoredMessage) -> Turn:
    """An edit of something that the run has taken in already, as a message of its own."""
    turn = Turn([as_message(edit)])
    deleted = edit.message.kind == "deletion"
    turn.notes.append("(I have deleted this message of mine; take it as not said:)" if deleted else _CORRECTED)
    return turn


def late_edit_note(edit: StoredMessage) -> str:
    """An edit of something that was answered already, for the next prompt."""
    who = f"{edit.message.sender.name} has" if edit.message.group else "I have"
    if edit.message.kind == "deletion":
        return f"({who} since deleted an earlier message, which was answered already: {edit.message.text})"
    return f"({who} since changed an earlier message, which was answered already. It now reads: {edit.message.text})"
