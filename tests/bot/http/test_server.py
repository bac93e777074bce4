"""Starting, being found, stopping."""

import asyncio
import socket
import stat
import time
from pathlib import Path

import httpx2
import pytest

from bot.clock import SystemClock
from bot.http.auth import load_or_create_token
from bot.http.client import HostClient
from bot.http.server import HttpServer
from bot.http.testing import MemoryHost
from features.contracts.chat import Address, ChannelHealth
from features.contracts.errors import OperatorMustAct, UserMustAct
from features.contracts.events import AgentStart

MAIN = Address("web", "main")


async def test_a_taken_port_is_named_with_the_setting(host: MemoryHost, data_dir: Path) -> None:
    """And nothing is left behind."""
    data_dir.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OperatorMustAct, match=rf"port {port} on 127.0.0.1 is in use. Set http.port"):
            async with HttpServer(host, token="x" * 20, data_dir=data_dir, clock=host.clock, port=port):
                pass
    assert list(data_dir.iterdir()) == []


async def test_an_address_of_another_machine_is_named_with_the_setting(host: MemoryHost, data_dir: Path) -> None:
    """A typing mistake in http.host."""
    with pytest.raises(OperatorMustAct, match=r"http\.host"):
        async with HttpServer(host, token="x" * 20, data_dir=data_dir, clock=host.clock, host="192.0.2.1", port=0):
            pass


async def test_an_open_stream_does_not_hold_the_host_up(host: MemoryHost, data_dir: Path) -> None:
    """Nor a connection that waits, nor one in the middle of a request."""
    token = load_or_create_token(data_dir, None)
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False) as client:
        async with HttpServer(host, token=token, data_dir=data_dir, clock=host.clock, port=0) as server:
            await client.get(f"{server.url}/api/chats")
            port = int(server.url.rpartition(":")[2])
            _, half = await asyncio.open_connection("127.0.0.1", port)
            half.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
            opened = await asyncio.gather(
                *(client.send(client.build_request("GET", f"{server.url}/api/chats/web:{i}/events"), stream=True) for i in range(3))
            )
            began = time.monotonic()
        took = time.monotonic() - began
        for response in opened:
            assert b"connected" in await response.aread()
        half.close()

    assert took < 1.0
    assert not (data_dir / "http.url").exists()


async def test_the_token_is_made_once_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It opens everything."""
    first = load_or_create_token(tmp_path / "data", None)
    file = tmp_path / "data" / "http.token"
    file.chmod(0o644)

    assert len(first) >= 40
    assert load_or_create_token(tmp_path / "data", "") == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_or_create_token(tmp_path / "data", "configured-token") == "configured-token"
    assert [path.name for path in file.parent.iterdir()] == ["http.token"]


@pytest.mark.parametrize("token", ["short", "has spaces in it", "ünicode-token", "a\nb-long-enough"])
def test_a_token_that_cannot_work_is_refused(tmp_path: Path, token: str) -> None:
    """At the start, and not at the first request."""
    with pytest.raises(OperatorMustAct, match=r"http\.token"):
        load_or_create_token(tmp_path, token)


def test_an_empty_or_broken_token_file_is_named(tmp_path: Path) -> None:
    """An empty token would open everything to everybody."""
    for content in (b"", b"\xff\xfe\xff\xfe\xff\xfe"):
        (tmp_path / "http.token").write_bytes(content)
        with pytest.raises(OperatorMustAct, match=r"http\.token"):
            load_or_create_token(tmp_path, None)


async def test_a_command_finds_the_host_by_its_data_directory(server: HttpServer, host: MemoryHost, data_dir: Path) -> None:
    """Whatever port it has."""
    assert stat.S_IMODE((data_dir / "http.url").stat().st_mode) == 0o600
    async with await HostClient.connect(data_dir) as client:
        posted = await client.post("/api/chats/web:main/messages", {"text": "hi"})

        assert client.url == server.url
        assert [row["id"] for row in await client.get("/api/chats/web:main/messages", limit="5")] == [posted["id"]]
        with pytest.raises(UserMustAct, match="offline/assistant"):
            await client.post("/api/chats/web:main/model", {"model": "x"})
        with pytest.raises(UserMustAct, match="no session"):
            await client.delete("/api/sessions/none")


async def test_without_a_host_a_command_says_how_to_start_one(tmp_path: Path) -> None:
    """None ever ran there, or it is gone without having tidied up."""
    with pytest.raises(OperatorMustAct, match="pumice run"):
        await HostClient.connect(tmp_path)
    (tmp_path / "http.token").write_text("some-token-here")
    with socket.create_server(("127.0.0.1", 0)) as freed:
        port = freed.getsockname()[1]
    (tmp_path / "http.url").write_text(f"http://127.0.0.1:{port}\nidentity\n")

    assert await HostClient.find(tmp_path) is None


async def test_the_token_is_not_shown_to_a_stranger_on_the_port(
    server: HttpServer, host: MemoryHost, data_dir: Path, tmp_path: Path
) -> None:
    """After a crash another program may have got it; only the host knows what stands in the file."""
    stale = tmp_path / "stale"
    stale.mkdir()
    (stale / "http.token").write_text("the-token-of-the-dead-host")
    (stale / "http.url").write_text(f"{server.url}\nsome-other-identity\n")

    assert await HostClient.find(stale) is None


async def test_a_token_that_the_host_does_not_take_is_said(server: HttpServer, data_dir: Path) -> None:
    """The configuration differs from the one that the host was started with."""
    async with await HostClient.connect(data_dir, token="another-token") as client:
        with pytest.raises(OperatorMustAct, match="token"):
            await client.get("/api/chats")
        with pytest.raises(OperatorMustAct, match="token"):
            await anext(client.events(MAIN))


async def test_a_client_goes_on_over_a_restart(host: MemoryHost, data_dir: Path) -> None:
    """It learns that it was away, and hears what comes then."""
    token = load_or_create_token(data_dir, None)
    async with HttpServer(host, token=token, data_dir=data_dir, clock=host.clock, port=0) as server:
        port = int(server.url.rpartition(":")[2])
        client = HostClient(server.url, token)
        events = client.events(MAIN)
        names = [(await anext(events)).name]
        host.publish(MAIN, AgentStart())
        names.append((await anext(events)).name)
    again = MemoryHost(SystemClock(), host.folder)
    async with client, HttpServer(again, token=token, data_dir=data_dir, clock=host.clock, port=port):
        names += [(await anext(events)).name, (await anext(events)).name]
        again.publish(MAIN, AgentStart())
        names.append((await anext(events)).name)
        await events.aclose()

    assert names == ["connected", "agent_start", "connected", "resync", "agent_start"]


async def test_health_tells_the_truth_to_everybody(stranger: httpx2.AsyncClient, host: MemoryHost) -> None:
    """Never "ok" while a channel is deaf."""
    good = await stranger.get("/healthz"), await stranger.get("/readyz")
    at = host.clock.now()
    host.channels["telegram"] = ChannelHealth(state="degraded", detail="Telegram does not answer.", last_event_at=at)
    bad = await stranger.get("/healthz"), await stranger.get("/readyz")
    host.channels["telegram"] = ChannelHealth(state="working")
    host.state = "starting"
    early = await stranger.get("/healthz"), await stranger.get("/readyz")

    assert [response.status_code for response in (*good, *bad, *early)] == [200, 200, 200, 503, 200, 503]
    assert [response.json()["status"] for response in (*good, *bad, *early)] == ["ok", "ok", "degraded", "degraded", "starting", "starting"]
    told = bad[1].json()["channels"]["telegram"]
    assert (told["state"], told["detail"]) == ("degraded", "Telegram does not answer.")
    assert told["last_event_at"].startswith(at.strftime("%Y-%m-%dT%H:%M:%S"))
    assert good[0].json()["version"] == "1.2.3"


async def test_the_page_is_served_whole_and_cached_by_its_content(stranger: httpx2.AsyncClient) -> None:
    """Everything that it loads is here."""
    page = await stranger.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name in ("app.js", "chat.js", "composer.js", "connection.js", "markdown.js", "style.css", "icon.svg"):
        response = await stranger.get(f"/static/{name}")
        again = await stranger.get(f"/static/{name}", headers={"if-none-match": response.headers["etag"]})
        assert (response.status_code, again.status_code) == (200, 304)
        assert b"://" not in response.content.replace(b"http://www.w3.org/2000/svg", b"").replace(b'"://"', b"") or name == "markdown.js"
    assert "style=" not in page.text
    assert "<script>" not in page.text
