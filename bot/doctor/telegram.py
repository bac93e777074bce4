"""Asks Telegram what it thinks of the bot."""

import logging
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from bot.config.chat_sections import AccessSection, TelegramSection
from bot.doctor.finding import Finding, good, warning, wrong
from features.contracts.clock import Clock

if TYPE_CHECKING:
    import httpx2

__all__ = ["examine_telegram"]

_PATIENCE_S = 10.0
_MOST_CLOCK_ERROR_S = 60.0


class _Unanswered(Exception):
    """The service could not be asked; the finding says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.what)
        self.finding = finding


async def examine_telegram(options: TelegramSection, access: AccessSection, clock: Clock) -> list[Finding]:
    """Findings about the bot's account. No address is ever shown or logged: the token is in it."""
    import httpx2

    if options.token is None:
        return [good("telegram", "off; it comes on with channels.telegram.token")]
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)
    api = _Api(options, clock)
    async with httpx2.AsyncClient(timeout=_PATIENCE_S) as client:
        try:
            bot = await api.call(client, "getMe")
            webhook = await api.call(client, "getWebhookInfo")
        except _Unanswered as unanswered:
            return [unanswered.finding]
    findings = [_bot(bot), _webhook(options, webhook), _groups(bot, access)]
    if api.clock_error_s is not None and abs(api.clock_error_s) > _MOST_CLOCK_ERROR_S:
        off = f"this machine's clock is {abs(api.clock_error_s):.0f} s {'ahead of' if api.clock_error_s > 0 else 'behind'} Telegram's"
        findings.append(wrong("clock", off, "Set it, best with NTP"))
    return findings


class _Api:
    def __init__(self, options: TelegramSection, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self.clock_error_s: float | None = None

    async def call(self, client: "httpx2.AsyncClient", method: str) -> dict[str, Any]:
        import httpx2

        url = f"{self._options.api_url.rstrip('/')}/bot{self._options.token}/{method}"
        where = self._options.api_url
        try:
            response = await client.get(url)
            answer = response.json()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _Unanswered(
                wrong(
                    "telegram", f"{where} does not answer ({type(error).__name__})", "Look at the network and at channels.telegram.api_url"
                )
            ) from None
        except ValueError:
            raise _Unanswered(
                wrong("telegram", f"{where} answers with something else than JSON", "Correct channels.telegram.api_url")
            ) from None
        self._compare_clocks(response.headers.get("date"))
        if isinstance(answer, dict) and answer.get("ok") is True and isinstance(answer.get("result"), dict):
            result: dict[str, Any] = answer["result"]
            return result
        if response.status_code in (401, 404):
            raise _Unanswered(wrong("telegram", "the token is not valid", "Take it from @BotFather again; it may have been revoked"))
        raise _Unanswered(wrong("telegram", f"{method} was refused with status {response.status_code}", "Try again in a while"))

    def _compare_clocks(self, date: str | None) -> None:
        try:
            theirs: datetime | None = parsedate_to_datetime(date) if date else None
        except ValueError:
            return
        if theirs is not None and theirs.tzinfo is not None:
            self.clock_error_s = (self._clock.now() - theirs).total_seconds()


def _bot(bot: dict[str, Any]) -> Finding:
    return good("telegram", f"the token is @{bot.get('username', '?')}'s, id {bot.get('id', '?')}")


def _webhook(options: TelegramSection, info: dict[str, Any]) -> Finding:
    if options.mode == "webhook":
        if told := info.get("last_error_message"):
            return warning("telegram webhook", f"Telegram's last call failed: {told}", "See that http.public_url leads to this host")
        return good("telegram webhook", "the host sets it when it starts" if not info.get("url") else "set")
    if info.get("url"):
        return wrong(
            "telegram webhook",
            "a webhook is set, so polling gets nothing",
            "Stop the program that uses it, then call deleteWebhook with this bot's token",
        )
    waiting = info.get("pending_update_count", 0)
    return good("telegram webhook", f"none is set; {waiting} updates wait")


def _groups(bot: dict[str, Any], access: AccessSection) -> Finding:
    if bot.get("can_join_groups") is False:
        return warning("telegram groups", "the bot may not be added to groups", "If it should: @BotFather, /setjoingroups")
    if bot.get("can_read_all_group_messages"):
        return good("telegram groups", "privacy mode is off: the bot sees every message of its groups")
    how = "@BotFather, /setprivacy, Disable; then take the bot out of the group and add it again"
    if access.group_trigger == "always":
        return wrong("telegram groups", "privacy mode is on, so group_trigger 'always' sees mentions only", f"Switch it off: {how}")
    return good("telegram groups", f"privacy mode is on: in groups the bot sees mentions and commands. To switch it off: {how}")
