"""A whole host with its loopback services, each a process of its own, as the benchmarks drive it."""

import contextlib
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import Popen
from typing import Any

from benchmarks.measure import free_port, running, wait_for

__all__ = ["TOKEN", "Telegram", "host", "model_server", "telegram_server"]

TOKEN = "4242:loopback-token"


class Telegram:
    """The loopback Telegram, through its control endpoint."""

    def __init__(self, url: str, process: Popen[bytes]) -> None:
        self.url = url
        self.process = process

    def ask(self, what: str, **values: Any) -> Any:
        request = urllib.request.Request(
            f"{self.url}/control/{what}", data=json.dumps(values).encode(), headers={"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def until_polled(self, *, seconds: float = 20.0) -> None:
        """Until the host has asked for messages once."""
        end = time.monotonic() + seconds
        while not any(call["method"] == "getUpdates" for call in self.ask("calls")):
            if time.monotonic() > end:
                raise TimeoutError("the host does not poll")
            time.sleep(0.01)


@contextlib.contextmanager
def telegram_server() -> Iterator[Telegram]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with running([sys.executable, "-m", "tests.servers.telegram", "--port", str(port), "--token", TOKEN]) as process:
        wait_for(url)
        yield Telegram(url, process)


@contextlib.contextmanager
def model_server(kind: str, *arguments: str) -> Iterator[str]:
    """The loopback ``anthropic`` or ``openai``; gives its address."""
    port = free_port()
    with running([sys.executable, "-m", f"tests.servers.{kind}", "--port", str(port), *arguments]):
        url = f"http://127.0.0.1:{port}"
        wait_for(url)
        yield url


@contextlib.contextmanager
def host(configuration: Sequence[str], *, data: Path | None = None) -> Iterator[tuple[Popen[bytes], Path]]:
    """``pumice run`` with this configuration; gives the process and its data directory, which goes with it unless given."""
    with contextlib.ExitStack() as stack:
        folder = data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pumice-bench-")))
        file = folder / "pumice.toml"
        lines = ["[host]", 'data_dir = "data"', 'log_level = "warning"', "[http]", f"port = {free_port()}", *configuration]
        file.write_text("\n".join(lines) + "\n")
        yield stack.enter_context(running([sys.executable, "-m", "bot.cli", "run", "--config", str(file)])), folder / "data"
