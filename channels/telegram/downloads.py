"""Fetching what people sent."""

import asyncio
from contextlib import suppress
from pathlib import Path

import httpx
from telegram.error import BadRequest, TelegramError

from channels.telegram.api import TelegramApi
from channels.telegram.files import MAX_DOWNLOAD_BYTES, megabytes
from channels.telegram.lanes import Flooded
from channels.telegram.refusals import delivery_failure
from features.contracts.chat import Attachment
from features.contracts.errors import RetryLater, UserMustAct

__all__ = ["download"]

_CHUNK_BYTES = 256 * 1024


async def download(api: TelegramApi, attachment: Attachment, destination: Path, *, limit: int) -> None:
    """Write a file, at most ``limit`` bytes of it; nothing stays behind when it fails.

    Raises:
        UserMustAct: it is too large, or Telegram has it no more.
        RetryLater: Telegram is away or asks for a pause.
    """
    if attachment.problem:
        raise UserMustAct(attachment.problem)
    url, size = await _locate(api, attachment)
    if size is not None and size > limit:
        raise UserMustAct(_too_large(attachment, limit, size))
    part = destination.with_name(destination.name + ".part")
    try:
        await _stream(api, url, attachment, part, limit)
        part.replace(destination)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


async def _locate(api: TelegramApi, attachment: Attachment) -> tuple[str, int | None]:
    try:
        return await api.file_url(attachment.ref)
    except BadRequest as error:
        if "too big" in str(error).lower():
            raise UserMustAct(_too_large(attachment, MAX_DOWNLOAD_BYTES, attachment.size)) from None
        raise UserMustAct(f"Telegram no longer has {attachment.name}; please send it again.") from None
    except Flooded as flood:
        raise delivery_failure(flood, "") from None
    except TelegramError as error:
        raise RetryLater(f"{attachment.name} cannot be fetched: {api.words(error)}") from None


async def _stream(api: TelegramApi, url: str, attachment: Attachment, part: Path, limit: int) -> None:
    taken = 0
    try:
        async with api.downloads() as client, client.stream("GET", url) as answer:
            if 400 <= answer.status_code < 500 and answer.status_code != 429:
                raise UserMustAct(f"Telegram no longer has {attachment.name}; please send it again.")
            if answer.status_code != 200:
                raise RetryLater(f"{attachment.name} cannot be fetched: Telegram answers {answer.status_code}")
            with part.open("wb") as file:
                async for chunk in answer.aiter_bytes(_CHUNK_BYTES):
                    taken += len(chunk)
                    if taken > limit:
                        raise UserMustAct(_too_large(attachment, limit, attachment.size))
                    await asyncio.to_thread(file.write, chunk)
    except httpx.HTTPError as error:
        raise RetryLater(f"{attachment.name} cannot be fetched: {api.words(error) or type(error).__name__}") from None


def _too_large(attachment: Attachment, limit: int, size: int | None) -> str:
    has = f"has {megabytes(size)}" if size else "is too large"
    return f"{attachment.name} {has}; at most {megabytes(limit)} can be fetched."
