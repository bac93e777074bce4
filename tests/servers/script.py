"""What a loopback model server is told to answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tests.servers.serving import serve

__all__ = ["Call", "Failure", "ModelServer", "Recorded", "Refused", "Reply", "Step"]

StreamFault = Literal["half", "no_end", "error", "stall"]


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call; ``arguments`` as text is sent as it stands, also when it is no JSON."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None

    @property
    def json(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer. ``stop`` is the service's own word, chosen fittingly when it is None.

    ``fault``: ``half`` cuts the connection in the middle of the last event, ``no_end`` ends cleanly before the terminal event, ``error``
    sends the service's error event after the content (``error_type``), ``stall`` sends nothing more after the content, and waits.
    """

    text: str = ""
    thinking: str = ""
    calls: Sequence[Call] = ()
    stop: str | None = None
    input_tokens: int = 10
    output_tokens: int = 5
    cache_read: int = 0
    cache_write: int = 0
    chunk: int = 16
    delay_s: float = 0.0
    fault: StreamFault | None = None
    error_type: str | None = None
    refusal: str = ""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An HTTP error. ``body`` replaces the service's own form of ``type`` and ``message``."""

    status: int
    type: str = ""
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None


Step = Reply | Failure


class Refused(Exception):
    """A request that the real service would refuse, with its own words."""

    def __init__(self, message: str, *, status: int = 400, type: str = "invalid_request_error", code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Recorded:
    headers: Mapping[str, str]
    body: dict[str, Any]


class ModelServer:
    """A model service on a loopback port, used as ``async with AnthropicServer([Reply(text="hi")]) as server``.

    It answers with the steps of its script, in order; ``respond`` instead answers any number of requests by a function of the request.
    At the end it fails the test for steps that nobody asked for, requests beyond the script, and requests that it had to refuse;
    a test of refusals empties ``refusals`` after it has looked.
    """

    path: str
    api_key: str

    def __init__(
        self, script: Sequence[Step] = (), *, respond: Callable[[dict[str, Any]], Step] | None = None, record: bool = True
    ) -> None:
        self.script = list(script)
        self.respond = respond
        self.requests: list[Recorded] = []
        self.refusals: list[str] = []
        self.unexpected = 0
        self.gone = asyncio.Event()
        self.busy = 0
        self.peak = 0
        self.url = ""
        self.app = Starlette(
            routes=[Route(self.path, self._endpoint, methods=["POST"]), Route("/v1/models", self._list_models, methods=["GET"])]
        )
        self._record = record
        self._stack = AsyncExitStack()

    @property
    def request(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.requests[-1].body

    async def __aenter__(self) -> Self:
        self.url = await self._stack.enter_async_context(serve(self.app))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._stack.aclose()
        if error is None:
            self.check()

    def check(self) -> None:
        """Fail unless the script was used up and every request was legal and expected."""
        assert not self.refusals, f"refused: {self.refusals}"
        assert not self.unexpected, f"{self.unexpected} requests beyond the script"
        assert not self.script, f"nobody asked for: {self.script}"

    async def _list_models(self, request: Request) -> Response:
        """Costs nothing, so that it is no step of a script; a key that is not valid is no mistake of the test either."""
        try:
            self.authenticate(request.headers)
        except Refused as refused:
            return self._refuse(refused)
        return JSONResponse({"data": [], "models": []})

    async def _endpoint(self, request: Request) -> Response:
        """Counts the requests that are being answered; ``peak`` is the most there were at a time."""
        self.busy += 1
        self.peak = max(self.peak, self.busy)
        try:
            response = await self._respond(request)
        except BaseException:
            self.busy -= 1
            raise
        response.background = BackgroundTask(self._answered)
        return response

    async def _answered(self) -> None:
        self.busy -= 1

    async def _respond(self, request: Request) -> Response:
        raw = await request.body()
        try:
            body = self._read(request, raw)
        except Refused as refused:
            self.refusals.append(str(refused))
            return self._refuse(refused)
        if self._record:
            self.requests.append(Recorded(headers=dict(request.headers), body=body))
        step = self._next(body)
        if step is None:
            self.unexpected += 1
            return self.failure(Failure(status=500, type="api_error", message="the script has no further step"))
        if isinstance(step, Failure):
            return self.failure(step)
        if step.delay_s:
            await asyncio.sleep(step.delay_s)
        return EventStream(self.events(step, body), cut=step.fault == "half", stall=step.fault == "stall", gone=self.gone)

    def _next(self, body: dict[str, Any]) -> Step | None:
        if self.respond is not None:
            return self.respond(body)
        return self.script.pop(0) if self.script else None

    def _read(self, request: Request, raw: bytes) -> dict[str, Any]:
        self.authenticate(request.headers)
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise Refused("content-type must be application/json", status=415)
        try:
            body = json.loads(raw.decode("utf-8"))
            json.dumps(body, ensure_ascii=False).encode("utf-8")
        except ValueError as error:
            raise Refused(f"The request body is not valid JSON: {error}") from error
        if not isinstance(body, dict):
            raise Refused("The request body is not valid JSON: no object")
        self.locate(request, body)
        self.validate(body)
        return body

    def _refuse(self, refused: Refused) -> Response:
        return self.failure(Failure(status=refused.status, type=refused.type, message=str(refused)))

    def authenticate(self, headers: Mapping[str, str]) -> None:
        raise NotImplementedError

    def locate(self, request: Request, body: dict[str, Any]) -> None:
        """Take into the body what the address says."""

    def validate(self, body: dict[str, Any]) -> None:
        raise NotImplementedError

    def failure(self, failure: Failure) -> Response:
        raise NotImplementedError

    def events(self, reply: Reply, body: dict[str, Any]) -> AsyncIterator[bytes]:
        raise NotImplementedError


def pieces(text: str, size: int) -> list[str]:
    """A text in parts of at most ``size`` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def error_response(failure: Failure, content: Any, headers: Mapping[str, str]) -> Response:
    merged = {**headers, **failure.headers}
    if failure.body is not None:
        return Response(failure.body, failure.status, merged)
    return JSONResponse(content, failure.status, merged)


class EventStream(Response):
    """Server-sent events; notices at once when the client goes."""

    def __init__(self, events: AsyncIterator[bytes], *, cut: bool, stall: bool, gone: asyncio.Event) -> None:
        super().__init__(media_type="text/event-stream", headers={"cache-control": "no-cache"})
        del self.headers["content-length"]
        self._events = events
        self._cut = cut
        self._stall = stall
        self._gone = gone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        watching = asyncio.create_task(self._watch(receive))
        telling = asyncio.create_task(self._tell(send))
        try:
            await asyncio.wait({watching, telling}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (watching, telling):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            if self.background is not None:
                await self.background()
        if telling.done() and not telling.cancelled():
            telling.result()

    async def _watch(self, receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone.set()

    async def _tell(self, send: Send) -> None:
        async for data in self._events:
            await send({"type": "http.response.body", "body": data, "more_body": True})
        if self._cut:
            raise ConnectionResetError("cut on purpose")
        if self._stall:
            await asyncio.Event().wait()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
