"""Whatever an extension does, the session goes on, and what went wrong is told."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from features.agent.testing import FunctionTool, answers, call
from features.contracts.errors import ReentrantCallError, UserMustAct
from features.contracts.extension_events import (
    AgentSettled,
    AgentStarted,
    BeforeAgentStart,
    BeforeProviderRequest,
    ContextBuilding,
    ExtensionEvent,
    InputReceived,
    MessageEnding,
    SessionStarted,
    ToolCalled,
    ToolResulted,
    TurnEnded,
    TurnStarted,
)
from features.contracts.extensions import CommandResult, ExtensionApi, ExtensionCommand
from features.contracts.messages import AssistantMessage, TextBlock, ToolResultMessage, UserMessage
from features.contracts.models import Model, ModelRequest
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from tests.features.agent.recording import errors, extension, listening
from tests.features.agent.rig import Rig, say, texts, until

ASK = "a check by the extension 'one' failed, so the answer is no"


async def raises(event: ExtensionEvent) -> None:
    raise KeyError("broken")


async def hangs(event: ExtensionEvent) -> None:
    await asyncio.get_running_loop().create_future()


async def hangs_on(event: ExtensionEvent) -> None:
    """Does not mind being cancelled, until the session is closed."""
    with suppress(asyncio.CancelledError):
        await asyncio.get_running_loop().create_future()
    await asyncio.get_running_loop().create_future()


async def gives(event: ExtensionEvent) -> Any:
    return {"block": True}


def no_coroutine(event: ExtensionEvent) -> None:
    return None


async def leaves(event: ExtensionEvent) -> None:
    raise SystemExit(3)


async def interrupts(event: ExtensionEvent) -> None:
    raise KeyboardInterrupt


async def cancels_itself(event: ExtensionEvent) -> None:
    raise asyncio.CancelledError


BAD = [
    (raises, "KeyError: 'broken'"),
    (hangs, "took longer than 0.5 s"),
    (hangs_on, "took longer than 0.5 s"),
    (gives, "it gave back dict"),
    (no_coroutine, "it is no async function"),
    (leaves, "tried to end the host"),
    (interrupts, "tried to end the host with KeyboardInterrupt()"),
    (cancels_itself, "cancelled itself"),
]


async def carried(r: Rig, work: Awaitable[Any]) -> Any:
    """Do something while time passes."""
    task = asyncio.ensure_future(work)
    for _ in range(3000):
        if task.done():
            return task.result()
        if r.clock.sleepers:
            await r.clock.advance(1)
        await asyncio.sleep(0)
    raise AssertionError("it did not end")


@pytest.mark.parametrize(("bad", "said"), BAD, ids=[bad.__name__ for bad, _ in BAD])
async def test_an_observer_that_breaks_is_told_of_and_the_run_goes_on(tmp_path: Path, bad: Any, said: str) -> None:
    """The others still hear the event, and it is told each time until the extension is out."""
    heard: list[int] = []

    async def good(event: TurnStarted) -> None:
        heard.append(event.turn_index)

    r = Rig(tmp_path, answers("done"))
    session = await r.open(extensions=(listening(TurnStarted, bad), listening(TurnStarted, good, name="two")))
    outcome = await carried(r, session.prompt(say("u")))
    await carried(r, session.close())

    assert (outcome.outcome, heard) == ("success", [0])
    [(name, event, text)] = errors(r.events)
    assert (name, event) == ("one", "turn_start")
    assert said in text
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(("bad", "said"), [case for case in BAD if case[0] not in (hangs, hangs_on)])
async def test_a_gate_that_breaks_says_no(tmp_path: Path, bad: Any, said: str) -> None:
    """The tool does not run; the model reads why, and its siblings go on."""
    tool, other = FunctionTool("danger"), FunctionTool("other")

    async def only_danger(event: ToolCalled) -> Any:
        if event.call.name == "danger":
            return await bad(event) if bad is not no_coroutine else 1
        return None

    r = Rig(tmp_path, answers(call("t1", "danger"), call("t2", "other")), answers("done"), tools=[tool, other])
    session = await r.open(extensions=(listening(ToolCalled, only_danger),))
    await carried(r, session.prompt(say("u")))

    first, second = (message for message in session.manager.messages if isinstance(message, ToolResultMessage))
    assert (texts(first), first.is_error) == (ASK, True)
    assert not second.is_error
    assert (len(tool.calls), len(other.calls)) == (0, 1)
    assert len(errors(r.events)) == 1


async def test_a_gate_that_hangs_says_no_when_its_time_is_over(tmp_path: Path) -> None:
    """A quarter of an hour, in which a person may answer."""
    tool = FunctionTool("danger")
    r = Rig(tmp_path, answers(call("t1", "danger")), answers("done"), tools=[tool])
    session = await r.open(extensions=(listening(ToolCalled, hangs),))
    run = asyncio.create_task(session.prompt(say("u")))
    await until(lambda: r.clock.sleepers > 0)
    await r.clock.advance(899)
    assert not run.done()
    await r.clock.advance(2)
    await run

    assert tool.calls == []
    assert "took longer than 900 s" in errors(r.events)[0][2]


async def blank(event: ContextBuilding) -> None:
    event.messages = []


async def no_list(event: ContextBuilding) -> None:
    event.messages = None  # type: ignore[assignment]


async def own_words_last(event: ContextBuilding) -> None:
    event.messages = [*event.messages, answer_message()]


async def strangers(event: ContextBuilding) -> None:
    event.messages.append("hello")  # type: ignore[arg-type]


async def result_alone(event: ContextBuilding) -> None:
    event.messages.insert(0, ToolResultMessage(tool_call_id="x", tool_name="x", content=[], is_error=False, timestamp=0))


async def other_model(event: BeforeProviderRequest) -> None:
    event.model = Model(provider="other", id="x", api="x")


async def more_tools(event: BeforeProviderRequest) -> None:
    event.replace(changed(event.request, tools=[*event.request.tools, FunctionTool("new").spec]))


async def same_tool_twice(event: BeforeProviderRequest) -> None:
    event.replace(changed(event.request, tools=[*event.request.tools, *event.request.tools]))


async def no_request(event: BeforeProviderRequest) -> None:
    event.replace("x")  # type: ignore[arg-type]


async def no_output(event: BeforeProviderRequest) -> None:
    event.replace(changed(event.request, max_output=0))


async def half_a_change(event: BeforeProviderRequest) -> None:
    event.replace(changed(event.request, system_prompt="gone", session_id="other"))


async def other_role(event: MessageEnding) -> None:
    event.replace(UserMessage(content="x", timestamp=0) if not isinstance(event.message, UserMessage) else answer_message())


async def no_message(event: MessageEnding) -> None:
    event.replace(None)  # type: ignore[arg-type]


async def odd_result(event: ToolResulted) -> None:
    event.content = "text"  # type: ignore[assignment]


async def odd_input(event: InputReceived) -> None:
    event.text = 7  # type: ignore[assignment]


async def odd_start(event: BeforeAgentStart) -> None:
    event.add_message("bad type!", "x")


async def odd_stop(event: TurnEnded) -> None:
    event.stop_after = "yes"  # type: ignore[assignment]


def changed(request: ModelRequest, **fields: Any) -> ModelRequest:
    return ModelRequest(**{**{name: getattr(request, name) for name in request.__struct_fields__}, **fields})


def answer_message() -> AssistantMessage:
    from features.contracts.messages import Usage

    return AssistantMessage(
        content=[TextBlock(text="mine")], api="a", provider="p", model="m", usage=Usage(), stop_reason="stop", timestamp=0
    )


WRONG: list[tuple[type[ExtensionEvent], Any]] = [
    *((ContextBuilding, bad) for bad in (blank, no_list, own_words_last, strangers, result_alone)),
    *((BeforeProviderRequest, bad) for bad in (other_model, more_tools, same_tool_twice, no_request, no_output, half_a_change)),
    (MessageEnding, other_role),
    (MessageEnding, no_message),
    (ToolResulted, odd_result),
    (InputReceived, odd_input),
    (BeforeAgentStart, odd_start),
    (TurnEnded, odd_stop),
]


@pytest.mark.parametrize(("event", "bad"), WRONG, ids=[bad.__name__ for _, bad in WRONG])
async def test_a_wrong_change_is_dropped_as_a_whole(tmp_path: Path, event: type[ExtensionEvent], bad: Any) -> None:
    """The request and the conversation are what they would have been without it."""

    async def once(event: ExtensionEvent) -> None:
        if not seen:
            seen.append(event)
            await bad(event)

    seen: list[ExtensionEvent] = []
    r = Rig(tmp_path / "with", answers(call("t1", "look")), answers("done"), tools=[FunctionTool("look")])
    session = await r.open(extensions=(listening(event, once),))
    await session.prompt(say("u"))
    plain = Rig(tmp_path / "without", answers(call("t1", "look")), answers("done"), tools=[FunctionTool("look")])
    other = await plain.open()
    await other.prompt(say("u"))

    assert [texts(message) for message in session.manager.messages] == [texts(message) for message in other.manager.messages]
    assert [request.tools for request in r.provider.requests] == [request.tools for request in plain.provider.requests]
    assert ["gone" in request.system_prompt for request in r.provider.requests] == [False, False]
    [(_, name, _)] = errors(r.events)
    assert name == event.name


async def test_after_three_failures_in_a_row_an_extension_is_out(tmp_path: Path) -> None:
    """With all that it had registered; a success in between begins the count anew."""
    calls: list[int] = []

    async def activate(api: ExtensionApi) -> None:
        async def odd(event: TurnStarted) -> None:
            calls.append(event.turn_index)
            if len(calls) != 3:
                raise ValueError("no")

        api.on(TurnStarted, odd)
        api.register_tool(FunctionTool("extra"))
        api.register_command(ExtensionCommand(name="extra", description="Extra.", run=nothing))

    r = Rig(tmp_path, *[answers("done")] * 7)
    session = await r.open(extensions=(extension(activate),))
    for count in range(1, 8):
        await session.prompt(say("u"))
        assert session.extensions.states["one"] == "active" or count >= 6

    assert len(calls) == 6
    assert "3 times in a row" in session.extensions.states["one"]
    assert [request.tools for request in r.provider.requests] == [("extra",)] * 5 + [()] * 2
    assert session.extensions.commands() == ()
    assert "taken out" in errors(r.events)[-1][2]


async def test_a_guard_that_is_taken_out_leaves_its_door_shut(tmp_path: Path) -> None:
    """Whoever can make it fail three times must not get past it."""
    tool = FunctionTool("danger")
    steps = [step for number in range(4) for step in (answers(call(f"t{number}", "danger")), answers("done"))]
    r = Rig(tmp_path, *steps, tools=[tool])
    session = await r.open(extensions=(listening(ToolCalled, raises),))
    for _ in range(4):
        await session.prompt(say("u"))

    assert "3 times in a row" in session.extensions.states["one"]
    assert tool.calls == []
    assert "has failed and was taken out" in texts(session.manager.messages[-2])


async def nothing(arguments: str) -> CommandResult | None:
    return None


# Activation


@pytest.mark.parametrize("bad", [raises, hangs, leaves, no_coroutine], ids=lambda bad: bad.__name__)
async def test_an_activation_that_fails_after_registering_leaves_no_trace(tmp_path: Path, bad: Any) -> None:
    """But one ``extension_error``; the others are active."""

    async def activate(api: ExtensionApi) -> None:
        kept.append(api)
        api.on(TurnStarted, raises)
        api.register_tool(FunctionTool("extra"))
        api.register_command(ExtensionCommand(name="extra", description="Extra.", run=nothing))
        if bad is not no_coroutine:
            await bad(SessionStarted("new"))

    def sync(api: ExtensionApi) -> None:
        kept.append(api)
        api.on(TurnStarted, raises)

    kept: list[ExtensionApi] = []
    r = Rig(tmp_path, answers("done"))
    broken = extension(sync if bad is no_coroutine else activate)  # type: ignore[arg-type]
    session = await carried(r, r.open(extensions=(broken, listening(TurnStarted, ignored, name="two"))))
    await session.prompt(say("u"))

    assert [(name, event) for name, event, _ in errors(r.events)] == [("one", "activate")]
    assert r.provider.requests[0].tools == ()
    assert session.extensions.commands() == ()
    assert session.extensions.states["one"].startswith("failed: ")
    assert session.extensions.states["two"] == "active"
    with pytest.raises(RuntimeError, match="not at work in this session any more"):
        kept[0].on(TurnStarted, raises)


async def ignored(event: ExtensionEvent) -> None:
    return None


async def test_while_activating_only_registering_works(tmp_path: Path) -> None:
    """Everything else says so."""

    async def activate(api: ExtensionApi) -> None:
        for doing in (
            lambda: api.state("x"),
            lambda: api.follow_up("x", "y"),
            lambda: api.commands(),
            lambda: api.set_active_tools([]),
        ):
            with pytest.raises(RuntimeError, match="only register things while it is activating"):
                doing()
        for coroutine in (api.set_state("x", 1), api.prompt("x"), api.append_entry("x"), api.exec(["true"]), api.set_model("x")):
            with pytest.raises(RuntimeError, match="only register things while it is activating"):
                await coroutine
        done.append(True)

    done: list[bool] = []
    r = Rig(tmp_path)
    await r.open(extensions=(extension(activate),))
    assert (done, errors(r.events)) == ([True], [])


async def test_of_two_that_claim_one_name_the_first_is_used(tmp_path: Path) -> None:
    """Tool, command and extension name; the other is told of, and is used once the first has gone."""

    def claiming(name: str) -> Any:
        async def activate(api: ExtensionApi) -> None:
            async def run(arguments: str) -> CommandResult:
                return CommandResult(text=name)

            async def work(invocation: ToolInvocation) -> ToolResult:
                return text_result(name)

            taken[name] = [
                api.register_tool(FunctionTool("extra", work)),
                api.register_command(ExtensionCommand(name="extra", description="Extra.", run=run)),
            ]

        return extension(activate, name)

    taken: dict[str, list[Callable[[], None]]] = {}
    r = Rig(tmp_path, answers(call("t1", "extra")), answers("done"), answers(call("t2", "extra")), answers("done"))
    session = await r.open(extensions=(claiming("first"), claiming("second"), claiming("first")))
    await session.prompt(say("u"))
    assert (await session.extensions.run_command("extra", "", owner=False)).text == "first"
    for take_back in taken["first"]:
        take_back()
        take_back()
    await session.prompt(say("u"))
    assert (await session.extensions.run_command("extra", "", owner=False)).text == "second"

    results = [texts(message) for message in session.manager.messages if isinstance(message, ToolResultMessage)]
    assert results == ["first", "second"]
    assert [(name, event) for name, event, _ in errors(r.events)] == [
        ("second", "register"),
        ("second", "register"),
        ("first", "activate"),
    ]
    assert "the extension 'first' has one of that name" in errors(r.events)[0][2]


async def test_a_command_of_the_host_stays_the_hosts(tmp_path: Path) -> None:
    """An extension cannot take /stop away from a person."""

    async def activate(api: ExtensionApi) -> None:
        api.register_command(ExtensionCommand(name="stop", description="Mine.", run=nothing))

    r = Rig(tmp_path)
    session = await r.open(extensions=(extension(activate),), host_commands=("stop",))
    assert session.extensions.commands() == ()
    assert "the host has one of that name" in errors(r.events)[0][2]


async def test_an_extensions_tool_takes_the_place_of_a_built_in_one_while_it_is_there(tmp_path: Path) -> None:
    """And takes its own arguments."""
    own = FunctionTool("look")
    over = FunctionTool("look", required=("text",))

    async def activate(api: ExtensionApi) -> None:
        taken.append(api.register_tool(over))

    taken: list[Callable[[], None]] = []
    script = [
        answers(call("t1", "look")),
        answers(call("t2", "look", text="x")),
        answers("done"),
        answers(call("t3", "look")),
        answers("done"),
    ]
    r = Rig(tmp_path, *script, tools=[own])
    session = await r.open(extensions=(extension(activate),))
    await session.prompt(say("u"))
    taken[0]()
    await session.prompt(say("u"))

    assert (len(over.calls), len(own.calls)) == (1, 1)


# Calling back in


REFUSED: list[Callable[[ExtensionApi], Awaitable[Any]]] = [
    lambda api: api.prompt("x"),
    lambda api: api.set_model("scripted/one"),
    lambda api: api.compact(),
    lambda api: api.move_to(None),
    lambda api: api.fork(),
    lambda api: api.new_session(),
    lambda api: api.switch_session("x"),
    lambda api: api.reload(),
]


@pytest.mark.parametrize("event", [SessionStarted, AgentStarted, AgentSettled, MessageEnding, ToolCalled])
async def test_what_waits_for_a_handler_is_refused_in_it(tmp_path: Path, event: type[ExtensionEvent]) -> None:
    """Also in a task that the handler starts; once it has returned, that task is free."""

    async def activate(api: ExtensionApi) -> None:
        async def handler(event: ExtensionEvent) -> None:
            for doing in REFUSED:
                with pytest.raises(ReentrantCallError, match=event.name):
                    await doing(api)
                with pytest.raises(ReentrantCallError):
                    await asyncio.create_task(doing(api))  # type: ignore[arg-type]
            done.append(event.name)

        api.on(event, handler)

    done: list[str] = []
    r = Rig(tmp_path, answers(call("t1", "look")), answers("done"), tools=[FunctionTool("look")])
    session = await r.open(extensions=(extension(activate),))
    await session.prompt(say("u"))
    await session.close()

    assert done
    assert errors(r.events) == []


async def test_what_waits_for_a_tool_is_refused_in_it(tmp_path: Path) -> None:
    """A tool of an extension may queue a follow-up."""

    async def activate(api: ExtensionApi) -> None:
        async def work(invocation: ToolInvocation) -> ToolResult:
            for doing in REFUSED:
                with pytest.raises(ReentrantCallError, match="a running tool"):
                    await doing(api)
            assert api.follow_up("one", "go on")
            return text_result("ok")

        api.register_tool(FunctionTool("look", work))

    r = Rig(tmp_path, answers(call("t1", "look")), answers("done"), answers("followed"))
    session = await r.open(extensions=(extension(activate),))
    await session.prompt(say("u"))
    await until(lambda: len(r.provider.requests) == 3 and not session.running)

    assert [texts(message) for message in session.manager.messages] == ["u", "", "ok", "done", "go on", "followed"]


async def test_a_command_may_call_everything(tmp_path: Path) -> None:
    """Nobody waits for it."""

    async def activate(api: ExtensionApi) -> None:
        async def run(arguments: str) -> CommandResult:
            await api.prompt("from a command")
            await api.set_model("scripted/one")
            return CommandResult(text="ok")

        api.register_command(ExtensionCommand(name="go", description="Goes.", run=run))

    r = Rig(tmp_path, answers("done"))
    session = await r.open(extensions=(extension(activate),))
    await session.extensions.run_command("go", "", owner=True)
    await until(lambda: len(r.provider.requests) == 1 and not session.running)

    assert [texts(message) for message in session.manager.messages] == ["from a command", "done"]


async def says_no_text(arguments: str) -> CommandResult:
    return CommandResult(text=42)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [raises, gives, no_coroutine, leaves, interrupts, says_no_text], ids=lambda bad: bad.__name__)
async def test_a_command_that_breaks_says_so_to_the_person(tmp_path: Path, bad: Any) -> None:
    """With its name; what it means to say stands as it is."""

    async def activate(api: ExtensionApi) -> None:
        api.register_command(ExtensionCommand(name="go", description="Goes.", run=bad))
        api.register_command(ExtensionCommand(name="no", description="No.", run=refuses))

    async def refuses(arguments: str) -> None:
        raise UserMustAct("Not today.")

    r = Rig(tmp_path)
    session = await r.open(extensions=(extension(activate),))
    with pytest.raises(UserMustAct, match="/go of the extension 'one' failed"):
        await session.extensions.run_command("go", "x", owner=False)
    with pytest.raises(UserMustAct, match=r"^Not today\.$"):
        await session.extensions.run_command("no", "x", owner=False)
    assert len(errors(r.events)) == 1
