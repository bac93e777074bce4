"""The chats: their list, their messages, their events."""

from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from bot.http.answers import ApiError, answer, read_json
from bot.http.chat_log import ChatLogRow, ShownMessage, shown
from bot.http.events import Subscription
from bot.http.host_view import ChatRow, HostView
from bot.http.operations import Operation, Parameter
from bot.http.requests import ModelChoice, PostedMessage, SentMessage, asked_number, uploads
from features.contracts.chat import Address
from features.contracts.clock import Clock

__all__ = ["ChatsApi", "chat_address"]

_MESSAGE_BYTES = 30_000_000
_SEND_BYTES = 70_000_000  # 50 MB, the most that Telegram takes, in base64
_MAX_ADDRESS = 200
_SHOWN_INLINE = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}


class Posted(msgspec.Struct, frozen=True):
    id: str


def chat_address(host: HostView, text: str) -> Address:
    """An address out of a request.

    Raises:
        ApiError: 400 for what is no address, 404 for a chat that cannot exist on this host.
    """
    if len(text) > _MAX_ADDRESS or not text.isprintable():
        raise ApiError(400, f"A chat's address has at most {_MAX_ADDRESS} printable characters.")
    try:
        address = Address.parse(text)
    except ValueError as error:
        raise ApiError(400, f"{error}.") from None
    if not host.knows(address):
        raise ApiError(404, f"There is no chat {text!r} here: the channel {address.channel!r} is not enabled.")
    return address


class ChatsApi:
    def __init__(self, host: HostView, clock: Clock) -> None:
        self._host = host
        self._clock = clock

    def operations(self) -> list[Operation]:
        chat = "/api/chats/{address}"
        resume = (
            Parameter(name="Last-Event-ID", description="Go on after this event.", place="header", kind="integer"),
            Parameter(name="after", description="The same, for those who cannot send the header.", kind="integer"),
            Parameter(name="current", description="1: begin with the run that is going on.", kind="integer"),
        )
        page = (
            Parameter(name="before", description="The newest messages before this id."),
            Parameter(name="limit", description="How many at most, 1 to 200; 50 unless said.", kind="integer"),
        )
        made = Operation(
            method="POST", path=f"{chat}/messages", summary="Say something as the owner; it is answered in that chat.",
            handler=self.post, takes=PostedMessage, gives=Posted, status=202, errors=(400, 404, 413),
        )  # fmt: skip
        return [
            Operation(method="GET", path="/api/chats", summary="All chats.", handler=self.chats, gives=list[ChatRow]),
            Operation(
                method="GET", path=f"{chat}/messages", summary="A chat's messages, oldest first.", handler=self.messages,
                gives=list[ShownMessage], parameters=page, errors=(400, 404),
            ),
            made,
            Operation(
                method="GET", path=f"{chat}/messages/{{id}}/files/{{index}}", summary="A file that was delivered with a message.",
                handler=self.file, media="application/octet-stream", errors=(400, 404),
            ),
            Operation(
                method="GET", path=f"{chat}/events",
                summary="Server-sent: the session's events, and status, received, delivered, changed and resync.",
                handler=self.events, media="text/event-stream", parameters=resume, errors=(400, 404, 503),
            ),
            Operation(
                method="POST", path=f"{chat}/send", summary="Deliver something into a chat.", handler=self.send,
                takes=SentMessage, gives=Posted, status=202, errors=(400, 404, 413),
            ),
            Operation(
                method="POST", path=f"{chat}/model", summary="Switch a chat's model.", handler=self.model,
                takes=ModelChoice, gives=ModelChoice, errors=(400, 404),
            ),
        ]  # fmt: skip

    async def chats(self, request: Request) -> Response:
        return answer(await self._host.chats())

    async def messages(self, request: Request) -> Response:
        address = self._address(request)
        limit = asked_number(request, "limit", default=50, most=200)
        rows = await self._host.messages(address, before=request.query_params.get("before"), limit=limit)
        return answer([shown(address, row) for row in rows])

    async def post(self, request: Request) -> Response:
        address = self._address(request)
        message = await read_json(request, PostedMessage, limit=_MESSAGE_BYTES)
        files = uploads(message)
        events = self._host.events
        events.touch(address)
        at = self._clock.now()
        identifier = await self._host.post(address, message.text, files, attended=message.attended)
        events.received(address, ChatLogRow(id=identifier, role="user", text=message.text, at=at))
        return answer(Posted(identifier), 202)

    async def send(self, request: Request) -> Response:
        address = self._address(request)
        message = await read_json(request, SentMessage, limit=_SEND_BYTES)
        return answer(Posted(await self._host.send(address, message.text, uploads(message))), 202)

    async def model(self, request: Request) -> Response:
        address = self._address(request)
        choice = await read_json(request, ModelChoice, limit=10_000)
        return answer(ModelChoice(model=await self._host.set_model(address, choice.model)))

    async def file(self, request: Request) -> Response:
        address = self._address(request)
        row = await self._host.message(address, request.path_params["id"])
        index = request.path_params["index"]
        if row is None or not index.isdecimal() or not 0 <= int(index) < len(row.files):
            raise ApiError(404, "That message has no such file.")
        found = row.files[int(index)]
        if not found.path.is_file():
            raise ApiError(404, f"{found.name!r} is no longer there.")
        inline = _SHOWN_INLINE.get(Path(found.name).suffix.lower())
        return FileResponse(
            found.path,
            media_type=inline or "application/octet-stream",
            filename=found.name,
            content_disposition_type="inline" if inline else "attachment",
        )

    async def events(self, request: Request) -> Response:
        address = self._address(request)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        told = request.headers.get("last-event-id") or request.query_params.get("after")
        if told is not None and (not told.isdecimal() or len(told) > 20):
            raise ApiError(400, f"{told!r} is no event id; ids are whole numbers.")
        current = request.query_params.get("current") == "1"
        return _EventStream(self._host.events.subscribe(address, after=int(told) if told else None, current_run=current))

    def _address(self, request: Request) -> Address:
        return chat_address(self._host, request.path_params["address"])


class _EventStream(StreamingResponse):
    """Ends the subscription however the stream ends."""

    def __init__(self, subscription: Subscription) -> None:
        super().__init__(subscription, media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._subscription:
            await super().__call__(scope, receive, send)
