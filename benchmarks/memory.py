"""What a loaded chat that has nothing to do weighs.

``python -m benchmarks.memory``; 500 chats over HTTP, the offline model, resident memory before and after.
"""

import json
import time
import urllib.request

from benchmarks.measure import report, resident_mb
from benchmarks.stage import host

CHATS = 500


def main() -> None:
    with host([]) as (process, data):
        while not (data / "http.url").exists():
            time.sleep(0.05)
        url, token = (data / "http.url").read_text().split()[0], (data / "http.token").read_text().strip()
        talk(url, token, range(50))  # what the first chats load is the host's, not theirs
        settle(url, token, 50)
        before = resident_mb(process.pid)
        talk(url, token, range(50, 50 + CHATS))
        settle(url, token, 50 + CHATS)
        each = (resident_mb(process.pid) - before) * 1000 / CHATS
        report("resident for each idle loaded chat", f"{each:.0f} KB", "at most 60 KB")


def talk(url: str, token: str, chats: range) -> None:
    for chat in chats:
        call(url, token, f"/api/chats/web:chat{chat}/messages", {"text": "hello"})


def settle(url: str, token: str, chats: int) -> None:
    """Until every chat was answered."""
    while True:
        answered = sum(
            1
            for chat in range(chats)
            if any(row["role"] == "assistant" for row in call(url, token, f"/api/chats/web:chat{chat}/messages", None))
        )
        if answered == chats:
            return
        time.sleep(0.2)


def call(url: str, token: str, path: str, body: object) -> list[dict[str, str]]:
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(
        url + path, data=data, headers={"authorization": f"Bearer {token}", "content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        found = json.load(response)
    return found if isinstance(found, list) else []


if __name__ == "__main__":
    main()
