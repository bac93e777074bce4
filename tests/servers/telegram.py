"""A double of Telegram's Bot API on a loopback port, as strict as the real one.

In a test::

    async with serve_telegram() as telegram:
        telegram.say(1001, "hello")
        await telegram.until(lambda: telegram.messages(1001))

As a process of its own, for benchmarks: ``python -m tests.servers.telegram --port 8081``; people then write and read through
``/control/...``.
"""

import argparse
import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx2
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.servers.serving import run, serve
from tests.servers.telegram_methods import Methods
from tests.servers.telegram_rules import Body, Refused, read_body
from tests.servers.telegram_world import FileIn, FloodLimits, Shown, User, World, button_data, detected_entities

__all__ = ["Call", "Fault", "FileIn", "FloodLimits", "Shown", "TelegramServer", "User", "serve_telegram"]

TOKEN = "4242:loopback-token"
_CONFLICT = "Conflict: "


class Call(msgspec.Struct, frozen=True):
    """A call as it came in; ``at`` is the time by this machine's clock, ``ok`` whether it was taken."""

    method: str
    values: Mapping[str, Any]
    files: Mapping[str, tuple[str, bytes]]
    at: float
    ok: bool

    @property
    def chat(self) -> int:
        return int(self.values.get("chat_id", 0))


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong with the next calls of one method.

    ``code`` and ``description`` refuse them; ``drop`` cuts the connection ``before`` they are taken or ``after``;
    ``slow_s`` holds the answer back.
    """

    code: int = 0
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    drop: str = ""
    slow_s: float = 0.0
    chat: int | None = None


class TelegramServer:
    """One bot and the people around it.

    ``say``, ``edit``, ``press`` are what people do; ``messages`` is what they see; ``calls`` is what the bot asked for;
    ``fail`` lets calls go wrong.
    """

    def __init__(self, *, token: str = TOKEN, username: str = "pumice_bot") -> None:
        self.token = token
        self.url = ""
        self.world = World(User(int(token.partition(":")[0]), "Pumice", username, is_bot=True))
        self.calls: list[Call] = []
        self._methods = Methods(self.world)
        self._faults: dict[str, list[Fault]] = {}
        self._changed = asyncio.Condition()
        self._poll = 0
        self._press_ids = count(1)
        self._arriving: Counter[str] = Counter()
        self._closing = False
        self.webhook_target = ""  # where the calls really go, since nothing here has an https address
        self.webhook_answers: list[int] = []
        self._calling: asyncio.Task[None] | None = None

    # what people do

    def say(
        self,
        chat: int,
        text: str = "",
        *,
        user: User | None = None,
        thread: int | None = None,
        reply_to: int | None = None,
        album: str | None = None,
        file: FileIn | None = None,
        **fields: Any,
    ) -> int:
        """Write a message; gives its id.

        Args:
            fields: more of the message's JSON, laid over it; None takes a field away.
        """
        sender = user or User(chat if chat > 0 else 77)
        shown, message = self.world.write(chat, text, sender, thread=thread, reply_to=reply_to, album=album, file=file)
        message = {key: value for key, value in {**message, **fields}.items() if value is not None}
        self._push({"message": message})
        return shown.id

    def edit(self, chat: int, message_id: int, text: str, *, user: User | None = None) -> None:
        shown = self.world.messages[chat][message_id]
        shown.text, shown.entities = text, detected_entities(text)
        message = self.world.message_json(shown, user or User(chat if chat > 0 else 77))
        self._push({"edited_message": {**message, "edit_date": int(time.time())}})

    def upgrade(self, chat: int, new: int, *, user: User | None = None, told: bool = True) -> None:
        """Make a group a supergroup, which is told in both; message ids begin anew there.

        Args:
            told: whether the bot hears of it before it writes to the old group.
        """
        self.world.upgraded[chat] = new
        if told:
            self.say(chat, "", user=user, migrate_to_chat_id=new)
            self.say(new, "", user=user, migrate_from_chat_id=chat)

    def press(self, chat: int, message_id: int, label: str, *, user: User | None = None, data: str | None = None) -> str:
        """Press a button of the bot; gives the press's id. ``data`` stands in for the button's own."""
        shown = self.world.messages[chat][message_id]
        press_id = f"press-{next(self._press_ids)}"
        self.world.presses[press_id] = None
        query = {
            "id": press_id,
            "from": (user or User(chat if chat > 0 else 77)).json(),
            "message": self.world.message_json(shown, self.world.bot),
            "chat_instance": "1",
            "data": data if data is not None else button_data(shown, label),
        }
        self._push({"callback_query": query})
        return press_id

    def push(self, content: dict[str, Any], *, update_id: int | None = None) -> int:
        """Any update, also one that is not as documented."""
        return self._push(content, update_id=update_id)

    # what is seen

    def messages(self, chat: int) -> list[Shown]:
        """What the bot wrote in a chat, as it stands there now."""
        return [shown for shown in self.world.messages[chat].values() if shown.own]

    def texts(self, chat: int) -> list[str]:
        return [shown.text for shown in self.messages(chat)]

    def drafts(self, chat: int) -> list[str]:
        """The drafts that a private chat shows."""
        return [shown.text for shown in self.world.drafts[chat].values()]

    def arriving(self, method: str) -> bool:
        """Whether a call has come in and is not answered yet."""
        return self._arriving[method.lower()] > 0

    def called(self, method: str, *, chat: int | None = None) -> list[Call]:
        return [call for call in self.calls if call.method == method and (chat is None or call.chat == chat)]

    @property
    def waiting(self) -> int:
        """How many updates are not acknowledged yet."""
        return len(self.world.updates)

    async def until(self, condition: Callable[[], object], *, within: float = 10.0) -> None:
        """Wait until something holds; it is looked at after every call."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: bool(condition())), within)

    # what goes wrong

    def fail(self, method: str, fault: Fault, *, times: int = 1) -> None:
        self._faults.setdefault(method.lower(), []).extend([fault] * times)

    def heal(self) -> None:
        self._faults.clear()

    def interrupt_poll(self) -> None:
        """Another program polls: whoever waits is sent away."""
        self._poll += 1
        self._notify()

    # the protocol

    @property
    def app(self) -> ASGIApp:
        routes = [
            Route("/bot{token}/{method}", self._answer, methods=["GET", "POST"]),
            Route("/file/bot{token}/{path:path}", self._file),
            Route("/control/{what}", self._control, methods=["GET", "POST"]),
        ]
        return _Droppable(Starlette(routes=routes))

    async def _answer(self, request: Request) -> Response:
        method = request.path_params["method"]
        body, fault = Body({}, {}), Fault()
        try:
            body = await read_body(request)
            fault = self._fault(method, body)
            if request.path_params["token"] != self.token:
                raise Refused(401, "Unauthorized")
            if fault.slow_s:
                self._arriving[method.lower()] += 1
                await asyncio.sleep(fault.slow_s)
                self._arriving[method.lower()] -= 1
            if fault.code:
                raise Refused(fault.code, fault.description, fault.parameters)
            result = None if fault.drop == "before" else await self._result(method, body)
        except Refused as refusal:
            self._note(method, body, ok=False)
            answer = {"ok": False, "error_code": refusal.code, "description": refusal.description}
            return JSONResponse(answer | ({"parameters": refusal.parameters} if refusal.parameters else {}), refusal.code)
        self._note(method, body, ok=fault.drop != "before")
        return _Dropped() if fault.drop else JSONResponse({"ok": True, "result": result})

    async def _result(self, method: str, body: Body) -> Any:
        if method.lower() == "getupdates":
            return await self._updates(body)
        return self._methods.call(method, body)

    async def _updates(self, body: Body) -> list[dict[str, Any]]:
        """The long poll. A second poller sends the first away."""
        if self.world.webhook:
            raise Refused(
                409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
            )
        offset, limit, allowed = body.number("offset"), body.number("limit") or 100, body.nested("allowed_updates")
        self._poll += 1
        mine = self._poll
        self._notify()
        if offset is not None:
            while self.world.updates and self.world.updates[0]["update_id"] < offset:
                self.world.updates.popleft()
        try:
            async with self._changed:
                ready = self._changed.wait_for(lambda: self._wanted(allowed) or self._poll != mine or self._closing)
                await asyncio.wait_for(ready, body.number("timeout") or 0.001)
        except TimeoutError:
            return []
        if self._poll != mine:
            raise Refused(409, f"{_CONFLICT}terminated by other getUpdates request; make sure that only one bot instance is running")
        return list(self.world.updates)[:limit]

    def _wanted(self, allowed: list[str] | None) -> bool:
        """Forget the kinds that nobody asked for; whether others are there."""
        if allowed:
            self.world.updates = deque(update for update in self.world.updates if any(kind in update for kind in allowed))
        return bool(self.world.updates)

    async def _file(self, request: Request) -> Response:
        content, _ = self.world.files.get(request.path_params["path"], (b"", 0))
        fault = self._fault("download", Body({}, {}))
        if fault.drop:
            return _Dropped(b"some bytes, then nothing")
        if fault.code:
            return Response(status_code=fault.code)
        return Response(content, media_type="application/octet-stream", status_code=200 if content else 404)

    def _fault(self, method: str, body: Body) -> Fault:
        queued = self._faults.get(method.lower(), [])
        chat = body.number("chat_id") if body.text("chat_id").lstrip("-").isdigit() else None
        found = next((fault for fault in queued if fault.chat in (None, chat)), None)
        if found is None:
            return Fault()
        queued.remove(found)
        return found

    def _note(self, method: str, body: Body, *, ok: bool) -> None:
        self.calls.append(Call(method, body.values, body.files, time.time(), ok))
        self._notify()

    def _push(self, content: dict[str, Any], *, update_id: int | None = None) -> int:
        number = self.world.push(content, update_id=update_id)
        self._notify()
        if self.webhook_target and (self._calling is None or self._calling.done()):
            self._calling = asyncio.get_running_loop().create_task(self._call_webhook())
        return number

    async def _call_webhook(self) -> None:
        """Deliver what waits, in order; what is not answered with 200 goes out again."""
        async with httpx2.AsyncClient() as client:
            while self.world.updates and self.world.webhook:
                headers = {"X-Telegram-Bot-Api-Secret-Token": self.world.webhook_secret}
                answer = await client.post(self.webhook_target, json=self.world.updates[0], headers=headers)
                self.webhook_answers.append(answer.status_code)
                if answer.status_code == 200:
                    self.world.updates.popleft()
                else:
                    await asyncio.sleep(0.02)
                self._notify()

    def _notify(self) -> None:
        async def tell() -> None:
            async with self._changed:
                self._changed.notify_all()

        task = asyncio.get_running_loop().create_task(tell())
        _telling.add(task)
        task.add_done_callback(_telling.discard)

    def close(self) -> None:
        """Let the polls that wait end, and the calls."""
        self._closing = True
        if self._calling is not None:
            self._calling.cancel()
        self._notify()

    # people in another process

    async def _control(self, request: Request) -> Response:
        asked: dict[str, Any] = await request.json() if request.method == "POST" else dict(request.query_params)
        actions: dict[str, Callable[[dict[str, Any]], Any]] = {
            "say": lambda a: [self.say(int(each["chat_id"]), each["text"], thread=each.get("thread")) for each in a["messages"]],
            "press": lambda a: self.press(int(a["chat_id"]), int(a["message_id"]), a["label"]),
            "edit": lambda a: self.edit(int(a["chat_id"]), int(a["message_id"]), a["text"]),
            "messages": lambda a: self.messages(int(a["chat_id"])) if "chat_id" in a else self._all_messages(),
            "calls": lambda a: [_without_content(call) for call in self.calls[int(a.get("after", 0)) :]],
            "counts": lambda a: {"calls": len(self.calls), "waiting": self.waiting},
            "fail": lambda a: self.fail(a["method"], msgspec.convert(a["fault"], Fault), times=int(a.get("times", 1))),
            "limits": lambda a: setattr(self.world, "limits", msgspec.convert(a, FloodLimits)),
            "forget": lambda a: self.calls.clear(),
        }
        act = actions.get(request.path_params["what"])
        if act is None:
            return JSONResponse({"error": f"one of {', '.join(actions)}"}, 404)
        return Response(msgspec.json.encode(act(asked)), media_type="application/json")

    def _all_messages(self) -> dict[str, list[Shown]]:
        return {str(chat): self.messages(chat) for chat in list(self.world.messages)}


_telling: set[asyncio.Task[None]] = set()


def _without_content(call: Call) -> dict[str, Any]:
    return {"method": call.method, "values": call.values, "files": [name for name, _ in call.files.values()], "at": call.at, "ok": call.ok}


class _Dropped(Response):
    """Cuts the connection instead of answering, or after the first bytes of an answer."""

    def __init__(self, first: bytes = b"") -> None:
        super().__init__()
        self._first = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._first:
            headers = [(b"content-length", str(len(self._first) + 1000).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": self._first, "more_body": True})
            await asyncio.sleep(0.01)
        scope["transport"].abort()
        await asyncio.sleep(0.01)


class _Droppable:
    """Hands the connection down, so that it can be cut."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["transport"] = getattr(getattr(send, "__self__", None), "transport", None)
        await self._app(scope, receive, send)


@asynccontextmanager
async def serve_telegram(*, token: str = TOKEN, username: str = "pumice_bot") -> AsyncIterator[TelegramServer]:
    server = TelegramServer(token=token, username=username)
    async with serve(server.app) as server.url:
        try:
            yield server
        finally:
            server.close()
            while _telling:
                await asyncio.gather(*_telling)


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--token", default=TOKEN)
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    run(TelegramServer(token=chosen.token).app, chosen.port)


if __name__ == "__main__":
    main()
