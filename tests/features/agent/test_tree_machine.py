"""Any sequence of talking, moving, forking, summing up, crashing and reopening keeps every entry and gives each call one result."""

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from features.agent import AgentSession, RetryOptions
from features.agent.testing import FunctionTool, answers, call, fails, hangs
from features.contracts.errors import OperatorMustAct, UserMustAct
from features.contracts.messages import ToolResultMessage, UserMessage
from features.contracts.sessions import MessageEntry, SessionEntry, SessionStore
from features.contracts.testing import FakeClock, sequential_ids
from features.contracts.tools import ToolInvocation, ToolResult
from features.sessions import SESSION_MIGRATIONS, DatabaseSessionStore, JsonlSessionStore, SessionTransfer
from features.storage import Database
from tests.features.agent.rig import Rig, check_results, say

T = TypeVar("T")
PLACES = st.integers(min_value=0, max_value=50)


async def forever(invocation: ToolInvocation) -> ToolResult:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


class Mortal:
    """A store as one process sees it; what that still wants written after its death is not."""

    def __init__(self, inner: SessionStore) -> None:
        self.dead = False
        self._inner = inner

    async def append(self, *arguments: Any, **more: Any) -> None:
        if self.dead:
            raise OperatorMustAct("the process is gone")
        await self._inner.append(*arguments, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the store's thread sets no event here
            await asyncio.sleep(0.0005)


class TreeMachine(RuleBasedStateMachine):
    """``known`` is what each session was seen to hold; what is on the disk must never be less."""

    sessions = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.stack = AsyncExitStack()
        self.known: dict[str, list[SessionEntry]] = {}
        self.rig: Rig
        self.session: AgentSession
        self.calls = 0
        self.run(self._begin())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self._end())
        self.runner.close()
        self.folder.cleanup()

    async def open_store(self) -> SessionStore:
        raise NotImplementedError

    async def _begin(self) -> None:
        self.store = await self.open_store()
        self.rig = Rig(Path(self.folder.name), tools=[FunctionTool("quick"), FunctionTool("forever", forever)], store=self.store)
        self.process = self.rig.store = Mortal(self.store)
        self.session = await self._open(None)

    async def _end(self) -> None:
        await self.session.close()
        await self.stack.aclose()

    async def _open(self, session_id: str | None) -> AgentSession:
        return await self.rig.open(session_id=session_id, retry=RetryOptions(max_attempts=0))

    def _note(self) -> None:
        self.known[self.session.id] = list(self.session.manager.entries)

    async def _prompt(self, *steps: Any) -> None:
        self.rig.provider.add(*steps)
        await self.session.prompt(say(f"p{self.calls}"))
        check_results(self.session.manager.messages)

    def _place(self, index: int) -> str | None:
        entries = self.session.manager.entries
        return entries[index % len(entries)].id if entries else None

    # What people and models do

    @rule(outcome=st.sampled_from(["answer", "fail", "tool"]))
    def talk(self, outcome: str) -> None:
        self.calls += 1
        steps = {
            "answer": [answers("yes")],
            "fail": [fails("auth", "half", error="no key")],
            "tool": [answers(call(f"c{self.calls}", "quick"), call(f"d{self.calls}", "ghost")), answers("done")],
        }
        self.run(self._prompt(*steps[outcome]))
        self._note()

    @rule()
    def stop_in_a_stream(self) -> None:
        self.run(self._stopped(hangs("half"), lambda: self.rig.provider.open_streams == 1))

    @rule()
    def stop_in_a_tool(self) -> None:
        self.calls += 1
        step = answers(call(f"e{self.calls}", "quick"), call(f"f{self.calls}", "forever"))
        tool = self.rig.tools.get("forever")
        assert isinstance(tool, FunctionTool)
        count = len(tool.calls)
        self.run(self._stopped(step, lambda: len(tool.calls) > count))

    async def _stopped(self, step: Any, until_then: Any) -> None:
        self.rig.provider.add(step)
        run = asyncio.create_task(self.session.prompt(say("stop me")))
        await eventually(until_then)
        await self.session.abort()
        await run
        check_results(self.session.manager.messages)
        self._note()

    @rule(index=PLACES, where=st.sampled_from(["entry", "start"]))
    def move(self, index: int, where: str) -> None:
        self.run(self.session.move_to(self._place(index) if where == "entry" else None))
        self._note()

    @rule()
    def undo(self) -> None:
        with suppress(UserMustAct):
            self.run(self.session.undo())
        self._note()

    @rule()
    def retry(self) -> None:
        self.rig.provider.add(answers("again"))
        try:
            self.run(self.session.retry())
            check_results(self.session.manager.messages)
        except UserMustAct:
            self.rig.provider._steps.pop()
        self._note()

    @rule(index=PLACES, name=st.sampled_from(["", "a", "b"]))
    def label(self, index: int, name: str) -> None:
        if (place := self._place(index)) is not None:
            self.run(self.session.label(place, name))
            self._note()

    @rule()
    def compact(self) -> None:
        """From the last thing that a person said, as the cut points of the compactor are."""
        manager = self.session.manager
        said = [entry.id for entry in manager.branch() if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)]
        if said and manager.leaf_id is not None:
            self.run(manager.compact("summary", first_kept_entry_id=said[-1], tokens_before=1, since=manager.leaf_id))
            self._note()

    @rule(target=sessions, index=PLACES, before=st.booleans())
    def fork(self, index: int, before: bool) -> str:
        place = self._place(index)
        if place is None:
            return self.session.id
        forked = self.run(self.session.moves.fork(place, before=before))
        self.known[forked] = self.run(self.store.load(forked))[1]
        return forked

    # What happens to them

    @rule(session_id=sessions)
    def resume(self, session_id: str) -> None:
        self.run(self._switch(session_id))

    async def _switch(self, session_id: str) -> None:
        await self.session.close()
        self.session = await self._open(session_id)

    @rule()
    def crash_in_a_tool(self) -> None:
        """The process is gone between a call and its result; the next one closes the call and answers."""
        self.run(self._crash())

    async def _crash(self) -> None:
        self.calls += 1
        tool = self.rig.tools.get("forever")
        assert isinstance(tool, FunctionTool)
        count = len(tool.calls)
        self.rig.provider.add(answers(call(f"g{self.calls}", "quick"), call(f"h{self.calls}", "forever")))
        run = asyncio.create_task(self.session.prompt(say("crash")))
        await eventually(lambda: len(tool.calls) > count and isinstance(self.session.manager.messages[-1], ToolResultMessage))
        seen = list(self.session.manager.entries)
        dead = self.session
        self.process.dead = True
        await self.reopen_store()
        self.process = self.rig.store = Mortal(self.store)
        self.session = await self._open(dead.id)
        assert list(self.session.manager.entries) == seen
        self._note()
        run.cancel()
        await asyncio.wait([run])
        self.rig.provider.add(answers("here again"))
        outcome = await self.session.resume()
        assert outcome is not None
        assert outcome.outcome == "success"
        check_results(self.session.manager.messages)
        self._note()

    async def reopen_store(self) -> None:
        raise NotImplementedError

    @invariant()
    def every_entry_is_on_the_disk(self) -> None:
        for session_id, entries in self.known.items():
            _, stored, _ = self.run(self.store.load(session_id))
            assert stored == entries
        _, _, leaf = self.run(self.store.load(self.session.id))
        assert leaf == self.session.manager.leaf_id


class FileTreeMachine(TreeMachine):
    """Over session files; a crash leaves half a line behind."""

    async def open_store(self) -> SessionStore:
        return JsonlSessionStore.in_folder(Path(self.folder.name) / "s", clock=FakeClock(), ids=sequential_ids("file"))

    async def reopen_store(self) -> None:
        assert isinstance(self.store, JsonlSessionStore)
        await self.store.close()
        path = next(path for path in Path(self.folder.name).rglob("*.jsonl") if path.stem == self.session.id)
        with path.open("a") as file:
            file.write('{"type":"message","id":"torn","par')
        self.store = await self.open_store()


class DatabaseTreeMachine(TreeMachine):
    """Over the database; what is exported in the end is imported elsewhere without a difference."""

    async def open_store(self) -> SessionStore:
        self.database = await self.stack.enter_async_context(Database(Path(self.folder.name) / "state.db", [SESSION_MIGRATIONS]))
        return DatabaseSessionStore(self.database)

    async def reopen_store(self) -> None:
        self.store = DatabaseSessionStore(self.database)

    async def _end(self) -> None:
        transfer = SessionTransfer(self.store, originals=Path(self.folder.name), clock=FakeClock(), ids=sequential_ids("new"))
        for session_id in self.known:
            exported = await transfer.export(session_id)
            imported = await transfer.import_file(exported.data, "web:other")
            assert (await transfer.export(imported.id)).data == exported.data
            assert (await transfer.check(session_id)).problems == []
        await super()._end()


_SETTINGS = settings(max_examples=8, stateful_step_count=16, deadline=None, suppress_health_check=list(HealthCheck))
TestFileTrees = FileTreeMachine.TestCase
TestFileTrees.settings = _SETTINGS
TestDatabaseTrees = DatabaseTreeMachine.TestCase
TestDatabaseTrees.settings = _SETTINGS
