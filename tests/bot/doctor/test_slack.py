"""What Slack says about the app, and how to mend it."""

from typing import Any

import pytest

from bot.config.chat_sections import SlackSection
from bot.config.values import Secret
from bot.doctor.slack import examine_slack
from tests.servers.slack import Fault, serve_slack
from tests.servers.slack_world import APP_TOKEN, BOT_TOKEN


def section(url: str, **options: Any) -> SlackSection:
    given: dict[str, Any] = {"bot_token": Secret(BOT_TOKEN), "app_token": Secret(APP_TOKEN), "api_url": f"{url}/api/"}
    return SlackSection(**{**given, **options})


async def states(options: SlackSection, public_url: str = "") -> list[tuple[str, str, str]]:
    return [(each.check, each.state, f"{each.what}. {each.fix}") for each in await examine_slack(options, public_url)]


async def test_a_good_app_is_called_so() -> None:
    """Token, scopes, socket."""
    async with serve_slack() as slack:
        assert [state for _, state, _ in await states(section(slack.url))] == ["ok", "ok", "ok"]


async def test_a_missing_scope_is_named_with_what_it_is_for() -> None:
    """Private channels stay silent without it, and nobody knows why."""
    async with serve_slack() as slack:
        slack.world.scopes.discard("groups:history")
        _, (check, state, text), _ = await states(section(slack.url))

    assert (check, state) == ("slack scopes", "wrong")
    assert "groups:history (to read the threads of private channels it is in)" in text


@pytest.mark.parametrize(
    ("method", "fault", "words"),
    [
        ("auth.test", Fault(error="token_revoked"), "token_revoked"),
        ("auth.test", Fault(drop="before"), "does not answer"),
        ("apps.connections.open", Fault(error="missing_scope"), "connections:write"),
    ],
)
async def test_what_is_wrong_is_said_without_a_secret(method: str, fault: Fault, words: str) -> None:
    """With the fix."""
    async with serve_slack() as slack:
        slack.fail(method, fault)
        found = await states(section(slack.url))

    assert any(state == "wrong" and words in text for _, state, text in found)
    assert BOT_TOKEN not in str(found)


async def test_http_mode_says_where_slack_calls_and_off_is_off() -> None:
    """Without a public address it cannot know."""
    async with serve_slack() as slack:
        options = section(slack.url, mode="http")
        assert "https://x.y/slack/events" in (await states(options, "https://x.y/"))[-1][2]
        assert (await states(options))[-1][1] == "warning"
    assert (await states(SlackSection()))[0][1] == "ok"
