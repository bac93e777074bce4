"""SIGKILL at random instants: nothing is lost, nothing is done twice, and what is said again says so."""

import asyncio
import os
import random
import re
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.servers.anthropic import AnthropicServer
from tests.servers.script import Call, Reply
from tests.servers.telegram import TOKEN, TelegramServer, serve_telegram

ROOT = Path(__file__).parents[2]
CHATS = range(1, 31)
MESSAGES = 300
KILLS = 14
SEED = 20260105
WORD = re.compile(r"word-\d+")
REPEATED = "you may have this already"


class SlowAnthropic(AnthropicServer):
    """Some answers take long enough to be shown as drafts; some go through a tool first. Each names the words that it answers."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(respond=self._reply, record=False)
        self._chance = chance

    async def events(self, reply: Reply, body: dict[str, Any]) -> AsyncIterator[bytes]:
        pause = 0.2 if len(reply.text) > 200 else 0.0
        async for event in super().events(reply, body):
            yield event
            if pause and b"text_delta" in event:
                await asyncio.sleep(pause)

    def _reply(self, body: dict[str, Any]) -> Reply:
        spoken = [index for index, each in enumerate(body["messages"]) if each["role"] == "assistant" and "tool_use" not in str(each)]
        words = WORD.findall(str(body["messages"][spoken[-1] + 1 if spoken else 0 :]))
        used_tool = "tool_result" in str(body["messages"][-1])
        delay = self._chance.choice([0.0, 0.05, 0.3])
        if not used_tool and self._chance.random() < 0.25:
            return Reply(calls=[Call(name="ls", arguments={})], delay_s=delay)
        long = " and more" * 40 if self._chance.random() < 0.25 else ""
        return Reply(text=f"Answer to {' '.join(words)}.{long}", delay_s=delay, chunk=40)


class Child:
    """The host as its users start it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        log = (self._folder / "host.log").open("ab")
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "bot.cli", "run", "--config", str(self._folder / "pumice.toml"),
                cwd=ROOT, env={"PATH": os.environ["PATH"], "HOME": str(self._folder)}, stdout=log, stderr=log,
            )  # fmt: skip
        finally:
            log.close()

    async def kill(self) -> None:
        assert self._process is not None
        assert self._process.returncode is None, "the host had ended by itself; see host.log"
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        await asyncio.wait_for(self._process.wait(), 12)


def configure(folder: Path, telegram: TelegramServer, model: AnthropicServer) -> None:
    allowed = ", ".join(f'"telegram:{chat}"' for chat in CHATS)
    (folder / "pumice.toml").write_text(f'''
[access]
owners = ["telegram:1"]
allow = [{allowed}]
[http]
port = 0
[models]
default = "anthropic/claude-sonnet-5-5"
[providers.anthropic]
api_key = "{model.api_key}"
base_url = "{model.url}"
[channels.telegram]
token = "{TOKEN}"
api_url = "{telegram.url}"
max_sends_per_second = 0
[channels.web]
enabled = false
''')


@pytest.mark.timeout(180)
async def test_nothing_is_lost_and_nothing_is_said_twice_unmarked(tmp_path: Path) -> None:
    """Three hundred messages in thirty chats, and a host that is killed again and again."""
    chance = random.Random(SEED)
    async with serve_telegram() as telegram, SlowAnthropic(random.Random(SEED + 1)) as model:
        configure(tmp_path, telegram, model)
        child = Child(tmp_path)
        words = iter(range(MESSAGES))
        await child.start()
        for number in range(KILLS):
            telegram.world.has_drafts = number % 2 == 0  # what is shown meanwhile passes by itself, or is a message that stays
            await speak_for(telegram, words, chance, seconds=1.2 + chance.random() * 2.0, share=MESSAGES // KILLS + 1)
            await child.kill()
            await child.start()
        assert next(words, None) is None
        await until_answered(tmp_path)
        await child.stop()

        check_books(tmp_path)
        check_what_is_shown(tmp_path, telegram)


async def speak_for(telegram: TelegramServer, words: Any, chance: random.Random, *, seconds: float, share: int) -> None:
    """People write, at random instants and in random chats."""
    until = time.monotonic() + seconds
    for moment in sorted(chance.random() * seconds for _ in range(share)):
        await asyncio.sleep(max(0.0, until - seconds + moment - time.monotonic()))
        if (word := next(words, None)) is not None:
            telegram.say(chance.choice(CHATS), f"word-{word}")
    await asyncio.sleep(max(0.0, until - time.monotonic()))


def rows(folder: Path, sql: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{folder}/data/state.db?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


async def until_answered(folder: Path) -> None:
    async with asyncio.timeout(60):
        while True:
            [(accepted,)] = rows(folder, "SELECT count(*) FROM inbox")
            [(open_,)] = rows(folder, "SELECT count(*) FROM inbox WHERE state NOT IN ('answered', 'skipped')")
            [(unsent,)] = rows(folder, "SELECT count(*) FROM outbox WHERE state <> 'sent'")
            if accepted == MESSAGES and not open_ and not unsent:
                return
            await asyncio.sleep(0.1)


def check_books(folder: Path) -> None:
    """Every message was consumed by exactly one run, and every run has exactly one answer that lists its messages."""
    said = Counter(
        word for (entry,) in rows(folder, "SELECT json FROM entries") if '"role":"user"' in entry for word in WORD.findall(entry)
    )
    assert said == Counter({f"word-{word}": 1 for word in range(MESSAGES)})
    assert rows(folder, "SELECT count(*) FROM inbox WHERE run_id IS NULL") == [(0,)]
    answers = Counter(answer for (listed,) in rows(folder, "SELECT answers FROM outbox") for answer in msgspec.json.decode(listed))
    assert answers == Counter({message_id: 1 for (message_id,) in rows(folder, "SELECT id FROM inbox")})


def check_what_is_shown(folder: Path, telegram: TelegramServer) -> None:
    """Every answer is on show once, or again only where that is said; what stands beside it is a torso that the marked one follows."""
    for chat in CHATS:
        shown = telegram.texts(chat)
        owed = [
            msgspec.json.decode(message)["text"]
            for (message,) in rows(folder, f"SELECT message FROM outbox WHERE address = 'telegram:{chat}' ORDER BY position")
        ]
        marked = [text for text in shown if REPEATED in text]
        plain = [text for text in shown if REPEATED not in text]
        for text in owed:
            assert sum(text == each for each in plain) <= 1, f"{chat}: twice and unmarked: {text[:60]}"
            assert any(text in each for each in shown), f"{chat}: never shown: {text[:60]}"
        for text in plain:
            if text not in owed:
                assert set(WORD.findall(text)) <= set(WORD.findall(" ".join(marked))), f"{chat}: a torso without a word: {text[:80]}"
