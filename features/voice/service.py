"""A transcription service that speaks OpenAI's ``/audio/transcriptions``."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from features.contracts.errors import UserMustAct

if TYPE_CHECKING:
    import httpx2

__all__ = ["ServiceOptions", "ServiceTranscriber"]

_TIMEOUT_S = 120.0
_MAX_BYTES = 25_000_000  # the services' own limit
_MAX_REASON = 200
_OPENAI = "https://api.openai.com/v1"


class ServiceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``base_url`` empty is OpenAI's own."""

    model: str
    api_key: str | None = None
    base_url: str = ""

    def __repr__(self) -> str:
        return f"ServiceOptions(model={self.model!r}, base_url={self.base_url!r})"


class ServiceTranscriber:
    """Implements ``Transcriber``."""

    def __init__(self, options: ServiceOptions) -> None:
        self._options = options

    async def transcribe(self, recording: Path, *, workspace: Path, owner: bool) -> str:
        import httpx2

        content = await asyncio.to_thread(recording.read_bytes)
        if len(content) > _MAX_BYTES:
            raise UserMustAct(f"The recording has {len(content) // 1_000_000} MB; at most {_MAX_BYTES // 1_000_000} MB can be transcribed.")
        options = self._options
        url = f"{(options.base_url or _OPENAI).rstrip('/')}/audio/transcriptions"
        headers = {"Authorization": f"Bearer {options.api_key}"} if options.api_key else {}
        try:
            async with asyncio.timeout(_TIMEOUT_S), httpx2.AsyncClient(timeout=_TIMEOUT_S) as client:
                form = {"model": options.model, "response_format": "json"}
                answer = await client.post(url, headers=headers, data=form, files={"file": (recording.name, content)})
        except (httpx2.HTTPError, TimeoutError) as error:
            raise UserMustAct(f"The transcription service cannot be reached ({type(error).__name__}).") from None
        return _text(answer)


def _text(answer: "httpx2.Response") -> str:
    try:
        told: Any = msgspec.json.decode(answer.content)
    except msgspec.DecodeError:
        told = None
    if answer.status_code != 200:
        raise UserMustAct(f"The transcription service refused the recording ({answer.status_code}{_reason(told)}).")
    if not isinstance(told, dict) or not isinstance(told.get("text"), str):
        raise UserMustAct("The transcription service answered with something that is no transcript.")
    return str(told["text"]).strip()


def _reason(told: Any) -> str:
    error = told.get("error") if isinstance(told, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return f": {message[:_MAX_REASON]}" if isinstance(message, str) and message else ""
