"""Skills and templates that an extension brings."""

from pathlib import Path

from features.agent.testing import ScriptedProvider, answers
from features.contracts.extension_events import ResourcesDiscovered
from tests.bot.conversations.rig import opened
from tests.features.agent.recording import listening


async def test_an_extension_brings_skills_and_templates(tmp_path: Path) -> None:
    """A folder of skills, a skill's own folder and single files; what is not there is left out."""
    brought = tmp_path / "brought"
    (brought / "many" / "sail").mkdir(parents=True)
    (brought / "many" / "sail" / "SKILL.md").write_text("---\nname: sail\ndescription: For sailing.\n---\nHoist it.")
    (brought / "dive").mkdir()
    (brought / "dive" / "SKILL.md").write_text("---\nname: dive\ndescription: For diving.\n---\nBreathe.")
    (brought / "hello.md").write_text("Say hello to $1.")

    async def bring(event: ResourcesDiscovered) -> None:
        event.skill_paths += [brought / "many", brought / "dive", brought / "nowhere"]
        event.template_paths.append(brought / "hello.md")

    provider = ScriptedProvider(answers("a"), answers("b"), answers("c"))
    async with opened(tmp_path / "host", provider, extensions=(listening(ResourcesDiscovered, bring),)) as rig:
        chat = rig.chat()
        await rig.conversation().session()
        for said in ("/skill:sail now", "/skill:dive", "/hello Anna"):
            chat.says(said)
            await chat.answer()

    assert [part in rig.prompts(number)[-1] for number, part in enumerate(("Hoist it.", "Breathe.", "Say hello to Anna."))] == [True] * 3
