"""Files that people send: fetched into the workspace, named to the model, told when they cannot be had."""

import asyncio
import base64
import io
from pathlib import Path
from typing import Protocol

from bot.conversations.turn import Fetched, Turn
from features.contracts.chat import Address, Attachment, ChatChannel
from features.contracts.clock import Clock
from features.contracts.errors import RetryLater, UserMustAct
from features.contracts.messages import ImageBlock
from features.contracts.voice import Transcriber

__all__ = ["AttachmentPlaces", "Attachments", "KeptUploads"]

_MOST_FILES = 20
_DEAF = (
    "I cannot listen to voice messages here, because no transcription is set up; I have kept the recording as a file. "
    "Please write it to me, or have the operator set voice.transcribe or voice.command."
)
_LARGEST_FILE = 50_000_000
_ATTEMPTS = 3
_LONGEST_WAIT_S = 10.0
_LONGEST_SIDE = 1568  # more is scaled down by the model services anyway
_LARGEST_SOURCE = 40_000_000  # pixels
_PLAIN_FORMATS = {"JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp"}
_PLAIN_BYTES = 1_500_000


class AttachmentPlaces(Protocol):
    """Where attachments go; ``workspaces.Workspaces`` knows."""

    def folder(self, place: Address) -> Path: ...

    def attachment_path(self, place: Address, message_id: str, name: str) -> Path: ...


class KeptUploads(Protocol):
    """Files that came over HTTP, into whatever chat; ``channels.web.UploadStore`` keeps them."""

    def owns(self, attachment: Attachment) -> bool: ...

    def copy(self, attachment: Attachment, destination: Path, limit: int) -> None: ...


class Attachments:
    """Fetches what a turn brings: 20 files at most, 50 MB each, one after another."""

    def __init__(self, places: AttachmentPlaces, uploads: KeptUploads, clock: Clock, transcriber: Transcriber | None = None) -> None:
        self._places = places
        self._transcriber = transcriber
        self._uploads = uploads
        self._clock = clock

    async def fetch(self, turn: Turn, channel: ChatChannel, *, vision: bool) -> Fetched:
        """
        Args:
            vision: whether the model sees pictures; without it they are only named.
        """
        result = Fetched()
        attachments = turn.attachments
        for stored, attachment in attachments[:_MOST_FILES]:
            place = stored.message.address.place
            try:
                path = await self._one(place, stored.message.ref or stored.id, attachment, channel)
            except UserMustAct as refusal:
                result.problems.append(str(refusal))
                result.lines.append(f"[attachment {_label(attachment)} could not be fetched: {refusal}]")
                continue
            folder = self._places.folder(place)
            shown = path.relative_to(folder) if path.is_relative_to(folder) else path
            result.lines.append(f"[attached: {shown} ({_size(path.stat().st_size)})]")
            if attachment.kind == "voice":
                await self._listen(path, folder, result, owner=stored.owner)
            if vision and (image := await asyncio.to_thread(image_block, path)) is not None:
                result.images.append(image)
        if left := attachments[_MOST_FILES:]:
            result.problems.append(f"I took the first {_MOST_FILES} files and left out {len(left)}; please send those again.")
            result.lines.append(f"[{len(left)} further attachments were left out]")
        return result

    async def _listen(self, recording: Path, workspace: Path, result: Fetched, *, owner: bool) -> None:
        """What is said in a voice message; the person hears if it cannot be had, since they took it as said."""
        if self._transcriber is None:
            result.problems.append(_DEAF)
            result.lines.append("[a voice message; there is no transcription on this host, so what it says is not known]")
            return
        try:
            said = await self._transcriber.transcribe(recording, workspace=workspace, owner=owner)
        except UserMustAct as reason:
            result.problems.append(f"I could not listen to your voice message: {reason} I have kept the recording.")
            result.lines.append(f"[a voice message that could not be transcribed: {reason}]")
            return
        result.lines.append(f"[voice message, as transcribed:]\n{said}" if said else "[a voice message in which nothing was heard]")

    async def _one(self, place: Address, message_id: str, attachment: Attachment, channel: ChatChannel) -> Path:
        if attachment.problem is not None:
            raise UserMustAct(attachment.problem)
        if attachment.size is not None and attachment.size > _LARGEST_FILE:
            raise UserMustAct(f"{_label(attachment)} has {_size(attachment.size)}; I can take {_size(_LARGEST_FILE)} at most.")
        path = self._places.attachment_path(place, message_id, attachment.name)
        if self._uploads.owns(attachment):
            await asyncio.to_thread(self._uploads.copy, attachment, path, _LARGEST_FILE)
        else:
            await self._fetch(attachment, path, channel)
        return path

    async def _fetch(self, attachment: Attachment, path: Path, channel: ChatChannel) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await channel.fetch(attachment, path, limit=_LARGEST_FILE)
            except RetryLater as later:
                wait = later.after.total_seconds() if later.after is not None else float(attempt)
                if attempt == _ATTEMPTS or wait > _LONGEST_WAIT_S:
                    raise UserMustAct(f"{_label(attachment)} could not be fetched just now. Please send it again.") from later
                await self._clock.sleep(wait)
            else:
                return


def image_block(path: Path) -> ImageBlock | None:
    """The picture in a file as a model may see it, at most 1568 pixels a side; None for what is no picture. Blocks; run it in a thread."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            if image.width * image.height > _LARGEST_SOURCE:
                return None
            small = max(image.size) <= _LONGEST_SIDE and path.stat().st_size <= _PLAIN_BYTES
            if small and image.format in _PLAIN_FORMATS:
                image.verify()
                return ImageBlock(data=base64.b64encode(path.read_bytes()).decode(), mime_type=_PLAIN_FORMATS[image.format])
            image.draft("RGB", (_LONGEST_SIDE, _LONGEST_SIDE))
            upright = ImageOps.exif_transpose(image)
            upright.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
            out = io.BytesIO()
            if "A" in upright.getbands() or upright.mode == "P":
                upright.convert("RGBA").save(out, "PNG")
                return ImageBlock(data=base64.b64encode(out.getvalue()).decode(), mime_type="image/png")
            upright.convert("RGB").save(out, "JPEG", quality=85)
            return ImageBlock(data=base64.b64encode(out.getvalue()).decode(), mime_type="image/jpeg")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def _label(attachment: Attachment) -> str:
    """The sender's name for it, fit for one line."""
    name = "".join(character for character in " ".join(attachment.name.split()) if character.isprintable())
    return name[:80] or "the file"


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
