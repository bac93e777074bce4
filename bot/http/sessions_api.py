"""The sessions of all chats: listed, shown, taken out and in, checked, deleted."""

import base64
import binascii
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response

from bot.http.answers import ApiError, answer, read_json
from bot.http.chats_api import chat_address
from bot.http.host_view import HostView, SessionDetail
from bot.http.operations import Operation, Parameter
from bot.http.requests import SessionCheck, SessionImport
from features.contracts.chat import Address
from features.contracts.session_transfer import CheckedSession, ExportFormat, ImportedSession
from features.contracts.sessions import SessionSummary

__all__ = ["OF_CHAT", "SessionsApi", "asked_chat"]

OF_CHAT = Parameter(name="chat", description="Of this chat alone: its address.")
_SMALL_BODY = 10_000
_IMPORT_BYTES = 140_000_000  # 100 MB in base64


def asked_chat(host: HostView, request: Request) -> Address | None:
    """The chat that a request's ``chat`` names, None where it names none."""
    text = request.query_params.get("chat")
    return chat_address(host, text) if text else None


class SessionsApi:
    def __init__(self, host: HostView) -> None:
        self._host = host

    def operations(self) -> list[Operation]:
        session = "/api/sessions/{id}"
        form = Parameter(name="format", description="jsonl (as pi reads it), html or md; jsonl unless said.")
        return [
            Operation(
                method="GET", path="/api/sessions", summary="Sessions, newest first.", handler=self.list_,
                gives=list[SessionSummary], parameters=(OF_CHAT,), errors=(400, 404),
            ),
            Operation(
                method="POST", path="/api/sessions/import", summary="Take in a session file of any version.", handler=self.import_,
                takes=SessionImport, gives=ImportedSession, status=201, errors=(400, 404, 413),
            ),
            Operation(
                method="GET", path=session, summary="A session with its entries, as pi's session files hold them.",
                handler=self.show, gives=SessionDetail, errors=(404,),
            ),
            Operation(
                method="GET", path=f"{session}/export", summary="A session as a file.", handler=self.export,
                media="application/octet-stream", parameters=(form,), errors=(400, 404),
            ),
            Operation(
                method="POST", path=f"{session}/check", summary="Look for damage in a session, and repair it.", handler=self.check,
                takes=SessionCheck, gives=CheckedSession, errors=(400, 404),
            ),
            Operation(
                method="DELETE", path=session, summary="Delete a session for good.", handler=self.delete, status=204, errors=(400, 404),
            ),
        ]  # fmt: skip

    async def list_(self, request: Request) -> Response:
        return answer(await self._host.sessions(asked_chat(self._host, request)))

    async def show(self, request: Request) -> Response:
        found = await self._host.session(request.path_params["id"])
        if found is None:
            raise _no_session(request)
        return answer(found)

    async def delete(self, request: Request) -> Response:
        if not await self._host.delete_session(request.path_params["id"]):
            raise _no_session(request)
        return Response(status_code=204)

    async def import_(self, request: Request) -> Response:
        asked = await read_json(request, SessionImport, limit=_IMPORT_BYTES)
        try:
            data = base64.b64decode(asked.data, validate=True)
        except (binascii.Error, ValueError):
            raise ApiError(400, "data is no base64.") from None
        return answer(await self._host.import_session(chat_address(self._host, asked.chat), data), 201)

    async def export(self, request: Request) -> Response:
        form = request.query_params.get("format", "jsonl")
        known = {name: name for name in get_args(ExportFormat)}
        if form not in known:
            raise ApiError(400, f"format is {form!r}; it is one of {', '.join(known)}.")
        found = await self._host.export_session(request.path_params["id"], known[form])
        if found is None:
            raise _no_session(request)
        headers = {"content-disposition": f'attachment; filename="{found.name}"'}
        return Response(found.data, media_type="application/octet-stream", headers=headers)

    async def check(self, request: Request) -> Response:
        asked = await read_json(request, SessionCheck, limit=_SMALL_BODY)
        found = await self._host.check_session(request.path_params["id"], repair=asked.repair)
        if found is None:
            raise _no_session(request)
        return answer(found)


def _no_session(request: Request) -> ApiError:
    return ApiError(404, f"There is no session {request.path_params['id']!r}. /api/sessions lists them.")
