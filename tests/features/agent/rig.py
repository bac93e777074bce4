"""A session with everything around it, for the tests of the agent."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from features.agent import AgentSession, AgentSessionFactory, AgentSessionOptions, RetryOptions
from features.agent.testing import SCRIPTED_MODEL, ScriptedModels, ScriptedProvider, Step
from features.compaction import CompactionOptions
from features.contracts.agent import EntryJournal, Prompt
from features.contracts.events import (
    AgentSettled,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    SessionEvent,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from features.contracts.messages import AssistantMessage, Message, TextBlock, ToolCall, ToolResultMessage
from features.contracts.models import Model
from features.contracts.sessions import SessionEntry, SessionStore, TransactionWork
from features.contracts.stream import TextDelta
from features.contracts.testing import FakeClock, sequential_ids
from features.contracts.tools import Tool, ToolContext
from features.processes import SecretRedactor
from features.sessions import MemorySessionStore
from features.system_prompt import SystemPromptBuilder
from features.tools import ToolRegistry

SCOPE = "console:test"
SECRET = "sk-live-0123456789abcdef"


class CountingStore:
    """The store in memory, with a count of its commits; ``fail`` says which of them cannot be kept, counted from 1."""

    def __init__(self, fail: Callable[[int], Exception | None] = lambda _: None) -> None:
        self.inner: SessionStore = MemorySessionStore()
        self.commits = 0
        self._fail = fail

    async def append(
        self, session_id: str, entries: Sequence[SessionEntry], *, leaf: str | None, also: TransactionWork | None = None
    ) -> None:
        await asyncio.sleep(0)
        self.commits += 1
        if (error := self._fail(self.commits)) is not None:
            raise error
        await self.inner.append(session_id, entries, leaf=leaf, also=also)
        await asyncio.sleep(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Rig:
    """``provider``'s script runs out exactly, or ``check`` says so."""

    def __init__(self, tmp_path: Path, *steps: Step, tools: Sequence[Tool] = (), store: Any = None, models: Sequence[Model] = ()) -> None:
        self.clock = FakeClock()
        self.provider = ScriptedProvider(*steps)
        self.models = ScriptedModels(self.provider, *models)
        self.store = CountingStore() if store is None else store
        self.tools = ToolRegistry(tools)
        self.redactor = SecretRedactor()
        self.redactor.add(SECRET, name="test")
        self.workspace = tmp_path
        self.events: list[SessionEvent] = []
        self.ids = sequential_ids()

    async def open(
        self,
        *,
        retry: RetryOptions | None = None,
        max_turns: int = 100,
        session_id: str | None = None,
        journal: EntryJournal | None = None,
        compaction: CompactionOptions | None = None,
        fallbacks: tuple[str, ...] = (),
        **options: Any,
    ) -> AgentSession:
        factory = AgentSessionFactory(
            store=self.store,
            models=self.models,
            prompts=SystemPromptBuilder(),
            redactor=self.redactor,
            clock=self.clock,
            ids=self.ids,
            random=Random(1),
            retry=retry,
            max_turns=max_turns,
            compaction=compaction,
            fallbacks=fallbacks,
        )
        context = ToolContext(address=SCOPE, session_id="", workspace=self.workspace, scratch=self.workspace)
        given = {"model": SCRIPTED_MODEL.reference, **options}
        session = await factory.create(
            AgentSessionOptions(
                scope=SCOPE, session_id=session_id, tools=self.tools, tool_context=context, chat="A chat.", journal=journal, **given
            )
        )
        session.subscribe(self.events.append)
        return session

    def trace(self) -> list[str]:
        """The events, as short words; message updates left out."""
        return [word for event in self.events if (word := _word(event)) is not None]


def _word(event: SessionEvent) -> str | None:
    match event:
        case MessageUpdate():
            return None
        case MessageStart():
            return f"M+{event.role}"
        case MessageEnd(message=AssistantMessage() as message):
            return f"M-assistant({message.stop_reason})"
        case MessageEnd():
            return f"M-{_role(event.message)}"
        case ToolExecutionStart():
            return f"X+{event.tool_call_id}"
        case ToolExecutionEnd():
            return f"X-{event.tool_call_id}" + ("!" if event.is_error else "")
        case AgentSettled():
            return f"settled({event.outcome})"
        case _:
            return type(event).__name__


def _role(message: Message) -> str:
    return {"UserMessage": "user", "ToolResultMessage": "toolResult", "CustomMessage": "custom", "CompactionSummaryMessage": "summary"}[
        type(message).__name__
    ]


def say(text: str, *ids: str, owner: bool = False) -> Prompt:
    return Prompt(text=text, source_ids=ids, owner=owner)


def roles(messages: Sequence[Message]) -> list[str]:
    return [f"assistant({message.stop_reason})" if isinstance(message, AssistantMessage) else _role(message) for message in messages]


def texts(message: Message) -> str:
    content = getattr(message, "content", "")
    return content if isinstance(content, str) else "".join(block.text for block in content if isinstance(block, TextBlock))


def shown(events: Sequence[SessionEvent]) -> str:
    """What a viewer has seen of assistant texts, failed messages dropped."""
    kept, current = "", ""
    for event in events:
        if isinstance(event, MessageUpdate) and isinstance(event.assistant_message_event, TextDelta):
            current += event.assistant_message_event.delta
        elif isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            kept += "" if event.message.stop_reason == "error" else current
            current = ""
    return kept


def check_grammar(events: Sequence[SessionEvent]) -> None:
    """Every start has its end, nothing happens outside of a run, and a run's last event is that it settled."""
    open_tools: list[str] = []
    open_message, in_turn, in_run = False, False, False
    for event in events:
        match event:
            case AgentStart():
                assert not in_run
                in_run = True
            case TurnStart():
                assert in_run
                assert not in_turn
                in_turn = True
            case MessageStart():
                assert in_turn
                assert not open_message
                open_message = True
            case MessageUpdate():
                assert open_message
            case MessageEnd():
                assert open_message
                open_message = False
            case ToolExecutionStart():
                open_tools.append(event.tool_call_id)
            case ToolExecutionEnd():
                open_tools.remove(event.tool_call_id)
            case TurnEnd():
                assert in_turn
                assert not open_message
                assert not open_tools
                in_turn = False
            case AgentSettled():
                assert in_run
                assert not in_turn
                in_run = False
            case _:
                pass
    assert not in_run
    assert not open_tools


def check_results(messages: Sequence[Message]) -> None:
    """Every call of an answer that counts has exactly one result, right after it and in the calls' order."""
    expected: list[str] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            assert expected, "a result without a call"
            assert expected.pop(0) == message.tool_call_id
            continue
        assert not expected, f"calls {expected} have no result"
        if isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
            expected = [block.id for block in message.content if isinstance(block, ToolCall)]
    assert not expected, f"calls {expected} have no result"


async def until(condition: Callable[[], bool]) -> None:
    """Let the other tasks work until something is so."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not happen")
