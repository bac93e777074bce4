"""Many results at once do not fill the next request."""

from collections.abc import Callable
from pathlib import Path

from features.agent.testing import FunctionTool, answers, call
from features.contracts.messages import ToolResultMessage
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from tests.features.agent.rig import Rig, say, texts

MakeRig = Callable[..., Rig]
LONG = "0123456789" * 5_000


async def long_result(invocation: ToolInvocation) -> ToolResult:
    return text_result(LONG)


async def test_the_results_of_one_answer_are_capped_together_and_kept_in_files(rig: MakeRig, tmp_path: Path) -> None:
    """One answer that reads twenty files must not end the session; the model learns where the rest is."""
    calls = [call(f"c{number}", "long") for number in range(8)]
    r = rig(answers(*calls), answers("ok"), tools=[FunctionTool("long", long_result)])
    session = await r.open()
    await session.prompt(say("u"))

    found = [texts(message) for message in session.manager.messages if isinstance(message, ToolResultMessage)]
    assert [text == LONG for text in found] == [True] * 4 + [False] * 4
    assert sum(map(len, found)) < 220_000
    assert all(text.startswith("0123456789") for text in found)
    kept = {Path(text.rpartition("Full result: ")[2].rstrip("]")) for text in found[4:]}
    assert len(kept) == 4
    assert {path.read_text() for path in kept} == {LONG}
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
