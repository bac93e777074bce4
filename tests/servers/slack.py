"""A double of Slack on a loopback port: Web API, Socket Mode, signed events, files; as strict as the real one.

In a test::

    async with serve_slack() as slack:
        slack.say("D1", "hello")
        await slack.until(lambda: slack.messages("D1"))
"""

import asyncio
import hashlib
import hmac
import json
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp import WSMsgType, web

from tests.servers.slack_methods import Methods
from tests.servers.slack_rules import Refused
from tests.servers.slack_world import APP_TOKEN, BOT_TOKEN, BOT_USER, SIGNING_SECRET, TEAM, Shown, SlackWorld

__all__ = ["Call", "Fault", "Shown", "SlackServer", "serve_slack"]


class Call(msgspec.Struct, frozen=True):
    """A call as it came in; ``ok`` says whether it was taken."""

    method: str
    values: Mapping[str, Any]
    at: float
    ok: bool


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong with the next calls of one method.

    ``error`` refuses with HTTP ``status``; ``retry_after`` asks for a pause; ``drop`` cuts the connection
    ``before`` it is taken or ``after``.
    """

    error: str = ""
    status: int = 200
    retry_after: int = 0
    needed: str = ""
    drop: str = ""
    channel: str | None = None


class SlackServer:
    """One workspace, the bot, and the people around it.

    ``say``, ``edit``, ``delete``, ``press``, ``command`` are what people do; ``messages`` is what they see; ``calls`` is what the
    bot asked for.
    """

    def __init__(self) -> None:
        self.world = SlackWorld()
        self.url = ""
        self.events_url = ""  # HTTP mode, where it is set
        self.calls: list[Call] = []
        self.answers: list[tuple[int, str]] = []  # what the host answered over HTTP
        self.unacknowledged: dict[str, dict[str, Any]] = {}
        self.acknowledged_after: list[float] = []
        self.silent = False  # the socket stays open and says nothing, not even a pong
        self.refuse_sockets = False
        self._sent_at: dict[str, float] = {}
        self._methods = Methods(self.world)
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._sockets: list[web.WebSocketResponse] = []
        self._backlog: list[dict[str, Any]] = []
        self._ids = count(1)
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()

    # what people do

    def say(
        self,
        channel: str,
        text: str = "",
        *,
        user: str = "U1ANN",
        thread: str | None = None,
        files: tuple[tuple[str, str, bytes], ...] = (),
        send: tuple[str, ...] | None = None,
        **fields: Any,
    ) -> str:
        """Write a message; gives its ts.

        Args:
            files: name, MIME type and content of each.
            send: the events that tell of it, in that order; ``message``, and ``app_mention`` too where the bot is named.
            fields: more of the message's JSON; None takes a field away.
        """
        shown, event = self.world.write(channel, text, user, thread=thread, files=files)
        event = {key: value for key, value in {**event, **fields}.items() if value is not None}
        named = f"<@{BOT_USER}>" in text
        kinds = send if send is not None else ("message", "app_mention") if named and not channel.startswith("D") else ("message",)
        for kind in kinds:
            mention = {key: value for key, value in event.items() if key not in ("channel_type", "subtype")}
            self.event({**mention, "type": "app_mention"} if kind == "app_mention" else event)
        return shown.ts

    def edit(self, channel: str, ts: str, text: str, *, unfurl: bool = False) -> None:
        self.event(self.world.change(channel, ts, text, unfurl=unfurl))

    def delete(self, channel: str, ts: str) -> None:
        self.event(self.world.remove(channel, ts))

    def press(self, channel: str, ts: str, label: str, *, user: str = "U1ANN") -> None:
        self._deliver("interactive", self.world.press(channel, ts, label, user))

    def command(self, channel: str, text: str, *, user: str = "U1ANN") -> None:
        self._deliver("slash_commands", self.world.slash(channel, text, user))

    def event(self, event: dict[str, Any], *, event_id: str | None = None) -> str:
        """Any event, also one that is not as documented; gives its id."""
        event_id = event_id or f"Ev{next(self._ids):06d}"
        body = {
            "type": "event_callback",
            "team_id": TEAM,
            "api_app_id": "A1",
            "event": event,
            "event_id": event_id,
            "event_time": int(time.time()),
            "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
        }
        self._deliver("events_api", body)
        return event_id

    # what is seen

    def messages(self, channel: str, *, thread: str | None = None) -> list[Shown]:
        """What the bot wrote, as it stands there now; in one thread where that is named."""
        shown = [each for each in self.world.conversations[channel].values() if each.own]
        return shown if thread is None else [each for each in shown if each.thread == thread]

    def texts(self, channel: str, *, thread: str | None = None) -> list[str]:
        return [each.shown for each in self.messages(channel, thread=thread)]

    def called(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    async def until(self, condition: Callable[[], object], *, within: float = 10.0) -> None:
        """Wait until something holds; it is looked at after every call, answer and connection."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: bool(condition())), within)

    # what goes wrong

    def fail(self, method: str, fault: Fault, *, times: int = 1) -> None:
        self._faults[method].extend([fault] * times)

    def redeliver(self) -> None:
        """Send what was not acknowledged again, as Slack does after a while."""
        waiting, self.unacknowledged = list(self.unacknowledged.values()), {}
        for number, envelope in enumerate(waiting):
            again = {**envelope, "envelope_id": f"again-{next(self._ids)}-{number}", "retry_attempt": 1, "retry_reason": "timeout"}
            self._later(self._send(again))

    async def disconnect(self, *, announced: bool = True) -> None:
        """End every connection, with a word or without."""
        sockets, self._sockets = self._sockets, []
        for socket in sockets:
            if announced:
                await socket.send_json({"type": "disconnect", "reason": "refresh_requested"})
            else:
                await socket.close()

    @property
    def connections(self) -> int:
        return sum(1 for socket in self._sockets if not socket.closed)

    # the protocol

    def application(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_get("/socket", self._socket)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_get("/files/{file}/{name}", self._download)
        return app

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        values = await _values(request)
        fault = self._fault(method, values)
        try:
            if fault.drop == "before":
                raise Refused("dropped")
            if fault.retry_after:
                raise Refused("ratelimited", status=429, headers={"Retry-After": str(fault.retry_after)})
            if fault.error:
                raise Refused(fault.error, status=fault.status, needed=fault.needed)
            token = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if token != (APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN):
                raise Refused("invalid_auth")
            result = {"url": f"{self.url.replace('http', 'ws')}/socket"} if method == "apps.connections.open" else None
            if result is None:
                result = self._methods.call(method, values, self.url)
        except Refused as refusal:
            self._note(method, values, ok=False)
            if fault.drop:
                return await _cut(request)
            body = {"ok": False, "error": refusal.error, **refusal.fields}
            return web.json_response(body, status=refusal.status, headers=refusal.headers)
        self._note(method, values, ok=True)
        if fault.drop == "after":
            return await _cut(request)
        return web.json_response({"ok": True, **result}, headers={"x-oauth-scopes": ",".join(sorted(self.world.scopes))})

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if self.refuse_sockets:
            return web.Response(status=503)
        socket = web.WebSocketResponse(autoping=not self.silent)
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}})
        self._sockets.append(socket)
        backlog, self._backlog = self._backlog, []
        for envelope in backlog:
            await self._send(envelope)
        self._notify()
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self._acknowledge(json.loads(message.data).get("envelope_id", ""))
        if socket in self._sockets:
            self._sockets.remove(socket)
        self._notify()
        return socket

    def _acknowledge(self, envelope_id: str) -> None:
        if self.unacknowledged.pop(envelope_id, None) is not None:
            self.acknowledged_after.append(time.monotonic() - self._sent_at[envelope_id])
        self._notify()

    def _deliver(self, kind: str, payload: dict[str, Any]) -> None:
        if self.events_url:
            self._later(self._post(kind, payload))
        else:
            envelope = {"envelope_id": f"env-{next(self._ids)}", "type": kind, "payload": payload, "accepts_response_payload": False}
            self._later(self._send(envelope))

    async def _send(self, envelope: dict[str, Any]) -> None:
        socket = next((each for each in self._sockets if not each.closed), None)
        if socket is None:
            self._backlog.append(envelope)
            return
        self.unacknowledged[envelope["envelope_id"]] = envelope
        self._sent_at[envelope["envelope_id"]] = time.monotonic()
        await socket.send_json(envelope)

    async def _post(self, kind: str, payload: dict[str, Any]) -> None:
        """HTTP mode: JSON for events, a form for the rest; signed."""
        if kind == "events_api":
            body, content_type = json.dumps(payload), "application/json"
        else:
            form = {"payload": json.dumps(payload)} if kind == "interactive" else payload
            body, content_type = urlencode(form), "application/x-www-form-urlencoded"
        await self.post_signed(body, content_type=content_type)

    async def post_signed(
        self, body: str, *, content_type: str = "application/json", secret: str = SIGNING_SECRET, age_s: int = 0
    ) -> tuple[int, str]:
        stamp = str(int(time.time()) - age_s)
        signature = "v0=" + hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
        headers = {"Content-Type": content_type, "X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature}
        async with aiohttp.ClientSession() as session, session.post(self.events_url, data=body.encode(), headers=headers) as answer:
            told = (answer.status, await answer.text())
        self.answers.append(told)
        self._notify()
        return told

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        content = await request.read()
        self.world.receive(request.match_info["file"], content)
        self._note("upload", {"file": request.match_info["file"], "length": len(content)}, ok=True)
        return web.Response(text=f"OK - {len(content)}")

    async def _download(self, request: web.Request) -> web.StreamResponse:
        fault = self._fault("download", {})
        self._note("download", {"authorization": request.headers.get("Authorization", "")}, ok=not fault.error)
        if fault.error.startswith("redirect "):
            raise web.HTTPFound(fault.error.removeprefix("redirect "))
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}" or fault.error == "login":
            return web.Response(text="<!DOCTYPE html><html>log in</html>", content_type="text/html")
        if fault.error:
            return web.Response(status=fault.status)
        return web.Response(body=self.world.files[request.match_info["file"]].content)

    def _fault(self, method: str, values: Mapping[str, Any]) -> Fault:
        queued = self._faults[method]
        found = next((fault for fault in queued if fault.channel in (None, values.get("channel"))), None)
        if found is None:
            return Fault()
        queued.remove(found)
        return found

    def _note(self, method: str, values: Mapping[str, Any], *, ok: bool) -> None:
        self.calls.append(Call(method, values, time.time(), ok))
        self._notify()

    def _notify(self) -> None:
        async def tell() -> None:
            async with self._changed:
                self._changed.notify_all()

        self._later(tell())

    def _later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for socket in self._sockets:
            await socket.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _values(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return dict(await request.json())
    if request.content_type not in ("application/x-www-form-urlencoded", "application/octet-stream"):
        return dict(request.query)
    return {**request.query, **await request.post()}


async def _cut(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@asynccontextmanager
async def serve_slack() -> AsyncIterator[SlackServer]:
    server = SlackServer()
    runner = web.AppRunner(server.application(), shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await server.close()
        await runner.cleanup()
