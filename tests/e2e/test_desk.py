"""The host as its page and its commands see it."""

import asyncio
import base64
from pathlib import Path

from bot.clock import SystemClock
from bot.testing import LoopbackChannel
from features.contracts.chat import Address
from tests.e2e.rig import configured, running
from tests.e2e.test_host import until, until_answered

PIXEL = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
).decode()


async def test_chats_sessions_and_usage_are_listed(tmp_path: Path) -> None:
    """What happened is there to be looked at."""
    async with running(configured(tmp_path)) as (_, client):
        posted = await client.post("/api/chats/web:main/messages", {"text": "hello"})
        await until_answered(client, posted["id"])
        chats = await client.get("/api/chats")
        sessions = await client.get("/api/sessions")
        usage = await client.get("/api/usage")

        assert [chat["address"] for chat in chats] == ["web:main"]
        assert "hello" in str(chats)
        assert "web:main" in str(sessions)
        assert "offline/assistant" in str(usage)


async def test_a_chat_can_be_read_page_by_page(tmp_path: Path) -> None:
    """The newest first asked for, each page in order, nothing twice."""
    async with running(configured(tmp_path)) as (host, client):
        for number in range(6):
            posted = await client.post("/api/chats/web:main/messages", {"text": f"hello {number}"})
            await until_answered(client, posted["id"])
        newest = await host.desk.messages(Address("web", "main"), before=None, limit=5)
        older = await host.desk.messages(Address("web", "main"), before=newest[0].id, limit=100)

        ids = [row.id for row in (*older, *newest)]
        assert ids == sorted(ids)
        assert len(ids) == len(set(ids)) == 12


async def test_what_is_uploaded_is_in_the_workspace(tmp_path: Path) -> None:
    """A picture of the web page's visitor is a file like any other."""
    async with running(configured(tmp_path)) as (host, client):
        image = {"data": PIXEL, "mimeType": "image/png"}
        posted = await client.post("/api/chats/web:main/messages", {"text": "look", "images": [image]})
        await until_answered(client, posted["id"])
        attachments = list((host.config.host.data_dir / "workspaces" / "web-main" / "attachments").iterdir())

        assert len(attachments) == 1
        assert attachments[0].read_bytes() == base64.b64decode(PIXEL)


async def test_a_message_over_the_api_is_answered_in_the_chat_it_names(tmp_path: Path) -> None:
    """Spoken as the owner, delivered by that chat's channel, and heard by whoever watches."""
    loop = LoopbackChannel("telegram", clock=SystemClock())
    async with running(configured(tmp_path), channels=["web", loop]) as (host, client):
        seen: list[str] = []

        async def watch() -> None:
            async for event in client.events(Address("telegram", "5")):
                seen.append(event.name)  # noqa: PERF401 - it never ends

        watching = asyncio.ensure_future(watch())
        await until(lambda: host.events.listeners)
        await client.post("/api/chats/telegram:5/messages", {"text": "hello"})
        await loop.chat("5").answer()
        await until(lambda: "delivered" in seen)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

        assert "agent_settled" in seen
        assert seen.count("received") <= 1


async def test_a_session_is_deleted_wherever_it_is_at_work(tmp_path: Path) -> None:
    """The chat goes on with a fresh one."""
    async with running(configured(tmp_path)) as (host, client):
        posted = await client.post("/api/chats/web:main/messages", {"text": "hello"})
        await until_answered(client, posted["id"])
        [summary] = await host.desk.sessions(None)
        assert (await host.desk.session(summary.id)) is not None
        assert await host.desk.delete_session(summary.id)
        assert not await host.desk.delete_session(summary.id)
        posted = await client.post("/api/chats/web:main/messages", {"text": "hello again"})
        await until_answered(client, posted["id"])

        [fresh] = await host.desk.sessions(None)
        assert fresh.id != summary.id
