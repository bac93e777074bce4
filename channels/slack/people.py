"""People's names, which Slack's events do not tell."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from channels.slack.api import Flooded, SlackApi, SlackRefusal, SlackUnreachable
from features.contracts.clock import Clock

__all__ = ["People"]

_KEPT = 5000
_FRESH_S = 3600.0
_UNKNOWN_FRESH_S = 60.0
_PATIENCE_S = 0.1  # the event that waits for it is not acknowledged yet


class People:
    """Remembers names for an hour. A name that cannot be had in time is the person's id."""

    def __init__(self, api: SlackApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._names: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def names(self, users: Iterable[str]) -> Mapping[str, str]:
        wanted = set(users)
        tasks = {user: self._ask(user) for user in wanted if self._known(user) is None}
        if tasks:
            await asyncio.wait(tasks.values(), timeout=_PATIENCE_S)
        return {user: self._known(user) or user for user in wanted}

    async def close(self) -> None:
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def _known(self, user: str) -> str | None:
        name, until = self._names.get(user, ("", 0.0))
        return name if until > self._clock.monotonic() else None

    def _ask(self, user: str) -> "asyncio.Task[None]":
        if user not in self._asking:
            self._asking[user] = asyncio.get_running_loop().create_task(self._look_up(user))
            self._asking[user].add_done_callback(lambda _: self._asking.pop(user, None))
        return self._asking[user]

    async def _look_up(self, user: str) -> None:
        name, fresh = user, _UNKNOWN_FRESH_S
        try:
            told = (await self._api.call("users.info", form=True, user=user)).get("user", {})
            profile = told.get("profile", {})
            name = profile.get("display_name") or profile.get("real_name") or told.get("real_name") or told.get("name") or user
            fresh = _FRESH_S
        except Flooded as flood:
            fresh = flood.seconds
        except (SlackRefusal, SlackUnreachable):
            pass
        self._names[user] = (" ".join(str(name).split()), self._clock.monotonic() + fresh)
        self._names.move_to_end(user)
        if len(self._names) > _KEPT:
            self._names.popitem(last=False)
