"""One Telegram chat: what the host adds to the model's own time, and the Bot API calls of an answer that is not streamed.

``python -m benchmarks.telegram_turn``
"""

import time

from benchmarks.measure import percentile, report
from benchmarks.stage import Telegram, host, model_server, telegram_server
from benchmarks.telegram_load import configuration

TURNS = 30
MODEL_S = 0.2


def turn(telegram: Telegram, text: str) -> float:
    """Milliseconds from a message to its answer, by Telegram's own clock."""
    seen = len(telegram.ask("calls"))
    began = time.time()
    telegram.ask("say", messages=[{"chat_id": 1000, "text": text}])
    while True:
        calls = telegram.ask("calls", after=seen)
        sent = [call for call in calls if call["method"] == "sendMessage"]
        if sent:
            return (float(sent[0]["at"]) - began) * 1000
        time.sleep(0.02)


def main() -> None:
    with (
        telegram_server() as telegram,
        model_server("openai", "--delay", str(MODEL_S)) as model,
        host(configuration(telegram.url, model, 0)),
    ):
        telegram.until_polled()
        turn(telegram, "the first call imports the SDK")
        before = len(telegram.ask("calls"))
        spent = [turn(telegram, f"message {number}") for number in range(TURNS)]
        calls = [call["method"] for call in telegram.ask("calls", after=before) if call["method"] != "getUpdates"]
        report("Telegram, one chat: host above the model's time, median", f"{percentile(spent, 0.5) - MODEL_S * 1000:.0f} ms", "<= 20 ms")
        report("Telegram, one chat: Bot API calls for each answer", f"{len(calls) / TURNS:.1f}", "at most 2")


if __name__ == "__main__":
    main()
