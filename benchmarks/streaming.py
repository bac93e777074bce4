"""Streaming a long answer: the host's CPU time must grow with its length and no faster.

``python -m benchmarks.streaming``; an answer of 100 KB against one of 25 KB, in pieces of 16 characters, shown live in a chat.
"""

import time

from benchmarks.measure import process_cpu, report
from benchmarks.stage import Telegram, host, model_server, telegram_server
from benchmarks.telegram_load import configuration

SIZES = (25_000, 100_000)


def cost(size: int) -> float:
    """CPU seconds of the host for one answer."""
    text = ("word " * (size // 5))[:size]
    with (
        telegram_server() as telegram,
        model_server("openai", "--text", text) as model,
        host([line.replace("stream = false", "stream = true") for line in configuration(telegram.url, model, 0)]) as (process, _),
    ):
        telegram.until_polled()
        answer(telegram, size)
        before = process_cpu(process.pid)
        answer(telegram, size)
        return process_cpu(process.pid) - before


def answer(telegram: Telegram, size: int) -> None:
    """Say something and wait until the whole answer is in the chat."""
    ask = telegram.ask
    before = sum(len(message["text"]) for message in ask("messages", chat_id=1000) if message["own"])
    ask("say", messages=[{"chat_id": 1000, "text": "go on"}])
    while sum(len(message["text"]) for message in ask("messages", chat_id=1000) if message["own"]) < before + size * 0.98:
        time.sleep(0.1)
    time.sleep(0.5)


def main() -> None:
    short, long = (cost(size) for size in SIZES)
    report("streaming 100 KB over streaming 25 KB, CPU", f"{long / short:.1f}x ({long:.2f} s)", "about 4x")


if __name__ == "__main__":
    main()
