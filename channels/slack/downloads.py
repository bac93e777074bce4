"""Fetching what people sent: with the token, from Slack's own hosts only, and only what it says it is."""

import asyncio
from contextlib import suppress
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import aiohttp

from channels.slack.api import SlackApi, SlackRefusal, SlackUnreachable
from channels.slack.files import megabytes
from channels.slack.refusals import delivery_failure
from features.contracts.chat import Attachment
from features.contracts.errors import RetryLater, UserMustAct

__all__ = ["download"]

_CHUNK_BYTES = 256 * 1024
_MAX_REDIRECTS = 3
_SLACK_HOSTS = (".slack.com", ".slack-edge.com", ".slack-files.com")


async def download(api: SlackApi, attachment: Attachment, destination: Path, *, limit: int, token: str, api_url: str) -> None:
    """Write a file, at most ``limit`` bytes of it; nothing stays behind when it fails.

    Raises:
        UserMustAct: it is too large, Slack has it no more, or may not give it.
        RetryLater: Slack is away or asks for a pause.
    """
    if attachment.problem:
        raise UserMustAct(attachment.problem)
    if attachment.size is not None and attachment.size > limit:
        raise UserMustAct(f"{attachment.name} has {megabytes(attachment.size)}; at most {megabytes(limit)} can be fetched.")
    url = await _locate(api, attachment)
    part = destination.with_name(destination.name + ".part")
    try:
        await _stream(api, url, attachment, part, limit=limit, token=token, api_url=api_url)
        part.replace(destination)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


async def _locate(api: SlackApi, attachment: Attachment) -> str:
    try:
        file = (await api.call("files.info", form=True, file=attachment.ref)).get("file", {})
    except SlackRefusal as error:
        if error.code in ("file_not_found", "file_deleted"):
            raise UserMustAct(f"Slack no longer has {attachment.name}; please send it again.") from None
        failure = delivery_failure(error)
        raise failure if isinstance(failure, RetryLater) else UserMustAct(f"{attachment.name} cannot be fetched: {failure}") from None
    except SlackUnreachable as error:
        raise RetryLater(f"{attachment.name} cannot be fetched: {error}") from None
    url = str(file.get("url_private_download") or file.get("url_private") or "")
    if not url:
        raise UserMustAct(f"{attachment.name} is kept outside of Slack, so I cannot fetch it.")
    return url


async def _stream(api: SlackApi, url: str, attachment: Attachment, part: Path, *, limit: int, token: str, api_url: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    try:
        for _ in range(_MAX_REDIRECTS):
            if not _is_slack(url, api_url):
                raise UserMustAct(f"{attachment.name} lies on a host that is not Slack's, so I do not fetch it.")
            async with api.session.get(url, headers=headers, allow_redirects=False) as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, answer.headers.get("Location", ""))
                    continue
                if answer.status == 429 or answer.status >= 500:
                    raise RetryLater(f"{attachment.name} cannot be fetched: Slack answers {answer.status}")
                if answer.status != 200:
                    raise UserMustAct(f"Slack does not give {attachment.name} (it answers {answer.status}); please send it again.")
                await _write(answer, attachment, part, limit)
                return
    except (aiohttp.ClientError, TimeoutError) as error:
        raise RetryLater(f"{attachment.name} cannot be fetched: {type(error).__name__}") from None
    raise UserMustAct(f"{attachment.name} cannot be fetched: Slack sends from one address to the next.")


async def _write(answer: aiohttp.ClientResponse, attachment: Attachment, part: Path, limit: int) -> None:
    """Slack answers a token without rights with the page to log in: 200, and HTML in the place of the file."""
    taken = 0
    with part.open("wb") as file:
        async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
            if not taken and _is_page(chunk) and attachment.mime_type not in ("text/html", "application/xhtml+xml"):
                raise UserMustAct(f"Slack gives a log-in page in the place of {attachment.name}: the app lacks the scope files:read.")
            taken += len(chunk)
            if taken > limit:
                raise UserMustAct(f"{attachment.name} is too large; at most {megabytes(limit)} can be fetched.")
            await asyncio.to_thread(file.write, chunk)


def _is_page(start: bytes) -> bool:
    return start[:512].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def _is_slack(url: str, api_url: str) -> bool:
    parts, own = urlsplit(url), urlsplit(api_url)
    if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
        return True
    host = parts.hostname or ""
    return parts.scheme == "https" and any(host == name[1:] or host.endswith(name) for name in _SLACK_HOSTS)
