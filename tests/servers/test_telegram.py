"""The double of the Bot API is as strict as the real one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from telegram import Bot, MessageEntity
from telegram.error import BadRequest, Conflict, InvalidToken

from tests.servers.telegram import FloodLimits, TelegramServer, serve_telegram


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with serve_telegram() as server:
        yield server


@pytest.fixture
async def bot(server: TelegramServer) -> AsyncIterator[Bot]:
    async with Bot(server.token, f"{server.url}/bot", f"{server.url}/file/bot") as bot:
        yield bot


async def test_the_official_client_reads_and_writes(server: TelegramServer, bot: Bot) -> None:
    """It cannot tell the difference."""
    server.say(5, "hello @pumice_bot")
    (update,) = await bot.get_updates(timeout=1)
    assert update.message is not None
    sent = await bot.send_message(5, "**not** bold", entities=[MessageEntity("bold", 0, 3)])
    edited = await bot.edit_message_text("other", chat_id=5, message_id=sent.message_id)

    assert update.message.parse_entities() == {update.message.entities[0]: "@pumice_bot"}
    assert sent.from_user is not None
    assert sent.from_user.is_bot
    assert getattr(edited, "text", None) == "other"
    assert server.texts(5) == ["other"]


async def test_updates_come_until_they_are_acknowledged(server: TelegramServer, bot: Bot) -> None:
    """By an offset above them, and by nothing else."""
    for text in "abc":
        server.say(5, text)
    first = await bot.get_updates(limit=2)

    assert [update.update_id for update in first] == [update.update_id for update in await bot.get_updates(limit=2)]
    assert [update.update_id for update in await bot.get_updates(offset=first[-1].update_id + 1)] == [1002]
    assert await bot.get_updates(offset=1003) == ()


async def test_two_pollers_disturb_each_other(server: TelegramServer, bot: Bot) -> None:
    """The earlier one is sent away."""
    import asyncio

    first = asyncio.create_task(bot.get_updates(timeout=5))
    await server.until(lambda: server._poll == 1)
    async with Bot(server.token, f"{server.url}/bot") as other:
        await other.get_updates(timeout=0)

    with pytest.raises(Conflict, match="terminated by other getUpdates"):
        await first


async def test_a_wrong_token_is_refused(server: TelegramServer) -> None:
    """In whichever method."""
    with pytest.raises(InvalidToken):
        async with Bot("4242:other", f"{server.url}/bot"):
            pass


@pytest.mark.parametrize(
    ("text", "entities", "refusal"),
    [
        ("x" * 4097, [], "too long"),
        (" \n ", [], "text is empty"),
        ("hello", [("bold", 3, 9)], "Entity_bounds_invalid"),
        ("🎉🎉", [("bold", 1, 2)], "middle of a utf-16 symbol"),
        ("hello", [("bold", 0, 3), ("italic", 2, 3)], "overlap"),
        ("hello", [("code", 0, 5), ("bold", 1, 2)], "inside code"),
        ("hello", [("text_link", 0, 5)], "Entity_texturl_invalid"),
    ],
)
async def test_texts_are_checked(text: str, entities: list[tuple[str, int, int]], refusal: str, server: TelegramServer, bot: Bot) -> None:
    """With Telegram's words, where it has some."""
    server.say(5, "hi")
    with pytest.raises(BadRequest, match=f"(?i){refusal}"):
        await bot.send_message(5, text, entities=[MessageEntity(*each) for each in entities])


async def test_outer_blanks_are_trimmed_with_their_entities(server: TelegramServer, bot: Bot) -> None:
    """And only the first hundred entities are kept."""
    server.say(5, "hi")
    await bot.send_message(5, "  a b  ", entities=[MessageEntity("bold", 2, 3), MessageEntity("italic", 5, 2)])
    await bot.send_message(5, "ab" * 150, entities=[MessageEntity("bold", 2 * each, 1) for each in range(150)])
    trimmed, many = server.messages(5)

    assert (trimmed.text, trimmed.styled("bold"), trimmed.styled("italic")) == ("a b", ["a b"], [])
    assert len(many.entities) == 100


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda bot: bot.send_message(6, "hi"), "Chat not found"),
        (lambda bot: bot.send_message(5, "hi", message_thread_id=1), "Message thread not found"),
        (lambda bot: bot.edit_message_text("hi", chat_id=5, message_id=99), "Message to edit not found"),
        (lambda bot: bot.send_message(5, "hi", reply_to_message_id=99), "Message to be replied not found"),
        (lambda bot: bot.send_document(5, b""), "File must be non-empty"),
        (lambda bot: bot.send_photo(5, b"no picture"), "Image_process_failed"),
        (lambda bot: bot.get_file("x"), "Wrong file_id"),
        (lambda bot: bot.answer_callback_query("x"), "Query is too old"),
        (lambda bot: bot.set_my_commands([("Bad-Name", "x")]), "Bot_command_invalid"),
    ],
)
async def test_calls_are_checked(call: Any, refusal: str, server: TelegramServer, bot: Bot) -> None:
    """What the channel must never rely on."""
    server.say(5, "hi")
    with pytest.raises(BadRequest, match=refusal):
        await call(bot)


async def test_floods_are_refused_with_a_time(server: TelegramServer, bot: Bot) -> None:
    """Per chat, so that others go on."""
    from httpx import AsyncClient

    server.world.limits = FloodLimits(chat_per_second=1)
    server.say(5, "hi")
    server.say(6, "hi")
    address = f"{server.url}/bot{server.token}/sendMessage"
    async with AsyncClient() as client:
        answers = [await client.post(address, json={"chat_id": chat, "text": "x"}) for chat in (5, 5, 6)]

    assert [answer.status_code for answer in answers] == [200, 429, 200]
    assert answers[1].json()["parameters"]["retry_after"] >= 1


async def test_people_in_another_process_write_and_read(server: TelegramServer, bot: Bot) -> None:
    """Benchmarks run the double beside the host."""
    from httpx import AsyncClient

    async with AsyncClient(base_url=f"{server.url}/control") as control:
        said = (await control.post("/say", json={"messages": [{"chat_id": 5, "text": "a"}, {"chat_id": 6, "text": "b"}]})).json()
        await bot.send_message(5, "answer")
        seen = (await control.get("/messages", params={"chat_id": 5})).json()
        calls = (await control.get("/calls")).json()
        counts = (await control.get("/counts")).json()

    assert said == [1, 1]
    assert seen[0]["text"] == "answer"
    assert calls[-1]["method"] == "sendMessage"
    assert counts["waiting"] == 2
