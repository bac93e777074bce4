"""The whole host in a Slack workspace."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.rig import configured, running, with_anthropic
from tests.servers.anthropic import AnthropicServer
from tests.servers.script import Reply
from tests.servers.slack import SlackServer, serve_slack
from tests.servers.slack_world import APP_TOKEN, BOT_TOKEN


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with serve_slack() as server:
        yield server


def with_slack(slack: SlackServer) -> str:
    return f'''
[access]
owners = ["slack:T1/U1ANN"]
groups = ["slack:T1/C1"]
[channels.slack]
bot_token = "{BOT_TOKEN}"
app_token = "{APP_TOKEN}"
api_url = "{slack.url}/api/"
'''


async def test_a_direct_message_a_command_and_a_question_with_buttons(slack: SlackServer, tmp_path: Path) -> None:
    """One session, and what is pressed is what is done."""
    async with running(configured(tmp_path, with_slack(slack))):
        slack.say("D1", "hello")
        await slack.until(lambda: slack.texts("D1"))
        slack.say("D1", "!busy")
        await slack.until(lambda: any(shown.buttons for shown in slack.messages("D1")))
        asked = next(shown for shown in slack.messages("D1") if shown.buttons)
        slack.press("D1", asked.ts, next(label for label in asked.buttons if "collect" in label))
        await slack.until(lambda: any("collect" in text for text in slack.texts("D1")[-1:]) and not slack.unacknowledged)


async def test_a_mention_in_a_thread_knows_what_was_said_before(slack: SlackServer, tmp_path: Path) -> None:
    """It is labelled as other people's words; the next turn gets only what is new."""
    async with AnthropicServer([Reply(text="A red build."), Reply(text="Still red.")]) as anthropic:
        config = configured(tmp_path, with_slack(slack) + with_anthropic(anthropic))
        async with running(config):
            root = slack.say("C1", "The build is red", user="U2BOB")
            slack.say("C1", "<@U0BOT> what is the matter?", thread=root)
            await slack.until(lambda: slack.texts("C1", thread=root) == ["A red build."])
            slack.say("C1", "I restarted it", thread=root, user="U2BOB")
            slack.say("C1", "<@U0BOT> and now?", thread=root)
            await slack.until(lambda: len(slack.texts("C1", thread=root)) == 2)

    first, second = (call.body["messages"][-1]["content"] for call in anthropic.requests)
    assert "Bob: The build is red" in str(first)
    assert "no instruction" in str(first)
    assert "Bob: I restarted it" in str(second)
    assert "The build is red" not in str(second)
    assert "A red build." not in str(second)


async def test_strangers_get_nothing_but_a_code(slack: SlackServer, tmp_path: Path) -> None:
    """And the owner hears of it in the direct message with them."""
    async with running(configured(tmp_path, with_slack(slack))):
        slack.say("D2", "hello", user="U2BOB")
        await slack.until(lambda: slack.texts("D2") and slack.texts("U1ANN"))

    assert "/pair" in slack.texts("D2")[0]
    assert "Bob" in slack.texts("U1ANN")[0]


async def test_a_message_that_is_deleted_before_its_turn_is_not_answered(slack: SlackServer, tmp_path: Path) -> None:
    """One that was answered is noted for the next turn."""
    async with AnthropicServer([Reply(text="one", delay_s=0.5), Reply(text="two"), Reply(text="three")]) as anthropic:
        config = configured(tmp_path, with_slack(slack) + with_anthropic(anthropic) + '[chat]\nbusy = "follow_up"')
        async with running(config):
            first = slack.say("D1", "first")
            async with asyncio.timeout(20):
                while not anthropic.busy:  # noqa: ASYNC110 - it sets no event
                    await asyncio.sleep(0.01)
            waiting = slack.say("D1", "never mind this")
            slack.say("D1", "second")
            slack.delete("D1", waiting)
            await slack.until(lambda: slack.texts("D1") == ["one", "two"])
            slack.delete("D1", first)
            slack.say("D1", "third")
            await slack.until(lambda: len(slack.texts("D1")) == 3)

    assert not any("never mind this" in str(call.body) for call in anthropic.requests)
    assert "deleted an earlier message" in str(anthropic.requests[-1].body["messages"][-1])


async def test_what_concerns_one_person_is_shown_to_them_alone(slack: SlackServer, tmp_path: Path) -> None:
    """A mistake in a channel is no news for everybody; in a direct message it is said as ever."""
    async with running(configured(tmp_path, with_slack(slack))):
        slack.say("C1", "<@U0BOT> !resume nowhere", user="U2BOB")
        await slack.until(lambda: slack.world.whispered)
        slack.say("C1", "<@U0BOT> !pair ABCDEFGH", user="U2BOB")
        await slack.until(lambda: len(slack.world.whispered) == 2)
        slack.say("D1", "!resume nowhere")
        await slack.until(lambda: slack.texts("D1"))

    (channel, person, text), (_, _, refusal) = slack.world.whispered
    assert (channel, person) == ("C1", "U2BOB")
    assert "no such session" in text
    assert "owner" in refusal.lower()
    assert [shown for shown in slack.messages("C1") if shown.own] == []
    assert "no such session" in slack.texts("D1")[0]
