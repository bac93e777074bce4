"""OpenAI's transcription endpoint on a loopback port, as strict as the real one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.servers.serving import serve

__all__ = ["TranscriptionServer", "serve_transcription"]

_KINDS = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm")


class TranscriptionServer:
    """Answers every recording with ``text``; ``raw`` stands in for the whole answer."""

    api_key = "sk-transcription-key"

    def __init__(self) -> None:
        self.url = ""
        self.text = "buy milk"
        self.raw: tuple[int, bytes] | None = None
        self.recordings: list[tuple[str, str, bytes]] = []

    async def answer(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {self.api_key}":
            return _refused(401, "Incorrect API key provided")
        async with request.form() as form:
            file, model = form.get("file"), str(form.get("model") or "")
            if not model:
                return _refused(400, "you must provide a model parameter")
            if not isinstance(file, UploadFile):
                return _refused(400, "file is a required property")
            name, content = file.filename or "", await file.read()
        if name.rpartition(".")[2] not in _KINDS:
            return _refused(400, f"Invalid file format. Supported formats: {list(_KINDS)}")
        self.recordings.append((model, name, content))
        if self.raw is not None:
            return Response(self.raw[1], self.raw[0])
        return JSONResponse({"text": self.text})


def _refused(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}, status)


@asynccontextmanager
async def serve_transcription() -> AsyncIterator[TranscriptionServer]:
    server = TranscriptionServer()
    async with serve(Starlette(routes=[Route("/v1/audio/transcriptions", server.answer, methods=["POST"])])) as url:
        server.url = f"{url}/v1"
        yield server
