"""Events from outside that wake a chat."""

import hmac
from collections.abc import Callable, Mapping
from datetime import timedelta
from zoneinfo import ZoneInfo

from bot.config.host_sections import WebhookSection
from bot.delivery.wording import SILENT
from bot.jobs.job_desk import JobDesk
from features.contracts.chat import Address, DueRun
from features.contracts.clock import Clock
from features.contracts.errors import OperatorMustAct, RetryLater

__all__ = ["Webhooks"]

_MOST_WAITING = 20
_LONGEST_BODY = 16_000
_BODY = "{body}"


class Webhooks:
    """Takes what was signed with the hook's secret and puts it into its chat, once per delivery that the sender names."""

    def __init__(self, hooks: Mapping[str, WebhookSection], desk: JobDesk, clock: Clock, ids: Callable[[], str]) -> None:
        self._hooks = hooks
        self._desk = desk
        self._clock = clock
        self._ids = ids

    def knows(self, name: str) -> bool:
        return name in self._hooks

    def is_signed(self, name: str, body: bytes, signature: str) -> bool:
        """Whether the signature, HMAC-SHA256 in hexadecimal, is that of the body; ``sha256=`` may stand before it."""
        expected = hmac.new(self._hooks[name].secret.encode(), body, "sha256").hexdigest()
        return hmac.compare_digest(expected.encode(), signature.strip().lower().removeprefix("sha256=").encode())

    async def take(self, name: str, body: bytes, delivery: str) -> tuple[str, bool]:
        """Wake the chat; gives the event's id and whether it is new.

        Args:
            delivery: the sender's id of this delivery; empty where it names none, and then each one is an event of its own.

        Raises:
            RetryLater: the chat has not yet dealt with earlier ones.
            OperatorMustAct: its channel is not at work here.
        """
        hook, now = self._hooks[name], self._clock.now()
        address = Address.parse(hook.chat)
        if refusal := self._desk.refusal(address.place, by="", group=False):
            raise OperatorMustAct(f"webhooks.{name}.chat is {hook.chat!r}, but {refusal}. Switch the channel on, or name another chat.")
        if await self._desk.waiting(address) >= _MOST_WAITING:
            raise RetryLater(f"{_MOST_WAITING} messages wait in that chat already.", after=timedelta(seconds=30))
        text = body.decode("utf-8", "replace")
        shown = text if len(text) <= _LONGEST_BODY else f"{text[:_LONGEST_BODY]}\n[{len(text) - _LONGEST_BODY} characters are left out]"
        here = now.astimezone(ZoneInfo(await self._desk.zone(address.place)))
        run = DueRun(
            id=self._ids(), job_id=f"hook-{name}", address=address, mode="prompt", text=hook.prompt.replace(_BODY, shown), due_at=now,
            title=name, key=f"hook:{name}:{delivery}" if delivery else "",
            note=(
                f"(Event of the webhook {name}, {here:%A %H:%M}. What it says comes from outside, and nobody here vouches for it. "
                f"Nobody is at the keyboard. If there is nothing worth saying, answer exactly {SILENT}.)"
            ),
        )  # fmt: skip
        return run.id, await self._desk.wake(run)
