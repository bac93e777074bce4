"""What an owner sees and changes beside the chats and sessions: usage, access, commands."""

from datetime import date, timedelta

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bot.access import AuditRecord
from bot.http.answers import ApiError, answer, read_json
from bot.http.host_view import AccessOverview, HostView, UsageLine
from bot.http.operations import Operation, Parameter
from bot.http.requests import Approval, Revocation, asked_number
from bot.http.sessions_api import OF_CHAT, asked_chat
from features.contracts.chat import ChatCommand
from features.contracts.clock import Clock

__all__ = ["OwnerApi"]

_SMALL_BODY = 10_000
_USAGE_DAYS = 30
_MOST_RECORDS = 5000


class Approved(msgspec.Struct, frozen=True):
    text: str


class OwnerApi:
    def __init__(self, host: HostView, clock: Clock) -> None:
        self._host = host
        self._clock = clock

    def operations(self) -> list[Operation]:
        since = Parameter(name="since", description="First day, YYYY-MM-DD; 30 days ago unless said.")
        limit = Parameter(name="limit", description=f"How many at most, 1 to {_MOST_RECORDS}; 100 unless said.", kind="integer")
        return [
            Operation(
                method="GET", path="/api/usage", summary="Tokens and US dollars by place, day and model.", handler=self.usage,
                gives=list[UsageLine], parameters=(OF_CHAT, since), errors=(400, 404),
            ),
            Operation(
                method="GET", path="/api/commands", summary="The commands of a chat.", handler=self.commands, gives=list[ChatCommand],
            ),
            Operation(
                method="GET", path="/api/access", summary="Who may talk, and who asks to.", handler=self.access, gives=AccessOverview,
            ),
            Operation(
                method="GET", path="/api/access/log", summary="Who was refused, admitted or revoked, the latest first.",
                handler=self.access_log, gives=list[AuditRecord], parameters=(limit,), errors=(400,),
            ),
            Operation(
                method="POST", path="/api/access/approve", summary="Admit whoever got a pairing code.", handler=self.approve,
                takes=Approval, gives=Approved, errors=(400,),
            ),
            Operation(
                method="POST", path="/api/access/revoke", summary="Take an admission back.", handler=self.revoke,
                takes=Revocation, status=204, errors=(400, 404),
            ),
        ]  # fmt: skip

    async def usage(self, request: Request) -> Response:
        told = request.query_params.get("since")
        try:
            since = date.fromisoformat(told) if told else self._clock.now().date() - timedelta(days=_USAGE_DAYS)
        except ValueError:
            raise ApiError(400, f"since is {told!r}; write a day as YYYY-MM-DD.") from None
        chat = asked_chat(self._host, request)
        return answer(await self._host.usage(chat.place if chat else None, since))

    async def commands(self, request: Request) -> Response:
        return answer(self._host.commands())

    async def access(self, request: Request) -> Response:
        return answer(await self._host.access())

    async def access_log(self, request: Request) -> Response:
        return answer(await self._host.access_log(asked_number(request, "limit", default=100, most=_MOST_RECORDS)))

    async def approve(self, request: Request) -> Response:
        approval = await read_json(request, Approval, limit=_SMALL_BODY)
        return answer(Approved(await self._host.approve(approval.code, owner=approval.owner)))

    async def revoke(self, request: Request) -> Response:
        revocation = await read_json(request, Revocation, limit=_SMALL_BODY)
        if not await self._host.revoke(revocation.id):
            raise ApiError(404, f"{revocation.id!r} was not admitted by pairing. Who is in the configuration is taken out there.")
        return Response(status_code=204)
