"""Every event reaches the extensions once, in order, and what they make of it counts."""

from collections.abc import Callable

from features.agent.testing import FunctionTool, answers, call
from features.contracts.extension_events import (
    MessageUpdated,
)
from tests.features.agent.recording import Recorder
from tests.features.agent.rig import Rig, say

MakeRig = Callable[..., Rig]


async def test_a_run_with_a_tool_tells_everything_once_and_in_order(rig: MakeRig) -> None:
    """From the session's start to its end."""
    heard = Recorder()
    r = rig(answers("I look", call("t1", "look")), answers("done"), tools=[FunctionTool("look")])
    session = await r.open(extensions=(heard.spec(),))
    await session.prompt(say("u"))
    await session.close()

    words = [word for word in heard.words if word != "message_update"]
    assert words == [
        "session_start",
        "resources_discover",
        "input",
        "before_agent_start",
        "agent_start",
        "turn_start",
        "message_start(user)",
        "message_end(user)",
        "context",
        "before_provider_request",
        "message_start(assistant)",
        "message_end(assistant)",
        "tool_execution_start(t1)",
        "tool_call(t1)",
        "tool_result(t1)",
        "tool_execution_end(t1)",
        "message_start(toolResult)",
        "message_end(toolresult)",
        "turn_end",
        "turn_start",
        "context",
        "before_provider_request",
        "message_start(assistant)",
        "message_end(assistant)",
        "turn_end",
        "agent_end",
        "agent_settled",
        "session_shutdown",
    ]
    assert "".join(event.delta for event in heard.events if isinstance(event, MessageUpdated)) == "I lookdone"
