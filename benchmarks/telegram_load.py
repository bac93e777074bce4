"""200 Telegram chats, 5 messages each one after another, and a model that takes 0.5 s.

``python -m benchmarks.telegram_load``; ``--paced`` keeps the published limits instead and says how far they are used.
"""

import argparse
import time
from collections import Counter

from benchmarks.measure import process_cpu, report, resident_mb
from benchmarks.stage import TOKEN, Telegram, host, model_server, telegram_server
from tests.servers.openai import OpenAIServer

CHATS = 200
ROUNDS = 5


def configuration(telegram: str, model: str, pace: int) -> list[str]:
    owners = ", ".join(f'"telegram:{1000 + chat}"' for chat in range(-1, CHATS))
    return [
        "[models]",
        'default = "fake/model"',
        "[providers.fake]",
        'kind = "openai-compatible"',
        f'base_url = "{model}/v1"',
        f'api_key = "{OpenAIServer.api_key}"',
        "[access]",
        f"owners = [{owners}]",
        "[chat]",
        "stream = false",
        "[channels.telegram]",
        f'token = "{TOKEN}"',
        f'api_url = "{telegram}"',
        f"max_sends_per_second = {pace}",
    ]


def converse(telegram: Telegram) -> float:
    """Every chat writes its next message once the last was answered; gives the seconds until all were."""
    sent: Counter[int] = Counter()
    answered: Counter[int] = Counter()
    chats = range(1000, 1000 + CHATS)
    seen = len(telegram.ask("calls"))
    began = time.monotonic()
    while True:
        ready = [chat for chat in chats if sent[chat] == answered[chat] < ROUNDS]
        if ready:
            telegram.ask("say", messages=[{"chat_id": chat, "text": f"message {sent[chat] + 1} of chat {chat}"} for chat in ready])
            sent.update(ready)
        elif all(answered[chat] >= ROUNDS for chat in chats):
            return time.monotonic() - began
        time.sleep(0.02)
        calls = telegram.ask("calls", after=seen)
        seen += len(calls)
        answered.update(int(call["values"]["chat_id"]) for call in calls if call["method"] == "sendMessage" and call["ok"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paced", action="store_true")
    paced = parser.parse_args().paced
    with (
        telegram_server() as telegram,
        model_server("openai", "--delay", "0.5") as model,
        host(configuration(telegram.url, model, 30 if paced else 0)) as (process, _),
    ):
        telegram.until_polled()
        telegram.ask("say", messages=[{"chat_id": 999, "text": "wake up"}])  # the first call of all imports the SDK
        time.sleep(3.0)
        before = process_cpu(process.pid)
        seconds = converse(telegram)
        total = CHATS * ROUNDS
        if paced:
            answers = [call for call in telegram.ask("calls") if call["method"] == "sendMessage" and int(call["values"]["chat_id"]) >= 1000]
            sent = [float(call["at"]) for call in answers]
            rate = (len(sent) - 1) / (sent[-1] - sent[0])
            report("200 chats x 5, at the published pace: of 30 messages/s, first to last", f"{rate / 30:.0%}", "95 %")
        else:
            report("200 chats x 5, a model of 0.5 s", f"{total / seconds:.0f} messages/s", "at least 100")
        report("host CPU for each message", f"{(process_cpu(process.pid) - before) / total * 1000:.1f} ms", "-")
        report("resident with 200 chats loaded", f"{resident_mb(process.pid):.0f} MB", "-")


if __name__ == "__main__":
    main()
