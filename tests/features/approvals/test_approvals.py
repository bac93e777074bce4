"""Which calls run, and which are asked about."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from features.approvals import APPROVAL_MIGRATIONS, ApprovalOptions
from features.contracts.chat import Address
from features.contracts.errors import OperatorMustAct
from features.contracts.extension_events import ProcessSpawning, ToolCalled
from features.storage import Database
from tests.features.approvals.rig import Session

ASK_BASH: dict[str, Any] = {"tools": {"bash": "ask"}}
ONCE, ALWAYS, DENY = "Allow once", "Allow always for this chat", "Deny"
PLACE = Address("telegram", "1")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with Database(tmp_path / "state.db", (APPROVAL_MIGRATIONS,)) as opened:
        yield opened


async def test_what_has_no_policy_runs_unasked(database: Database) -> None:
    """Approvals are switched on tool by tool."""
    session = await Session(database, **ASK_BASH).start()
    event = await session.call("read", path="a")

    assert event.refusal is None
    assert session.person.asked == []


async def test_a_call_runs_once_it_is_allowed(database: Database) -> None:
    """The person sees the very command, who may answer what, and has the configured time."""
    session = await Session(database, timeout_s=60.0, **ASK_BASH).start()
    session.person.answer = ONCE
    event = await session.call("bash", command="git push --force", timeout=600)

    assert event.refusal is None
    (asked,) = session.person.asked
    assert "May I run this command?\n\n```\ngit push --force\n\ntimeout: 600\n```" in asked.text
    assert (asked.options, asked.timeout_s, asked.owners_only) == ([ONCE, ALWAYS, DENY], 60.0, [ALWAYS])
    await session.call("bash", command="git push --force")
    assert len(session.person.asked) == 2, "once is once"


@pytest.mark.parametrize(("answer", "said"), [(DENY, "did not allow"), (None, "within 300 seconds")])
async def test_no_and_no_answer_block_the_call(database: Database, answer: str | None, said: str) -> None:
    """The model reads which of the two it was."""
    session = await Session(database, **ASK_BASH).start()
    session.person.answer = answer
    event = await session.call("bash", command="rm -r x")

    assert said in (event.refusal or "")


async def test_where_nobody_can_be_asked_the_call_is_blocked_without_a_question(database: Database) -> None:
    """A single question on a command line, a job at night."""
    session = await Session(database, **ASK_BASH).start()
    session.person.interactive = False
    event = await session.call("bash", command="ls")

    assert "nobody is here" in (event.refusal or "")
    assert session.person.asked == []


async def test_a_denied_tool_never_runs_and_is_not_asked_about(database: Database) -> None:
    """The configuration has decided; a person in a chat cannot."""
    session = await Session(database, tools={"write": "deny", "mcp": "deny", "mcp_files_read": "allow"}).start()

    assert "approvals.write is 'deny'" in ((await session.call("write", path="a")).refusal or "")
    assert "approvals.mcp is 'deny'" in ((await session.call("mcp_files_write", path="a")).refusal or "")
    assert (await session.call("mcp_files_read", path="a")).refusal is None
    assert session.person.asked == []


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("git status", False),
        ("git  'status'", False),
        ("git log", False),
        ("git log -p src/main.py", False),
        ("npm run build-all", False),
        ("npm run clean-all", True),
        ("git push", True),
        ("git status -s", True),
        ("git status; rm -r x", True),
        ("git log | sh", True),
        ("git log && sh", True),
        ("git log > x", True),
        ("git log $(sh)", True),
        ("git log `sh`", True),
        ("git log ${X}", True),
        ("git log 'a;b'", True),
        ("git log\nsh", True),
        ("git log\rsh", True),
        ("git log *", True),
        ("git log {a,b}", True),
        ("git log ~", True),
        ("git log 'open", True),
        ("git log \\", True),
        ("PAGER=sh git log", True),
        ("/tmp/git status", True),
        ("", True),
    ],
)
async def test_allowed_commands_never_ask_and_nothing_hides_behind_them(database: Database, command: str, asks: bool) -> None:
    """One simple command, word by word; whatever a shell would expand, join or redirect is asked about."""
    session = await Session(database, allow_commands=("git status", "git log *", "npm run build*"), **ASK_BASH).start()
    event = await session.call("bash", command=command)

    assert bool(session.person.asked) is asks
    assert (event.refusal is not None) is asks


async def test_always_is_for_this_very_command_in_this_chat(database: Database) -> None:
    """Also in its other topics and after a restart; not for a longer one, and not elsewhere."""
    session = await Session(database, **ASK_BASH).start()
    session.person.answer = ALWAYS
    assert (await session.call("bash", command="git push 'my branch'")).refusal is None
    session.person.answer = DENY

    topic = await Session(database, "telegram:1/9", **ASK_BASH).start()
    assert (await topic.call("bash", command='git push "my branch"')).refusal is None
    assert topic.person.asked == []
    assert (await session.call("bash", command="git push 'my branch' --force")).refusal is not None
    elsewhere = await Session(database, "telegram:2", **ASK_BASH).start()
    assert (await elsewhere.call("bash", command="git push 'my branch'")).refusal is not None


async def test_a_command_that_a_shell_would_expand_is_allowed_once_at_most(database: Database) -> None:
    """What it runs tomorrow is not what it runs today."""
    session = await Session(database, **ASK_BASH).start()
    session.person.answer = ONCE
    await session.call("bash", command="rm *.tmp")

    assert session.person.asked[0].options == [ONCE, DENY]


async def test_always_for_another_tool_is_for_all_its_calls(database: Database) -> None:
    """And the question says so."""
    session = await Session(database, tools={"write": "ask", "edit": "ask"}).start()
    session.person.answer = ALWAYS
    await session.call("write", path="a.txt", content="one\ntwo")
    session.person.answer = DENY

    assert "May I use `write`?\n\n```\npath: a.txt\ncontent:\none\ntwo\n```" in session.person.asked[0].text
    assert "every call of it" in session.person.asked[0].text
    assert (await session.call("write", path="b.txt", content="")).refusal is None
    assert (await session.call("edit", path="b.txt")).refusal is not None


async def test_what_was_allowed_is_listed_and_can_be_taken_back(database: Database) -> None:
    """By its own id, so that an old button never removes another."""
    session = await Session(database, tools={"bash": "ask", "write": "ask"}).start()
    session.person.answer = ALWAYS
    await session.call("bash", command="git  push")
    await session.call("write", path="a")
    granted = await session.approvals.granted(PLACE)
    assert {(grant.tool, grant.command) for grant in granted} == {("bash", "git push"), ("write", None)}

    (push,) = [grant for grant in granted if grant.tool == "bash"]
    assert await session.approvals.remove(PLACE, [push.id]) == 1
    assert await session.approvals.remove(PLACE, [push.id]) == 0
    session.person.answer = DENY
    assert (await session.call("bash", command="git push")).refusal is not None
    assert (await session.call("write", path="a")).refusal is None


async def test_too_many_standing_approvals_are_refused(database: Database) -> None:
    """The table is bounded, and a call that could not be noted does not run."""
    session = await Session(database, **ASK_BASH).start()
    session.person.answer = ALWAYS
    for number in range(200):
        await session.call("bash", command=f"echo {number}")

    assert "standing approvals already" in ((await session.call("bash", command="echo more")).refusal or "")


async def test_what_is_asked_about_is_what_other_extensions_made_of_the_call(database: Database) -> None:
    """An extension that changes the arguments causes a question about what it made of them, whatever was allowed before."""
    session = await Session(database, allow_commands=("git status",), **ASK_BASH).start()

    async def harden(event: ToolCalled) -> None:
        event.arguments = {"command": "sh -c evil"}

    session.on(ToolCalled, harden, priority=-5)
    event = await session.call("bash", command="git status")

    assert "sh -c evil" in session.person.asked[0].text
    assert event.refusal is not None


@pytest.mark.parametrize("allowed", [(), ("git status",)])
async def test_what_was_approved_cannot_be_changed_any_more(database: Database, allowed: tuple[str, ...]) -> None:
    """Neither by setting the arguments nor through a reference to them; whether a person or a pattern allowed it."""
    session = await Session(database, allow_commands=allowed, **ASK_BASH).start()
    session.person.answer = ONCE
    arguments = {"command": "git status"}
    event = await session.call("bash", **arguments)
    assert event.refusal is None

    event.arguments["command"] = "evil"
    event.call.arguments["command"] = "evil"
    assert event.arguments == {"command": "git status"}
    with pytest.raises(RuntimeError, match="approved as they are"):
        event.arguments = {"command": "evil"}


async def test_arguments_that_change_while_the_person_thinks_change_nothing(database: Database) -> None:
    """Another extension may hold on to the dict that it was given."""
    session = await Session(database, **ASK_BASH).start()
    session.person.answer, session.person.thinking = ONCE, asyncio.Event()
    held: list[dict[str, object]] = []

    async def keep(event: ToolCalled) -> None:
        held.append(event.arguments)

    session.on(ToolCalled, keep)
    calling = asyncio.create_task(session.call("bash", command="git status"))
    while not session.person.asked:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.001)
    held[0]["command"] = "evil"
    session.person.thinking.set()

    assert (await calling).arguments == {"command": "git status"}


async def test_a_command_that_an_extension_changes_on_its_way_to_the_shell_is_not_started(database: Database) -> None:
    """What the host itself puts around it, like a sandbox, is not meant."""
    session = await Session(database, **ASK_BASH).start()
    assert (await session.spawn("/bin/bash", "-c", "git status")).refusal is None

    async def wrap(event: ProcessSpawning) -> None:
        event.spawn.argv = ("evil", *event.spawn.argv)

    session.on(ProcessSpawning, wrap)
    assert "after it was approved" in ((await session.spawn("/bin/bash", "-c", "git status")).refusal or "")
    assert (await session.spawn("server", purpose="mcp")).refusal is None


@pytest.mark.parametrize("fault", [OperatorMustAct("the disk is full. Make room."), KeyError("defect")])
async def test_whatever_breaks_the_call_does_not_run(database: Database, fault: Exception) -> None:
    """And it is not the extension's failure: one that failed too often would be taken out, and nothing be asked any more."""
    session = await Session(database, **ASK_BASH).start()
    session.person.answer = fault
    event = await session.call("bash", command="ls")

    assert event.refusal is not None
    assert "handler failed" not in event.refusal


async def test_a_question_that_is_cut_is_cut_through(database: Database) -> None:
    """/stop ends the run, and with it what it waits for."""
    session = await Session(database, **ASK_BASH).start()
    session.person.thinking = asyncio.Event()
    calling = asyncio.create_task(session.call("bash", command="ls"))
    while not session.person.asked:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.001)
    calling.cancel()

    with pytest.raises(asyncio.CancelledError):
        await calling


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"allow_commands": ("ls", "git log | sh")}, r"allow_commands\[1\] is 'git log \| sh'; it must be a single simple command"),
        ({"allow_commands": ("*",)}, "name its program in full"),
        ({"allow_commands": ("",)}, "single simple command"),
        ({"allow_commands": ("A=1 make",)}, "does not begin with a program"),
        ({"timeout_s": 3600.0}, "at most 840"),
    ],
)
def test_options_that_make_no_sense_are_errors(options: dict[str, object], said: str) -> None:
    """At the start, and not when it matters."""
    with pytest.raises(ValueError, match=said):
        ApprovalOptions(**options)  # type: ignore[arg-type]
