"""The bolt app: what Slack sends is verified, mapped, stored, and only then acknowledged."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from channels.slack.api import Me, SlackApi
from channels.slack.events import Incoming, from_command, from_event, from_press
from channels.slack.intake import Intake
from channels.slack.options import SlackOptions
from features.contracts.clock import Clock

__all__ = ["Receiver"]

_log = logging.getLogger("pumice.slack")
_quiet = logging.getLogger("pumice.slack.bolt")
_quiet.setLevel(logging.ERROR)


class Receiver:
    """Answers requests, over a socket or over HTTP.

    Args:
        commands: the commands that there are now.
        heard: called for every request that Slack itself has sent.
        error_ids: gives ids for defects.
    """

    def __init__(
        self,
        options: SlackOptions,
        api: SlackApi,
        me: Me,
        intake: Intake,
        *,
        clock: Clock,
        commands: Callable[[], Iterable[str]],
        heard: Callable[[], None],
        error_ids: Callable[[], str],
    ) -> None:
        self._me = me
        self._intake = intake
        self._clock = clock
        self._commands = commands
        self._heard = heard
        self._error_ids = error_ids

        async def authorize() -> AuthorizeResult:
            """bolt would ask auth.test again for every event."""
            return AuthorizeResult(enterprise_id=None, team_id=me.team_id, bot_user_id=me.user_id, bot_id=me.bot_id)

        async def take(body: dict[str, Any]) -> BoltResponse:
            return await self._take(body)

        self._app = AsyncApp(
            client=api.client,
            authorize=authorize,
            signing_secret=options.signing_secret or "none: requests come through a socket",
            request_verification_enabled=options.mode == "http",
            process_before_response=True,
            ignoring_self_events_enabled=True,
            logger=_quiet,
        )
        self._app.middleware(take)

    async def over_socket(self, payload: Mapping[str, Any], headers: Mapping[str, str]) -> BoltResponse:
        request = AsyncBoltRequest(mode="socket_mode", body=dict(payload), headers=dict(headers))
        return await self._app.async_dispatch(request)

    async def over_http(self, body: str, headers: Mapping[str, str]) -> BoltResponse:
        """Answers 401 where the signature is wrong or older than five minutes."""
        return await self._app.async_dispatch(AsyncBoltRequest(mode="http", body=body, headers=dict(headers)))

    async def _take(self, body: dict[str, Any]) -> BoltResponse:
        """In the place of bolt's listeners, which it would call only after it has acknowledged."""
        self._heard()
        incoming = self._mapped(body)
        if incoming is not None:
            try:
                await self._intake.take(incoming)
            except Exception as error:
                facts = {"error_id": self._error_ids(), "error": type(error).__name__}
                _log.exception("slack event not stored; Slack sends it again", extra={"facts": facts})
                return BoltResponse(status=503, body="")
        return BoltResponse(status=200, body="")

    def _mapped(self, body: dict[str, Any]) -> Incoming | None:
        """One that cannot be read is left out: Slack would send it again, and it would be no better."""
        try:
            match body.get("type"):
                case "event_callback":
                    return from_event(body, self._me)
                case "block_actions":
                    return from_press(body, self._me, self._clock.now())
                case _ if body.get("command"):
                    return from_command(body, self._me, self._clock.now(), self._commands())
                case _:
                    return None
        except Exception:
            _log.exception("slack event not understood", extra={"facts": {"error_id": self._error_ids(), "event_id": body.get("event_id")}})
            return None
