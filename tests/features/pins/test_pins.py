"""Pinned rules, in a real session."""

from pathlib import Path

import pytest

from features.agent import AgentSession
from features.agent.testing import answers
from features.contracts.errors import UserMustAct
from features.contracts.sessions import CustomEntry
from features.pins import Pins
from tests.features.agent.rig import SECRET, Rig, say

HEADING = "Pinned by the people in this chat"


async def pin(session: AgentSession, arguments: str = "") -> str:
    return (await session.extensions.run_command("pin", arguments, owner=False)).text


async def opened(r: Rig) -> AgentSession:
    return await r.open(extensions=(Pins().spec(),))


async def test_what_is_pinned_stands_in_every_request_until_it_is_taken_away(tmp_path: Path) -> None:
    """At the end of the system prompt, in the order of pinning."""
    r = Rig(tmp_path, answers("a"), answers("b"), answers("c"))
    session = await opened(r)
    assert await pin(session, "never  touch\nthe past") == "Pinned as number 1."
    assert await pin(session, "speak German") == "Pinned as number 2."
    await session.prompt(say("u"))
    assert await pin(session, "remove 1") == "No longer pinned: never touch the past"
    await session.prompt(say("v"))
    await pin(session, "remove 1")
    await session.prompt(say("w"))

    first, second, third = (request.system_prompt for request in r.provider.requests)
    assert first.endswith("- never touch the past\n- speak German")
    assert second.endswith("- speak German")
    assert "never touch" not in second
    assert HEADING not in third


async def test_pins_outlive_the_session_in_memory(tmp_path: Path) -> None:
    """And cost nothing when they are read again."""
    r = Rig(tmp_path, answers("a"))
    await pin(await opened(r), "speak German")
    commits = r.store.commits
    session = await opened(r)
    assert r.store.commits == commits
    assert await pin(session) == "1. speak German"
    await session.prompt(say("u"))

    assert "- speak German" in r.provider.requests[0].system_prompt


async def test_pins_follow_the_branch(tmp_path: Path) -> None:
    """Going back brings back what held there."""
    r = Rig(tmp_path, answers("a"), answers("b"))
    session = await opened(r)
    await pin(session, "one")
    here = session.manager.leaf_id
    await pin(session, "two")
    await session.move_to(here)
    assert await pin(session) == "1. one"
    await session.prompt(say("u"))
    await session.move_to(None)
    await session.prompt(say("v"))

    assert "- one" in r.provider.requests[0].system_prompt
    assert "- two" not in r.provider.requests[0].system_prompt
    assert HEADING not in r.provider.requests[1].system_prompt


async def test_a_crash_between_the_list_and_what_the_model_reads_is_mended(tmp_path: Path) -> None:
    """When the session is opened, and when the branch ends between the two."""
    r = Rig(tmp_path, answers("a"))
    session = await opened(r)
    await pin(session, "one")
    listed = next(entry for entry in session.manager.branch() if isinstance(entry, CustomEntry) and entry.custom_type == "pumice.state")
    await session.manager.branch_to(listed.id)
    await session.close()
    session = await opened(r)
    await session.prompt(say("u"))

    assert "- one" in r.provider.requests[0].system_prompt


async def test_bad_input_is_told_with_what_would_be_right(tmp_path: Path) -> None:
    """And changes nothing."""
    session = await opened(Rig(tmp_path))
    assert "Nothing is pinned here" in await pin(session)
    for arguments, said in (("remove 1", "Nothing is pinned"), ("x" * 1001, "1,001 characters")):
        with pytest.raises(UserMustAct, match=said):
            await pin(session, arguments)
    await pin(session, "one")
    assert "already, as number 1" in await pin(session, "one")
    for number in ("", "0", "2", "x", "-1", "²"):
        with pytest.raises(UserMustAct, match="from 1 to 1"):
            await pin(session, f"remove {number}")
    for rule in range(2, 33):
        await pin(session, f"rule {rule}")
    with pytest.raises(UserMustAct, match="no more fit"):
        await pin(session, "one too many")
    assert len((await pin(session)).splitlines()) == 32


async def test_a_secret_is_not_pinned(tmp_path: Path) -> None:
    """What is stored and sent has passed the redactor."""
    session = await opened(Rig(tmp_path))
    await pin(session, f"the key is {SECRET}")

    assert await pin(session) == "1. the key is [REDACTED]"
