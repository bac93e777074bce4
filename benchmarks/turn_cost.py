"""What the host adds to a turn, durable writes included: a turn through the whole host less the same call through the bare SDK.

``python -m benchmarks.turn_cost``; both talk to the same loopback server, with 0, 600 and 2,000 messages of history.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import percentile, report
from benchmarks.stage import model_server
from bot.clock import SystemClock
from bot.config import load_config
from bot.host import Host
from bot.ids import new_id
from bot.testing import LoopbackChannel
from features.contracts.clock import unix_ms
from features.contracts.messages import AssistantMessage, TextBlock, Usage, UserMessage
from features.sessions import DatabaseSessionStore, SessionManager
from tests.servers.anthropic import AnthropicServer
from tests.servers.openai import OpenAIServer
from tests.servers.script import Reply

KEYS = {"anthropic": AnthropicServer.api_key, "openai": OpenAIServer.api_key}
TURNS = 60
HISTORY = (0, 600, 2000)
QUESTION = "What is it about, in a sentence of a few words only? " * 2
ANSWER = "It is about this and that, and a little about something else as well. " * 2


async def timed(call: Callable[[], Awaitable[object]]) -> list[float]:
    """Milliseconds of each of ``TURNS`` calls, after a few that warm up."""
    for _ in range(5):
        await call()
    spent = []
    for _ in range(TURNS):
        began = time.perf_counter()
        await call()
        spent.append((time.perf_counter() - began) * 1000)
    return spent


async def bare_anthropic(url: str, body: dict[str, Any]) -> list[float]:
    import anthropic

    async with anthropic.AsyncAnthropic(api_key=KEYS["anthropic"], base_url=url, max_retries=0) as client:

        async def call() -> None:
            async with client.messages.stream(**body) as stream:
                await stream.get_final_message()

        return await timed(call)


async def bare_openai(url: str, body: dict[str, Any]) -> list[float]:
    import openai

    async with openai.AsyncOpenAI(api_key=KEYS["openai"], base_url=f"{url}/v1", max_retries=0) as client:

        async def call() -> None:
            async for _ in await client.chat.completions.create(**body, stream=True):
                pass

        return await timed(call)


async def host_request(kind: str, size: int) -> dict[str, Any]:
    """The body that the host sends after so many messages; the bare SDK is given the same to send."""
    make = AnthropicServer if kind == "anthropic" else OpenAIServer
    async with make(respond=lambda body: Reply(text=ANSWER)) as server:
        await through_host(kind, server.url, size, turns=0)
        return {key: value for key, value in server.request.items() if key != "stream"}


async def through_host(kind: str, url: str, size: int, *, turns: int = TURNS) -> tuple[list[float], float]:
    """Milliseconds of each of ``turns`` turns, and the commits that a turn took; one more turn comes first."""
    with tempfile.TemporaryDirectory(prefix="pumice-bench-") as folder:
        file = Path(folder) / "pumice.toml"
        model, base = ("claude-sonnet-5-5", url) if kind == "anthropic" else ("gpt-4.1", f"{url}/v1")
        file.write_text(
            f'[host]\ndata_dir = "data"\n[http]\nport = 0\n[processes]\nharden = false\n[models]\ndefault = "fake/{model}"\n'
            f'[providers.fake]\nkind = "{kind}"\nbase_url = "{base}"\napi_key = "{KEYS[kind]}"\n[access]\nowners = ["telegram:1"]\n'
        )
        clock = SystemClock()
        channel = LoopbackChannel("telegram", clock=clock)
        config = load_config(file, {}, Path(folder))
        async with Host(config, clock=clock, ids=new_id, random=random.SystemRandom(), channels=[channel]) as host:
            chat = channel.chat("1")
            await fill(host, str(chat.address), size)

            async def turn() -> None:
                chat.says(QUESTION)
                await chat.answer()

            await turn()
            if not turns:
                return [], 0.0
            commits = host.database.commits
            spent = await timed(turn)
            await asyncio.sleep(0.1)
            return spent, (host.database.commits - commits) / (TURNS + 5)


async def fill(host: Host, scope: str, size: int) -> None:
    """Give the chat a session with a past."""
    clock = SystemClock()
    manager = await SessionManager.create(DatabaseSessionStore(host.database), scope, clock=clock, ids=new_id, cwd="/")
    entries = []
    for index in range(size):
        at = unix_ms(clock.now())
        entries.append(
            manager.new_message_entry(
                AssistantMessage(
                    content=[TextBlock(text=ANSWER)], api="x", provider="x", model="x", usage=Usage(), stop_reason="stop", timestamp=at
                )
                if index % 2
                else UserMessage(content=QUESTION, timestamp=at)
            )
        )
    if entries:
        await manager.append(entries)
    assert len(manager.messages) == size, f"the history holds {len(manager.messages)} messages and not {size}"


async def main() -> None:
    for kind, bare in (("anthropic", bare_anthropic), ("openai", bare_openai)):
        with model_server(kind, "--text", ANSWER) as url:
            for size in HISTORY:
                base = await bare(url, await host_request(kind, size))
                turns, commits = await through_host(kind, url, size)
                middle = percentile(turns, 0.5) - percentile(base, 0.5)
                worst = percentile(turns, 0.95) - percentile(base, 0.5)
                ratio = percentile(turns, 0.5) / percentile(base, 0.5)
                report(
                    f"{kind}, {size} messages before: bare {percentile(base, 0.5):.1f} ms, host adds",
                    f"{middle:.1f} ms ({ratio:.2f}x)",
                    "<= 5 ms",
                )
                report(f"{kind}, {size} messages before: at the 95th percentile", f"{worst:.1f} ms", "<= 10 ms")
                report(f"{kind}, {size} messages before: commits for each turn", f"{commits:.1f}", "at most 4")


if __name__ == "__main__":
    asyncio.run(main())
