"""Scheduled jobs, and the events from outside that wake a chat."""

from typing import Annotated, Any, Literal

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from bot.http.answers import ApiError, answer, read_json
from bot.http.chats_api import chat_address
from bot.http.host_view import HostView
from bot.http.operations import Operation, Parameter

__all__ = ["HOOKS", "JobsApi"]

HOOKS = "/hooks/"
"""Where events come in; what they bring is signed, so that they need no token."""

_Action = Literal["run", "pause", "resume", "remove"]
_ACTS: tuple[tuple[_Action, str], ...] = (
    ("run", "Run a job now."), ("pause", "Let a job rest."), ("resume", "Let a job that rests run again."),
)  # fmt: skip
_SMALL_BODY = 50_000
_EVENT_BYTES = 1_000_000
_LONGEST_DELIVERY = 200
_SIGNATURE = "x-pumice-signature"
_DELIVERIES = ("x-pumice-delivery", "webhook-id", "x-github-delivery", "idempotency-key")


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """``text`` is what stands after ``/schedule``: ``every day at 9 sum up my inbox``."""

    chat: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]


class Done(msgspec.Struct, frozen=True):
    text: str


class Woken(msgspec.Struct, frozen=True, kw_only=True):
    """``duplicate`` says that this delivery had been taken before."""

    id: str
    duplicate: bool


class JobsApi:
    def __init__(self, host: HostView) -> None:
        self._host = host

    def operations(self) -> list[Operation]:
        of_chat = Parameter(name="chat", description="Of this chat alone: its address.")
        signature = Parameter(name="X-Pumice-Signature", description="HMAC-SHA256 of the body in hexadecimal.", place="header")
        delivery = Parameter(name="X-Pumice-Delivery", description="The sender's id of this delivery; it is taken once.", place="header")
        acts = [
            Operation(
                method="POST", path=f"/api/jobs/{{id}}/{action}", summary=summary, handler=self._acting(action), gives=Done,
                errors=(400, 404),
            )
            for action, summary in _ACTS
        ]  # fmt: skip
        return [
            Operation(
                method="GET", path="/api/jobs", summary="Scheduled jobs.", handler=self.jobs, gives=list[dict[str, Any]],
                parameters=(of_chat,), errors=(400, 404),
            ),
            Operation(
                method="POST", path="/api/jobs", summary="Make a job, as /schedule does.", handler=self.make, takes=NewJob,
                gives=dict[str, Any], status=201, errors=(400, 404),
            ),
            Operation(
                method="GET", path="/api/jobs/{id}", summary="A job with its next and its last runs.", handler=self.job,
                gives=dict[str, Any], errors=(404,),
            ),
            *acts,
            Operation(
                method="DELETE", path="/api/jobs/{id}", summary="Take a job away.", handler=self._acting("remove"), gives=Done,
                errors=(400, 404),
            ),
            Operation(
                method="POST", path=f"{HOOKS}{{name}}", summary="Wake a chat; signed with the hook's secret.", handler=self.hook,
                gives=Woken, status=202, public=True, parameters=(signature, delivery), errors=(401, 404, 413, 503),
            ),
        ]  # fmt: skip

    async def jobs(self, request: Request) -> Response:
        told = request.query_params.get("chat")
        return answer(await self._host.jobs(chat_address(self._host, told) if told else None))

    async def job(self, request: Request) -> Response:
        return answer(await self._known(request))

    async def make(self, request: Request) -> Response:
        new = await read_json(request, NewJob, limit=_SMALL_BODY)
        return answer(await self._host.make_job(chat_address(self._host, new.chat), new.text), 201)

    def _acting(self, action: _Action) -> Any:
        async def act(request: Request) -> Response:
            job = await self._known(request)
            return answer(Done(await self._host.act_on_job(job["id"], action)))

        return act

    async def _known(self, request: Request) -> dict[str, Any]:
        job = await self._host.job(request.path_params["id"])
        if job is None:
            raise ApiError(404, f"There is no job {request.path_params['id']!r}. /api/jobs lists them.")
        return job

    async def hook(self, request: Request) -> Response:
        name = request.path_params["name"]
        if not self._host.knows_hook(name):
            raise ApiError(404, f"There is no webhook {name!r}. Add [webhooks.{name}] to the configuration, or correct the address.")
        body = await _event(request)
        if not self._host.is_signed(name, body, request.headers.get(_SIGNATURE, "")):
            raise ApiError(
                401, "The signature does not fit. Send the HMAC-SHA256 of the body with the hook's secret as X-Pumice-Signature."
            )
        delivery = next((request.headers[header] for header in _DELIVERIES if request.headers.get(header)), "")
        event_id, new = await self._host.wake(name, body, delivery[:_LONGEST_DELIVERY])
        return answer(Woken(id=event_id, duplicate=not new), 202)


async def _event(request: Request) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _EVENT_BYTES:
                raise ApiError(413, f"An event has at most {_EVENT_BYTES // 1_000_000} MB.")
    except ClientDisconnect:
        raise ApiError(400, "The request ended before its body was complete.") from None
    return bytes(body)
