"""Reading, explaining and listing commands."""

import pytest

from features.commands import Command, CommandRegistry
from features.contracts.chat import ChatCommand

Said = list[str]


async def _note(said: Said, arguments: str) -> None:
    said.append(arguments)


NEW: Command[Said] = Command("new", "[name]", "Starts afresh.", _note)
STOP: Command[Said] = Command("stop", "", "Stops the run.", _note, control=True)
PAIR: Command[Said] = Command("pair", "CODE", "Admits somebody.", _note, owner_only=True)
SECRET: Command[Said] = Command("ping", "", "Answers.", _note, hidden=True)


@pytest.fixture
def registry() -> CommandRegistry[Said]:
    return CommandRegistry([NEW, STOP, PAIR, SECRET])


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("/new", ""),
        ("/NEW", ""),
        ("/new@pumice_bot", ""),
        ("/new@pumice_bot  Trip to Rome ", "Trip to Rome"),
        ("  /new one\ntwo ", "one\ntwo"),
    ],
)
def test_a_command_is_read_in_every_way_people_write_it(registry: CommandRegistry[Said], text: str, arguments: str) -> None:
    """Phones capitalise, groups append the bot's name, fingers add spaces."""
    assert registry.parse(text) == (NEW, arguments)


@pytest.mark.parametrize("text", ["", "new", "hello /new", "/", "/ new", "/usr/bin/env is missing", "/n\xe9w", "/nwe"])
def test_what_is_no_known_command_is_left_to_the_model(registry: CommandRegistry[Said], text: str) -> None:
    """A path at the start of a message must reach the model as text."""
    assert registry.parse(text) is None


def test_an_unknown_command_is_told_from_a_path(registry: CommandRegistry[Said]) -> None:
    """Only the former deserves a 'did you mean'."""
    assert registry.looks_like_command("/nwe x")
    assert not registry.looks_like_command("/usr/bin/env")
    assert not registry.looks_like_command("say /new")


def test_a_mistyped_name_finds_its_neighbour(registry: CommandRegistry[Said]) -> None:
    """Typos are common on phones; hidden commands are not given away."""
    assert registry.suggest("/stpo@bot now") == "stop"
    assert registry.suggest("pa") == "pair"
    assert registry.suggest("ping1") is None
    assert registry.suggest("weather") is None
    assert registry.suggest("  ") is None


async def test_the_found_command_runs_with_its_arguments(registry: CommandRegistry[Said]) -> None:
    """Parsing and running meet in one call."""
    found = registry.parse("/new Rome")
    assert found is not None
    said: Said = []
    await found[0].run(said, found[1])

    assert said == ["Rome"]


def test_help_lists_what_the_asker_may_use(registry: CommandRegistry[Said]) -> None:
    """Others need not know of owners' commands."""
    assert registry.help_text(False) == "- `/new [name]` Starts afresh.\n- `/stop` Stops the run."
    assert "`/pair CODE` Admits somebody." in registry.help_text(True)
    assert "ping" not in registry.help_text(True)


def test_help_explains_one_command(registry: CommandRegistry[Said]) -> None:
    """With or without the slash."""
    assert registry.help_text(True, "/pair") == "`/pair CODE`\nAdmits somebody.\nOnly owners may use it."
    assert registry.help_text(False, "pair") == "There is no command `/pair`. `/help` lists them all."
    assert registry.help_text(False, "nwe") == "There is no command `/nwe`. Did you mean `/new`?"
    assert registry.help_text(False, "weather") == "There is no command `/weather`. `/help` lists them all."


def test_the_menu_has_the_form_that_platforms_take(registry: CommandRegistry[Said]) -> None:
    """It is handed to setMyCommands as it is."""
    assert registry.menu()[0] == ChatCommand(name="new", description="Starts afresh.")
    assert [command.name for command in registry.menu()] == ["new", "stop", "pair"]


def test_a_name_that_no_menu_takes_is_refused() -> None:
    """One bad name makes Telegram refuse the whole menu."""
    for name in ("", "New", "a-b", "x" * 33, "1st"):
        with pytest.raises(ValueError, match="is no command name"):
            Command(name, "", "x", _note)
    with pytest.raises(ValueError, match="description"):
        Command("x", "", "y" * 257, _note)


def test_two_commands_of_one_name_are_refused() -> None:
    """The second would never be reached."""
    with pytest.raises(ValueError, match="two commands named /new"):
        CommandRegistry([NEW, NEW])
