"""What a Telegram message holds: its files, and words for what is neither text nor file."""

from collections.abc import Sequence
from mimetypes import guess_extension
from typing import Literal

from telegram import (
    Animation,
    Audio,
    Document,
    Message,
    MessageOriginChannel,
    MessageOriginChat,
    MessageOriginHiddenUser,
    MessageOriginUser,
    PhotoSize,
    Sticker,
    Video,
    VideoNote,
    Voice,
)

from channels.telegram.files import MAX_DOWNLOAD_BYTES, megabytes, safe_name
from features.contracts.chat import Attachment

__all__ = ["attachments", "described_text"]

_Kind = Literal["image", "file", "voice", "audio", "video"]
_Media = Animation | Audio | Document | Video | VideoNote | Voice
_MAX_QUOTED = 300
_UNREADABLE = {
    "story": "a story",
    "game": "a game",
    "invoice": "an invoice",
    "giveaway": "a giveaway",
    "giveaway_winners": "a giveaway's winners",
    "paid_media": "paid media",
    "checklist": "a checklist",
    "gift": "a gift",
    "unique_gift": "a gift",
    "live_photo": "a live photo",
    "passport_data": "passport data",
}


def attachments(message: Message) -> tuple[Attachment, ...]:
    """The file of a message; Telegram puts at most one into each."""
    if message.photo:
        return (_picture(message.photo),)
    if message.animation:  # it is given as a document as well
        return (_file(message.animation, "video", "animation"),)
    candidates: Sequence[tuple[_Media | None, _Kind, str]] = (
        (message.document, "file", "document"),
        (message.voice, "voice", "voice"),
        (message.audio, "audio", "audio"),
        (message.video, "video", "video"),
        (message.video_note, "video", "video"),
    )
    return tuple(_file(media, kind, stem) for media, kind, stem in candidates if media)


def _picture(sizes: Sequence[PhotoSize]) -> Attachment:
    best = max(sizes, key=lambda size: size.width * size.height)
    name = f"photo-{safe_name(best.file_unique_id)}.jpg"
    return Attachment(
        ref=best.file_id, name=name, kind="image", mime_type="image/jpeg", size=best.file_size, problem=_problem(name, best.file_size)
    )


def _file(media: _Media, kind: _Kind, stem: str) -> Attachment:
    mime_type = getattr(media, "mime_type", None) or ("video/mp4" if isinstance(media, VideoNote) else None)
    given = getattr(media, "file_name", None)
    name = safe_name(given) if given else f"{stem}-{safe_name(media.file_unique_id)}{_ending(mime_type)}"
    if kind == "file" and mime_type in ("image/jpeg", "image/png", "image/webp", "image/gif"):
        kind = "image"
    return Attachment(
        ref=media.file_id, name=name, kind=kind, mime_type=mime_type, size=media.file_size, problem=_problem(name, media.file_size)
    )


def _ending(mime_type: str | None) -> str:
    if mime_type == "audio/ogg":
        return ".ogg"
    return (guess_extension(mime_type) if mime_type else None) or ""


def _problem(name: str, size: int | None) -> str | None:
    if size is None or size <= MAX_DOWNLOAD_BYTES:
        return None
    return f"{name} has {megabytes(size)}; bots can fetch files of at most {megabytes(MAX_DOWNLOAD_BYTES)} from Telegram."


def described_text(message: Message) -> str:
    """Text or caption, with a line in brackets for what cannot be told otherwise; empty for notices of the platform itself."""
    lines = [message.text or message.caption or "", _description(message)]
    body = "\n".join(line for line in lines if line)
    if not (body or attachments(message)) or body.startswith("/"):
        return body
    forwarded = f"[Forwarded from {_origin(message)}]" if message.forward_origin else ""
    return "\n".join(filter(None, (_answered(message), forwarded, body)))


def _answered(message: Message) -> str:
    """What a reply points at, which the model may never have seen, or has seen long ago."""
    answered = message.reply_to_message
    if answered is not None and answered.forum_topic_created:  # every message of a topic answers the notice that opened it
        answered = None
    said = message.quote.text if message.quote else (answered.text or answered.caption or _description(answered) if answered else "")
    said = " ".join(said.split())
    if not said:
        return ""
    if len(said) > _MAX_QUOTED:
        said = f"{said[:_MAX_QUOTED]}…"
    user = answered.from_user if answered is not None else None
    who = "" if user is None else " you" if user.is_bot else f" {user.full_name}"
    return f"[In reply to{who}: {said}]" if who else f"[In reply to: {said}]"


def _description(message: Message) -> str:
    if message.venue:  # a venue is given as a location as well
        place = message.venue
        return f"[Place: {place.title}, {place.address} ({place.location.latitude}, {place.location.longitude})]"
    if message.location:
        return f"[Location: {message.location.latitude}, {message.location.longitude}]"
    if message.contact:
        person = " ".join(filter(None, (message.contact.first_name, message.contact.last_name)))
        return f"[Contact: {person}, {message.contact.phone_number}]"
    if message.sticker:
        return _sticker(message.sticker)
    if message.poll:
        return f"[Poll: {message.poll.question} – {' / '.join(option.text for option in message.poll.options)}]"
    if message.dice:
        return f"[Dice {message.dice.emoji}: {message.dice.value}]"
    if message.photo:
        return ""
    kind = next((words for field, words in _UNREADABLE.items() if getattr(message, field) is not None), None)
    return f"[Sent {kind}, which cannot be read here]" if kind else ""


def _sticker(sticker: Sticker) -> str:
    return f"[Sticker {sticker.emoji}]" if sticker.emoji else "[Sticker]"


def _origin(message: Message) -> str:
    match message.forward_origin:
        case MessageOriginUser(sender_user=user):
            return user.full_name
        case MessageOriginHiddenUser(sender_user_name=name):
            return name
        case MessageOriginChat(sender_chat=chat) | MessageOriginChannel(chat=chat):
            return chat.title or chat.full_name or "a chat"
        case _:
            return "somebody"
