"""The whole host, from a platform through the disk to the model and back."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from bot.clock import SystemClock
from bot.host import Host
from bot.http.client import HostClient
from bot.ids import new_id
from bot.testing import LoopbackChannel
from features.contracts.errors import OperatorMustAct
from tests.e2e.rig import configured, running, with_anthropic, with_telegram
from tests.servers.anthropic import AnthropicServer
from tests.servers.script import Reply
from tests.servers.telegram import Fault, FileIn, User, serve_telegram

OWNER = 1001


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - what is watched sets no event
            await asyncio.sleep(0.01)


async def until_answered(client: HostClient, message_id: str) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while True:
            messages = await client.get("/api/chats/web:main/messages")
            for message in messages:
                if message_id in message["answers"]:
                    assert isinstance(message, dict)
                    return message
            await asyncio.sleep(0.02)


async def test_a_newcomer_chats_without_any_configuration(tmp_path: Path) -> None:
    """No account, no key: the offline assistant answers in the web chat."""
    async with running(configured(tmp_path)) as (_, client):
        posted = await client.post("/api/chats/web:main/messages", {"text": "hello"})
        answer = await until_answered(client, posted["id"])

        assert answer["role"] == "assistant"
        assert answer["text"]
        assert [message["role"] for message in await client.get("/api/chats/web:main/messages")] == ["user", "assistant"]


async def test_tools_work_in_the_chats_own_folder(tmp_path: Path) -> None:
    """An owner's command runs in the workspace, with nothing of the host's environment."""
    async with running(configured(tmp_path)) as (host, client):
        posted = await client.post("/api/chats/web:main/messages", {"text": "run: pwd"})
        answer = await until_answered(client, posted["id"])

        assert str(host.config.host.data_dir / "workspaces" / "web-main") in answer["text"]


async def test_a_command_over_the_api_is_answered_like_a_message(tmp_path: Path) -> None:
    """The answer names the command's id."""
    async with running(configured(tmp_path)) as (_, client):
        posted = await client.post("/api/chats/web:main/messages", {"text": "/status"})

        assert "offline/assistant" in (await until_answered(client, posted["id"]))["text"]


async def test_health_tells_the_truth(tmp_path: Path) -> None:
    """It is not ok while a channel is deaf."""
    loop = LoopbackChannel(clock=SystemClock())
    async with running(configured(tmp_path), channels=["web", loop]) as (host, _), httpx2.AsyncClient() as http:
        await until(lambda: loop.state == "working" and host.channels["web"].health().working)
        assert (await http.get(f"{host.url}/readyz")).status_code == 200
        loop.state = "degraded"
        ready, alive = await http.get(f"{host.url}/readyz"), await http.get(f"{host.url}/healthz")

        assert (ready.status_code, alive.status_code) == (503, 200)
        assert alive.json()["status"] != "ok"
        assert "loop" in str(alive.json())


async def test_telegram_end_to_end(tmp_path: Path) -> None:
    """An unstreamed answer takes at most two calls: typing and sending."""
    async with serve_telegram() as telegram:
        telegram.say(OWNER, "hello")
        async with running(configured(tmp_path, with_telegram(telegram, more="[chat]\nstream = false"))):
            await telegram.until(lambda: telegram.texts(OWNER))
            calls = [call.method.lower() for call in telegram.calls if call.chat == OWNER]

    assert len(telegram.texts(OWNER)) == 1
    assert len(calls) <= 2, calls
    assert telegram.waiting == 0


async def test_a_stranger_gets_a_code_and_the_owner_hears_of_it(tmp_path: Path) -> None:
    """And once approved, an answer."""
    async with serve_telegram() as telegram, AnthropicServer([Reply(text="Hello Eve.")]) as model:
        text = with_telegram(telegram) + with_anthropic(model)
        async with running(configured(tmp_path, text)) as (_, client):
            telegram.say(6666, "let me in", user=User(6666, "Eve"))
            await telegram.until(lambda: telegram.texts(6666) and telegram.texts(OWNER))
            assert "Eve" in telegram.texts(OWNER)[0]
            assert await client.get("/api/chats") == []
            code = next(word for word in telegram.texts(6666)[0].replace("`", " ").split() if len(word) == 8 and word.isupper())
            telegram.say(OWNER, f"/pair {code}")
            await telegram.until(lambda: len(telegram.texts(OWNER)) == 2)
            await telegram.until(lambda: any("You may talk to me now" in text for text in telegram.texts(6666)))
            telegram.say(6666, "hello", user=User(6666, "Eve"))

            await telegram.until(lambda: "Hello Eve." in telegram.texts(6666))


async def test_a_chat_that_blocks_the_bot_does_not_hold_up_others_and_owners_hear_of_it(tmp_path: Path) -> None:
    """One refusal, one word, and life goes on."""
    async with serve_telegram() as telegram:
        telegram.fail("sendMessage", Fault(code=403, description="Forbidden: bot was blocked by the user", chat=1002), times=3)
        async with running(configured(tmp_path, with_telegram(telegram, more="[chat]\nstream = false"))) as (_, client):
            telegram.say(1002, "hello")
            await telegram.until(lambda: any("1002" in text for text in telegram.texts(OWNER)))
            telegram.say(OWNER, "hello")
            await telegram.until(lambda: len(telegram.texts(OWNER)) == 2)
            log = await client.get("/api/chats/telegram:1002/messages")

    assert [message["role"] for message in log] == ["user", "assistant"]


async def test_a_parked_run_is_answered_by_the_next_host(tmp_path: Path) -> None:
    """The host is told to stop while the model is silent; nothing is lost and nothing said twice."""
    async with serve_telegram() as telegram:
        async with AnthropicServer([Reply(text="half", fault="stall")]) as model:
            telegram.say(OWNER, "hello")
            async with running(configured(tmp_path, with_telegram(telegram) + with_anthropic(model))):
                await until(lambda: model.requests)
                begun = time.monotonic()
            assert time.monotonic() - begun < 9
        async with AnthropicServer([Reply(text="half of it is done")]) as model:
            async with running(configured(tmp_path, with_telegram(telegram) + with_anthropic(model))):
                await telegram.until(lambda: "half of it is done" in telegram.texts(OWNER))
            said = [message["content"] for message in model.request["messages"]]

    assert len(said) == 1
    assert "hello" in str(said[0])
    assert telegram.texts(OWNER) == ["half of it is done"]


async def test_an_idle_host_stops_within_a_second(tmp_path: Path) -> None:
    """Nothing to wait for, nothing waited for."""
    async with serve_telegram() as telegram, running(configured(tmp_path, with_telegram(telegram))):
        await telegram.until(lambda: telegram.called("getUpdates"))
        begun = time.monotonic()
    assert time.monotonic() - begun < 1.5  # the loopback servers' own end included


async def test_a_second_host_on_the_same_data_refuses(tmp_path: Path) -> None:
    """Two would answer everything twice."""
    config = configured(tmp_path)
    async with running(config):
        with pytest.raises(OperatorMustAct, match="already runs"):
            await Host(config, clock=SystemClock(), ids=new_id, random=Random(1)).__aenter__()


async def test_a_damaged_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Never overwritten, never started over."""
    config = configured(tmp_path)
    config.host.data_dir.mkdir()
    config.database_path.write_bytes(b"this was a database once" * 1000)
    with pytest.raises(OperatorMustAct):
        await Host(config, clock=SystemClock(), ids=new_id, random=Random(1)).__aenter__()

    assert config.database_path.read_bytes() == b"this was a database once" * 1000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[models]\ndefault = "offline/nobody"', "models.default"),
        ('[http]\ntoken = "short"', "http.token"),
    ],
)
async def test_what_cannot_work_is_said_at_the_start(tmp_path: Path, text: str, said: str) -> None:
    """One line that names the key; nothing is left running."""
    with pytest.raises(OperatorMustAct, match=said):
        async with running(configured(tmp_path, text)):
            pass


async def test_a_start_that_fails_late_owes_what_it_took_up(tmp_path: Path) -> None:
    """The port is taken: a run that was begun for an instant is parked again, and nobody reads that it was stopped."""
    loop = LoopbackChannel("telegram", clock=SystemClock())
    access = '[access]\nowners = ["telegram:1"]\n'
    async with running(configured(tmp_path, access), channels=["web", loop]) as (host, _):
        host.conversations.leave()
        loop.chat("1").says("hello")
        await until(lambda: loop.handed)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
    async with running(configured(elsewhere), channels=["web"]) as (other, _):
        port = other.url.rpartition(":")[2]
        config = configured(tmp_path, access, PUMICE_HTTP__PORT=port)
        with pytest.raises(OperatorMustAct, match="in use"):
            await Host(config, clock=SystemClock(), ids=new_id, random=Random(1), channels=[loop]).__aenter__()
    async with running(configured(tmp_path, access), channels=["web", loop]):
        answer = await loop.chat("1").answer()

    assert "Stopped" not in answer.text
    assert len([shown for shown in loop.chat("1").shown if shown.final]) == 1


async def test_a_start_that_is_broken_off_marks_nothing_that_arrived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had begun to send is sent to the end, so that the next start does not say it again."""
    async with serve_telegram() as telegram, AnthropicServer(respond=lambda body: Reply(text="words", delay_s=0.3)) as model:
        config = configured(tmp_path, with_telegram(telegram, more="[chat]\nstream = false") + with_anthropic(model))
        async with running(config) as (host, _):
            host.conversations.leave()
            telegram.say(OWNER, "hello")
            await until(lambda: not telegram.waiting)
        telegram.fail("sendMessage", Fault(slow_s=0.3))

        async def slow(self: Host, *arguments: object) -> None:
            await until(lambda: telegram.arriving("sendMessage"))
            raise OperatorMustAct("the port is in use")

        with monkeypatch.context() as patch:
            patch.setattr(Host, "_serve_http", slow)
            with pytest.raises(OperatorMustAct, match="in use"):
                await Host(config, clock=SystemClock(), ids=new_id, random=Random(1)).__aenter__()
        async with running(config):
            await telegram.until(lambda: telegram.texts(OWNER))
            await asyncio.sleep(0.2)

    assert telegram.texts(OWNER) == ["words"]


async def test_the_data_directory_is_private(tmp_path: Path) -> None:
    """Tokens and every chat are in it."""
    async with running(configured(tmp_path)) as (host, _):
        data = host.config.host.data_dir

        assert data.stat().st_mode & 0o077 == 0
        assert (data / "http.token").stat().st_mode & 0o077 == 0
        assert (data / "state.db").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("configured_how", ["off", "command"])
async def test_a_voice_message_is_read_or_said_to_be_unread(tmp_path: Path, configured_how: str) -> None:
    """Silence would look like a bot that does not listen; the file stays for later either way."""
    more = "[voice]\ncommand = ['cat']" if configured_how == "command" else ""
    async with (
        serve_telegram() as telegram,
        AnthropicServer(respond=lambda body: Reply(text=str(body["messages"][-1]["content"])[-900:])) as model,
    ):
        config = configured(tmp_path, with_telegram(telegram, more=more) + with_anthropic(model))
        async with running(config):
            telegram.say(OWNER, file=FileIn("voice.ogg", b"OggS spoken words", kind="voice"))
            await telegram.until(lambda: any("voice-" in text for text in telegram.texts(OWNER)))

    told = " ".join(telegram.texts(OWNER))
    assert ("spoken words" in told) == (configured_how == "command")
    assert ("no transcription is set up" in told) == (configured_how == "off")
    assert [path.read_bytes() for path in (config.host.data_dir / "workspaces" / f"telegram-{OWNER}" / "attachments").iterdir()] == [
        b"OggS spoken words"
    ]
