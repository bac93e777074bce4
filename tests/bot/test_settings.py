"""What a chat sets for itself survives, and everything else follows the configuration."""

from collections.abc import Iterator

import msgspec
import pytest

from bot.settings import SETTINGS_MIGRATIONS, ChatSettings, SettingsStore
from features.contracts.chat import Address
from tests.bot.memory_database import MemoryDatabase

DEFAULTS = ChatSettings(model="offline/assistant", thinking="off", time_zone="Europe/Vienna", busy="steer", verbose="status", stream=True)
CHAT = Address("telegram", "1")
TOPIC = Address("telegram", "1", "7")
OTHER = Address("telegram", "2")


@pytest.fixture
def database() -> Iterator[MemoryDatabase]:
    memory = MemoryDatabase(SETTINGS_MIGRATIONS)
    yield memory
    memory.close()


async def test_a_chat_that_set_nothing_has_the_configuration_s_settings(database: MemoryDatabase) -> None:
    """Most chats never set anything."""
    assert await SettingsStore(database, DEFAULTS).get(CHAT) == DEFAULTS


async def test_a_change_holds_for_the_whole_place_and_survives_a_restart(database: MemoryDatabase) -> None:
    """Topics share their chat's settings; other chats do not."""
    store = SettingsStore(database, DEFAULTS)
    await store.get(CHAT)
    changed = await store.change(TOPIC, time_zone="Asia/Tokyo", stream=False)

    for reader in (store, SettingsStore(database, DEFAULTS)):
        assert await reader.get(CHAT) == await reader.get(TOPIC) == changed
        assert (changed.time_zone, changed.stream, changed.busy) == ("Asia/Tokyo", False, "steer")
        assert await reader.get(OTHER) == DEFAULTS


async def test_what_was_not_changed_follows_the_configuration(database: MemoryDatabase) -> None:
    """A new default model reaches every chat that did not choose one."""
    await SettingsStore(database, DEFAULTS).change(CHAT, busy="collect")
    later = SettingsStore(database, msgspec.structs.replace(DEFAULTS, model="openai/gpt", busy="follow_up"))

    assert (await later.get(CHAT)).model == "openai/gpt"
    assert (await later.get(CHAT)).busy == "collect"
    assert (await later.change(CHAT, busy=None)).busy == "follow_up"


async def test_a_wrong_name_or_value_is_refused(database: MemoryDatabase) -> None:
    """Nothing of it is stored."""
    store = SettingsStore(database, DEFAULTS)
    changes: tuple[dict[str, str | bool | None], ...] = ({"colour": "red"}, {"busy": "maybe"}, {"stream": "yes"}, {"colour": None})
    for change in changes:
        with pytest.raises(ValueError, match="no settings with such values"):
            await store.change(CHAT, **change)

    assert await SettingsStore(database, DEFAULTS).get(CHAT) == DEFAULTS


async def test_what_another_version_stored_is_left_out(database: MemoryDatabase) -> None:
    """Going back to an older version must not break the chat."""
    changes = '{"colour": "red", "busy": "telepathy", "verbose": "full"}'
    await database.write(lambda transaction: transaction.execute("INSERT INTO chat_settings VALUES ('telegram:1', ?)", (changes,)))

    assert await SettingsStore(database, DEFAULTS).get(CHAT) == msgspec.structs.replace(DEFAULTS, verbose="full")


async def test_settings_follow_a_chat_to_its_new_address(database: MemoryDatabase) -> None:
    """Telegram gives a group another id when it is upgraded."""
    store = SettingsStore(database, DEFAULTS)
    await store.change(CHAT, busy="collect")
    await store.get(OTHER)
    await database.write(store.move_place(CHAT, OTHER))
    store.place_moved(CHAT, OTHER)

    assert (await store.get(OTHER)).busy == "collect"
    assert await store.get(CHAT) == DEFAULTS


async def test_a_failed_write_changes_nothing(database: MemoryDatabase) -> None:
    """The chat is told what holds after a restart too."""
    store = SettingsStore(database, DEFAULTS)
    await store.get(CHAT)
    database.full = OSError("no space left")
    with pytest.raises(OSError, match="no space"):
        await store.change(CHAT, busy="collect")

    assert (await store.get(CHAT)).busy == "steer"
