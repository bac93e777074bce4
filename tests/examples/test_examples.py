"""Each example does what its first lines say. They are loaded as a host loads them."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from features.contracts.errors import ModelMustAct
from features.contracts.extension_events import BeforeCompaction, ToolCalled
from features.contracts.extensions import ExtensionSpec
from features.contracts.messages import AssistantMessage, Message, TextBlock, ToolCall, Usage, UserMessage, message_text
from features.contracts.models import ModelRequest
from features.contracts.stream import StreamDone, StreamEvent, StreamFailed, StreamStarted
from features.extensions import ExtensionLoader
from features.extensions.testing import AnsweringPerson, LoneApi

EXAMPLES = Path(__file__).parents[2] / "examples" / "extensions"
Start = Callable[..., Awaitable[LoneApi]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Load an example by its name and activate it."""
    loader = ExtensionLoader()

    async def start(name: str, *, config: Mapping[str, Any] | None = None, answers: tuple[Any, ...] = ()) -> LoneApi:
        (tmp_path / "workspace").mkdir(exist_ok=True)
        loaded = await loader.load([EXAMPLES], entry_points=False)
        assert not loaded.problems
        spec: ExtensionSpec = next(spec for spec in loaded.specs if spec.name == name)
        return await LoneApi(spec.activate, workspace=tmp_path / "workspace", config=config, person=AnsweringPerson(*answers)).activated()

    yield start
    loader.close()


def called(tool: str, **arguments: Any) -> ToolCalled:
    return ToolCalled(ToolCall(id="call-1", name=tool, arguments=arguments), arguments, owner=True)


@pytest.mark.parametrize("command", ["rm -rf /", "cd x && sudo true", "git push origin --force", "chmod -R 777 .", "echo a > /dev/sda"])
async def test_the_permission_gate_asks_before_a_dangerous_command(start: Start, command: str) -> None:
    """A yes lets it through; a no, and no answer, do not."""
    for answer, passes in ((True, True), (False, False), (None, False)):
        api = await start("permission-gate", answers=(answer,))
        event = await api.happens(called("bash", command=command))

        assert (event.refusal is None) is passes
        assert command in api.person.asked[0]


async def test_the_permission_gate_lets_the_rest_pass_unasked(start: Start) -> None:
    """Harmless commands and other tools; and what the configuration calls dangerous counts alone."""
    api = await start("permission-gate")
    for event in (called("bash", command="ls firm"), called("write", path="rm", content="rm x"), called("bash", command="git push")):
        assert (await api.happens(event)).refusal is None
    assert api.person.asked == []

    api = await start("permission-gate", config={"dangerous": ["^make"]})
    assert (await api.happens(called("bash", command="rm x"))).refusal is None
    assert (await api.happens(called("bash", command="make install"))).refusal is not None


async def test_the_todo_list_is_kept_by_the_model_and_read_by_people(start: Start) -> None:
    """A tool, a command, and what the model is reminded of."""
    api = await start("todo")
    assert await api.says("/todo") == "The todo list is empty."
    await api.uses("todo", action="add", text="buy milk")
    result = await api.uses("todo", action="add", text=" call Bert ")
    assert message_of(result.content) == "1. [ ] buy milk\n2. [ ] call Bert"
    assert message_of((await api.uses("todo", action="done", number=1)).content) == "1. [x] buy milk\n2. [ ] call Bert"

    assert await api.says("/todo") == "1. [x] buy milk\n2. [ ] call Bert"
    assert api.contexts == {"open": "Open items of the todo list:\n- call Bert"}
    assert await api.says("/todo clear") == "The todo list is empty."
    assert api.contexts == {}


async def test_the_todo_list_follows_the_branch(start: Start) -> None:
    """Going back in the tree brings back the list as it was, and another branch has one of its own."""
    api = await start("todo")
    await api.uses("todo", action="add", text="one")
    here = api.session.leaf_id
    await api.uses("todo", action="add", text="two")
    there = api.session.leaf_id

    await api.move_to(here)
    assert await api.says("/todo") == "1. [ ] one"
    await api.uses("todo", action="add", text="other")
    assert await api.says("/todo") == "1. [ ] one\n2. [ ] other"
    await api.move_to(there)
    assert await api.says("/todo") == "1. [ ] one\n2. [ ] two"
    await api.move_to(None)
    assert await api.says("/todo") == "The todo list is empty."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"action": "add"}, "text is missing"),
        ({"action": "add", "text": "  "}, "text is missing"),
        ({"action": "done", "number": 3}, "number is 3; the list has the items 1 to 1"),
        ({"action": "done", "number": 0}, "number is 0"),
        ({"action": "done"}, "number is None"),
    ],
)
async def test_the_todo_list_says_what_was_wrong(start: Start, arguments: dict[str, Any], said: str) -> None:
    """In words for the model; the list stays."""
    api = await start("todo")
    await api.uses("todo", action="add", text="one")

    with pytest.raises(ModelMustAct, match=said):
        await api.uses("todo", **arguments)
    assert await api.says("/todo") == "1. [ ] one"


async def test_the_todo_list_is_bounded(start: Start) -> None:
    api = await start("todo")
    await api.set_state("items", [{"text": "x", "done": False}] * 100)

    with pytest.raises(ModelMustAct, match="has 100 items already"):
        await api.uses("todo", action="add", text="more")


def compaction(history: list[Message], previous: str | None = None) -> BeforeCompaction:
    return BeforeCompaction(
        "threshold", [], first_kept_entry_id="e9", history=history, turn_prefix=[], previous_summary=previous, tokens_before=9,
        instructions="",
    )  # fmt: skip


def person(text: str) -> UserMessage:
    return UserMessage(content=text, timestamp=1)


def answer(text: str) -> AssistantMessage:
    return AssistantMessage(
        content=[TextBlock(text=text)], api="x", provider="x", model="x", usage=Usage(), stop_reason="stop", timestamp=1
    )


async def test_the_custom_compaction_keeps_peoples_words(start: Start) -> None:
    """And the beginning of each answer, after what was summed up before."""
    api = await start("custom-compaction")

    event = await api.happens(compaction([person("make\na plan"), answer("Here it is.\n1. pack"), answer("")], "The person said: hi"))

    assert event.summary == "The person said: hi\nThe person said: make a plan\nYou answered: Here it is."
    assert event.first_kept_entry_id == "e9"
    assert event.refusal is None


async def test_the_custom_compaction_is_bounded_and_leaves_nothing_to_the_host(start: Start) -> None:
    """The latest stays; and with nothing to sum up the host's own way is taken."""
    api = await start("custom-compaction", config={"longest": 60})

    event = await api.happens(compaction([person("x" * 1000), person("early"), person("late")]))

    assert event.summary == "The person said: early\nThe person said: late"
    assert (await api.happens(compaction([]))).summary is None


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "sub/.env",
        "./.env",
        "sub/../.env",
        "@.env",
        ".ENV",
        "\uff0eenv",
        "server.pem",
        ".git/config",
        "link/config",
        "x/../.git/hooks/a",
    ],
)
async def test_the_path_guard_blocks_whatever_way_a_path_is_written(start: Start, path: str) -> None:
    """Through a symlink too; also by its absolute name."""
    api = await start("path-guard")
    (api.session.workspace / ".git").mkdir()
    (api.session.workspace / "link").symlink_to(".git")
    for tool in ("write", "edit"):
        for written in (path, str(api.session.workspace / path.removeprefix("@"))):
            assert "is protected in this chat" in ((await api.happens(called(tool, path=written))).refusal or ""), written


async def test_the_path_guard_lets_the_rest_pass(start: Start) -> None:
    """Reading, other files, and what a configuration of one's own does not name."""
    api = await start("path-guard")
    for event in (called("read", path=".env"), called("write", path="environment.txt"), called("bash", command="cat .env")):
        assert (await api.happens(event)).refusal is None

    api = await start("path-guard", config={"protected": ["contracts/*"]})
    assert (await api.happens(called("write", path=".env"))).refusal is None
    assert (await api.happens(called("edit", path="contracts/a/b.py"))).refusal is not None


async def test_a_path_that_is_none_is_not_let_through(start: Start) -> None:
    """The handler raises, and a gate that raises says no."""
    api = await start("path-guard")
    with pytest.raises(ValueError, match="null"):
        await api.happens(called("write", path="a\0b"))


async def events_of(api: LoneApi, model: int, *messages: Message) -> list[StreamEvent]:
    ((provider, models),) = api.providers
    async with aclosing(provider.stream(models[model], ModelRequest(system_prompt="", messages=messages))) as stream:
        return [event async for event in stream]


async def test_the_parrot_repeats_what_was_said_last(start: Start) -> None:
    """In the order that the contract of streams wants."""
    api = await start("parrot-provider")
    first, *_, last = await events_of(api, 1, person("one"), person("Hello there"))

    assert isinstance(first, StreamStarted)
    assert isinstance(last, StreamDone)
    assert message_text(last.message).strip() == "HELLO THERE"
    assert [model.reference for _, models in api.providers for model in models] == ["parrot/quiet", "parrot/loud"]


async def test_the_parrot_fails_within_its_stream(start: Start) -> None:
    """A provider never raises."""
    *_, last = await events_of(await start("parrot-provider"), 0)

    assert isinstance(last, StreamFailed)
    assert last.kind == "invalid"
    assert last.message.error_message


def message_of(content: Any) -> str:
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))
