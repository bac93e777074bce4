"""What a chat sets for itself."""

import pytest

from features.contracts.chat import Address
from features.contracts.models import Model
from tests.bot.chat_commands.conftest import GUEST, Chat


async def test_the_model_is_shown_with_its_choices(chat: Chat) -> None:
    """Nobody knows the names by heart."""
    assert "`offline/assistant` answers here" in await chat.says("/model")
    assert chat.buttons == {"✓ Offline": "/model offline/assistant", "Claude X": "/model anthropic/claude-x"}


async def test_a_model_is_switched_and_stays(chat: Chat) -> None:
    """For the running session and for the chat's later ones."""
    assert "`anthropic/claude-x` answers here" in await chat.says("/model anthropic/claude-x")
    assert chat.conversation.deeds == [("model", "anthropic/claude-x")]
    assert (await chat.settings()).model == "anthropic/claude-x"


async def test_an_unknown_model_changes_nothing(chat: Chat) -> None:
    """The answer is the registry's own."""
    assert await chat.says("/model nonsense/x") == "There is no model nonsense/x."
    assert chat.conversation.deeds == []
    assert (await chat.settings()).model == "offline/assistant"


async def test_many_models_are_shown_by_provider(chat: Chat) -> None:
    """A catalogue does not fit under a message."""
    chat.models.known += [Model(provider="openai", id=f"gpt-{number}", api="openai") for number in range(60)]
    assert "There are 62 models" in await chat.says("/model")
    assert chat.buttons == {"offline": "/model offline", "anthropic": "/model anthropic", "openai": "/model openai"}

    assert "Models 1 to 12 of 60" in await chat.says("/model openai")
    assert chat.buttons["openai/gpt-11"] == "/model openai/gpt-11"
    assert chat.buttons["More…"] == "/model openai 13"
    assert "Models 49 to 60 of 60" in await chat.says("/model openai 49")
    assert "More…" not in chat.buttons
    assert "Models 1 to 12 of 60" in await chat.says("/model openai 999")
    await chat.says("/model anthropic")
    assert chat.buttons == {"Claude X": "/model anthropic/claude-x"}


async def test_thinking_is_shown_and_set(chat: Chat) -> None:
    """In any case; a typo gets its neighbour."""
    await chat.says("/thinking")
    assert chat.buttons["✓ off"] == "/thinking off"
    assert await chat.says("/thinking HIGH") == "Thinking is `high` now."
    assert "Did you mean `/thinking medium`?" in await chat.says("/thinking medum")

    assert chat.conversation.deeds == [("thinking", "high")]
    assert (await chat.settings()).thinking == "high"


async def test_the_zone_is_shown_and_set(chat: Chat) -> None:
    """Jobs and calendar follow it, so the local time is echoed."""
    assert "`Europe/Vienna`; it is Mon 05 Jan, 10:00" in await chat.says("/timezone")
    assert "`Asia/Tokyo` now; it is Mon 05 Jan, 18:00" in await chat.says("/timezone Asia/Tokyo")

    assert (await chat.settings()).time_zone == "Asia/Tokyo"


@pytest.mark.parametrize("typed", ["rome", "Europe/Roma", "europe/rome"])
async def test_a_mistyped_zone_is_offered_as_a_button(chat: Chat, typed: str) -> None:
    """People type cities."""
    said = await chat.says(f"/timezone {typed}")

    assert "Did you mean `Europe/Rome`?" in said
    assert chat.buttons["Europe/Rome"] == "/timezone Europe/Rome"
    assert "IANA name" in await chat.says("/timezone qqqqqq")
    assert (await chat.settings()).time_zone == "Europe/Vienna"


async def test_busy_and_verbose_are_shown_and_set(chat: Chat) -> None:
    """With what each choice means; dashes are taken too."""
    assert "`collect`: I read all of them together" in await chat.says("/busy")
    assert chat.buttons["✓ steer"] == "/busy steer"
    await chat.says("/busy follow-up")
    assert "Did you mean `/busy interrupt`?" in await chat.says("/busy interupt")
    await chat.says("/verbose full")
    assert "is none of off, status, full" in await chat.says("/verbose loud")

    assert ((await chat.settings()).busy, (await chat.settings()).verbose) == ("follow_up", "full")


async def test_settings_are_the_place_s_and_lead_to_each_choice(chat: Chat) -> None:
    """Every button is a command that shows its own choices."""
    await chat.says("/busy collect", by=GUEST)
    said = await chat.says("/settings")
    assert "`collect`, I read all of them together" in said
    commands = list(chat.buttons.values())
    assert commands == ["/model", "/thinking", "/timezone", "/busy", "/verbose"]
    for command in commands:
        await chat.says(command)

    chat.conversation.address = Address("telegram", "9")
    assert "`steer`" in await chat.says("/settings")
