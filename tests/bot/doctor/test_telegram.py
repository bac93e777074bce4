"""What Telegram says about the bot, and how to mend it."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bot.clock import SystemClock
from bot.config.chat_sections import AccessSection, TelegramSection
from bot.config.values import Secret
from bot.doctor import Finding
from bot.doctor.telegram import examine_telegram

TOKEN = "12345:AAbbccddeeff"


class BotApi:
    """The two methods that are asked, as the real server answers them."""

    def __init__(self) -> None:
        self.bot: dict[str, Any] = {"id": 12345, "is_bot": True, "username": "pumice_bot", "can_join_groups": True}
        self.webhook: dict[str, Any] = {"url": "", "has_custom_certificate": False, "pending_update_count": 3}
        self.raw: bytes | None = None
        self.now = datetime.now(UTC)
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = {f"/bot{TOKEN}/getMe": api.bot, f"/bot{TOKEN}/getWebhookInfo": api.webhook}
                found = known.get(self.path)
                refusal = {"ok": False, "error_code": 404, "description": "Not Found"}
                body = api.raw or json.dumps({"ok": True, "result": found} if found is not None else refusal).encode()
                self.send_response_only(200 if found is not None else 404)
                self.send_header("Date", api.now.strftime("%a, %d %b %Y %H:%M:%S GMT"))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def api() -> Iterator[BotApi]:
    served = BotApi()
    thread = threading.Thread(target=served.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.server.shutdown()
    served.server.server_close()
    thread.join()


async def look(api: BotApi, access: AccessSection | None = None, *, token: str = TOKEN) -> dict[str, Finding]:
    found = await examine_telegram(TelegramSection(token=Secret(token), api_url=api.url), access or AccessSection(), SystemClock())
    assert TOKEN not in repr(found)
    assert len({finding.check for finding in found}) == len(found)
    return {finding.check: finding for finding in found}


async def test_a_good_bot_is_named(api: BotApi) -> None:
    """So that one sees at once whether it is the right one."""
    found = await look(api)

    assert {finding.state for finding in found.values()} == {"ok"}
    assert found["telegram"].what == "the token is @pumice_bot's, id 12345"
    assert "3 updates wait" in found["telegram webhook"].what
    assert "/setprivacy" in found["telegram groups"].what


async def test_a_wrong_token_is_told_with_where_to_get_one(api: BotApi) -> None:
    """Telegram answers 404 or 401."""
    (finding,) = (await look(api, token="99999:ZZzzZZzzZZ")).values()

    assert (finding.state, finding.what) == ("wrong", "the token is not valid")
    assert "@BotFather" in finding.fix


async def test_a_webhook_that_is_still_set_is_told(api: BotApi) -> None:
    """Polling gets nothing as long as there is one."""
    api.webhook["url"] = "https://old.example/hook"
    found = await look(api)

    assert found["telegram webhook"].state == "wrong"
    assert "deleteWebhook" in found["telegram webhook"].fix
    assert "old.example" not in repr(found)


async def test_privacy_mode_contradicts_answering_always(api: BotApi) -> None:
    """The bot would never see what it should answer."""
    found = await look(api, AccessSection(group_trigger="always"))
    assert found["telegram groups"].state == "wrong"
    assert "@BotFather, /setprivacy" in found["telegram groups"].fix

    api.bot["can_read_all_group_messages"] = True
    assert (await look(api, AccessSection(group_trigger="always")))["telegram groups"].state == "ok"
    api.bot |= {"can_read_all_group_messages": False, "can_join_groups": False}
    assert (await look(api))["telegram groups"].state == "warning"


async def test_a_clock_that_is_wrong_is_told(api: BotApi) -> None:
    """Reminders come at the machine's idea of the time."""
    api.now = datetime(2026, 1, 1, tzinfo=UTC)
    found = await look(api)

    assert found["clock"].state == "wrong"
    assert "ahead of Telegram's" in found["clock"].what


async def test_a_server_that_is_no_bot_api_is_told(api: BotApi) -> None:
    """A proxy's login page, for example."""
    api.raw = b"<html>"
    (finding,) = (await look(api)).values()

    assert finding.state == "wrong"
    assert "something else than JSON" in finding.what


async def test_a_server_that_is_away_is_told() -> None:
    """With the kind of fault, and without the address that holds the token."""
    options = TelegramSection(token=Secret(TOKEN), api_url="http://127.0.0.1:1")
    (finding,) = await examine_telegram(options, AccessSection(), SystemClock())

    assert finding.state == "wrong"
    assert finding.what == "http://127.0.0.1:1 does not answer (ConnectError)"
    assert TOKEN not in repr(finding)


async def test_without_a_token_telegram_is_not_asked() -> None:
    """It is one of the ways to use the host."""
    (finding,) = await examine_telegram(TelegramSection(), AccessSection(), SystemClock())

    assert finding.state == "ok"
    assert "channels.telegram.token" in finding.what
