"""200 Telegram chats and 200 Slack conversations at once, 5 messages each, streamed answers of 2,000 characters from a model without delay.

``python -m benchmarks.chat_load``; the loopback services enforce the platforms' published limits and count what they refuse. Those limits
set the time that is unavoidable: Telegram takes 30 messages a second from a bot, Slack 300 posts a minute from an app.
"""

import argparse
import asyncio
import time
from collections import Counter

from benchmarks.measure import report
from benchmarks.stage import host, model_server
from tests.servers.openai import OpenAIServer
from tests.servers.slack import SlackServer, serve_slack
from tests.servers.slack_world import APP_TOKEN, BOT_TOKEN
from tests.servers.slack_world import Limits as SlackLimits
from tests.servers.telegram import TOKEN, FloodLimits, TelegramServer, serve_telegram

ANSWER = 2000
SLACK_PER_MINUTE = {
    "chat.postMessage": 300,
    "chat.update": 50,
    "chat.startStream": 20,
    "chat.appendStream": 100,
    "chat.stopStream": 20,
    "assistant.threads.setStatus": 100,
}
PATIENCE_S = 900.0


def configuration(telegram: TelegramServer, slack: SlackServer, model: str) -> list[str]:
    return [
        "[models]",
        'default = "fake/model"',
        "[providers.fake]",
        'kind = "openai-compatible"',
        f'base_url = "{model}/v1"',
        f'api_key = "{OpenAIServer.api_key}"',
        "[access]",
        'mode = "open"',
        "confirm_open = true",
        "[channels.telegram]",
        f'token = "{TOKEN}"',
        f'api_url = "{telegram.url}"',
        "[channels.slack]",
        f'bot_token = "{BOT_TOKEN}"',
        f'app_token = "{APP_TOKEN}"',
        f'api_url = "{slack.url}/api/"',
    ]


class Talk:
    """Everybody writes the next message once the last was answered in full."""

    def __init__(self, telegram: TelegramServer, slack: SlackServer, *, chats: int, rounds: int) -> None:
        self._telegram = telegram
        self._slack = slack
        self._rounds = rounds
        self._telegram_chats = range(1000, 1000 + chats)
        self._slack_chats = [f"D{number}" for number in range(chats)]
        self._said: Counter[object] = Counter()
        self.finished: dict[object, float] = {}
        self.out_of_order = 0

    async def run(self) -> None:
        began = time.monotonic()
        while len(self.finished) < len(self._telegram_chats) + len(self._slack_chats):
            if time.monotonic() - began > PATIENCE_S:
                raise TimeoutError(f"{len(self.finished)} chats have finished")
            for chat in (*self._telegram_chats, *self._slack_chats):
                self._look(chat, began)
            await asyncio.sleep(0.2)  # looking costs, and what is measured shares this machine

    def _look(self, chat: int | str, began: float) -> None:
        if chat in self.finished:
            return
        texts = self._telegram.texts(chat) if isinstance(chat, int) else self._slack.texts(chat)
        complete = [text for text in texts if len(text) >= ANSWER - 1]
        if len(complete) < self._said[chat]:
            return
        if self._said[chat] == self._rounds:
            self.finished[chat] = time.monotonic() - began
            return
        self._said[chat] += 1
        if isinstance(chat, int):
            self._telegram.say(chat, f"message {self._said[chat]}")
        else:
            self._slack.say(chat, f"message {self._said[chat]}", user=f"U{chat}")

    def slowest(self, channel: type) -> float:
        return max(at for chat, at in self.finished.items() if isinstance(chat, channel))


async def measure(chats: int, rounds: int) -> None:
    text = ("word " * (ANSWER // 5))[:ANSWER].rstrip() + "."
    with model_server("openai", "--text", text) as model:
        async with serve_telegram() as telegram, serve_slack() as slack:
            telegram.world.limits = FloodLimits(chat_per_second=1, group_per_minute=20, bot_per_second=30)
            slack.world.limits = SlackLimits(conversation_per_second=1, per_minute=SLACK_PER_MINUTE)
            slack.world.people |= {f"UD{number}": f"Person {number}" for number in range(chats)}
            with host(configuration(telegram, slack, model)):
                await telegram.until(lambda: telegram.called("getUpdates"), within=30)
                await slack.until(lambda: slack.connections, within=30)
                telegram.say(999, "wake up")  # the first call of all imports the SDK
                await telegram.until(lambda: telegram.texts(999), within=30)
                slack.acknowledged_after.clear()
                talk = Talk(telegram, slack, chats=chats, rounds=rounds)
                await talk.run()
                tell(talk, telegram, slack, chats * rounds)


def tell(talk: Talk, telegram: TelegramServer, slack: SlackServer, messages: int) -> None:
    for name, channel, unavoidable in (("Telegram", int, messages / 30), ("Slack", str, max(1.0, (messages - 1) // 300 * 60.0))):
        slowest = talk.slowest(channel)
        report(f"{name}: the slowest chat over what the limits make unavoidable", f"{slowest / unavoidable:.2f}x ({slowest:.0f} s)", "1.5x")
    refused = Counter(call.method for call in telegram.calls if not call.ok)
    report("Telegram: calls refused", str(sum(refused.values())), f"0; {dict(refused)}")
    limited = Counter(call.method for call in slack.calls if not call.ok)
    report("Slack: calls refused", str(sum(limited.values())), f"0; {dict(limited)}")
    report("Slack: slowest acknowledgement", f"{max(slack.acknowledged_after) * 1000:.0f} ms", "300 ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    asyncio.run(measure(chosen.chats, chosen.rounds))


if __name__ == "__main__":
    main()
