"""Skills and templates said in a chat."""

from pathlib import Path

from features.agent.testing import ScriptedProvider, answers, call
from features.contracts.chat import Attachment, Person
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from tests.bot.conversations.rig import eventually, opened
from tests.bot.conversations.test_busy import Gated


def put_template(folder: Path, name: str, text: str) -> None:
    (folder / "prompts").mkdir(parents=True, exist_ok=True)
    (folder / "prompts" / f"{name}.md").write_text(text)


def put_skill(folder: Path, name: str, body: str = "Do it.") -> Path:
    path = folder / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: For {name}.\n---\n{body}\n")
    return path


async def test_a_template_is_filled_and_asked(tmp_path: Path) -> None:
    """The host's is anybody's; what is stored is what the model reads."""
    put_template(tmp_path, "review", "Review $1 for ${@:2}. /review")
    async with opened(tmp_path, ScriptedProvider(answers("done"))) as rig:
        rig.chat().says("/review main.py style 'and tests'")

        assert (await rig.chat().answer()).text == "done"
        assert rig.prompts(0) == ["Review main.py for style and tests. /review"]


async def test_in_a_group_the_name_stands_before_what_was_asked(tmp_path: Path) -> None:
    """It is nobody's argument."""
    put_template(tmp_path, "review", "Review [$1] [$2].")
    async with opened(tmp_path, ScriptedProvider(answers("done"))) as rig:
        rig.chat(group=True).says("/review@my_bot main.py")

        assert (await rig.chat().answer()).text == "done"
        assert rig.prompts(0) == ["Anna:\nReview [main.py] []."]


async def test_a_file_comes_with_a_template(tmp_path: Path) -> None:
    """Where it is kept is told behind the text, and is no argument either."""
    put_template(tmp_path, "sum-up", "Sum up [$@].")
    async with opened(tmp_path, ScriptedProvider(answers("done"))) as rig:
        rig.channel.downloads["f"] = b"content"
        rig.chat().says("/sum_up", attachments=(Attachment(ref="f", name="a.txt", kind="file"),))

        assert (await rig.chat().answer()).text == "done"
        [prompt] = rig.prompts(0)
        assert prompt.startswith("Sum up [].\n")
        assert "a.txt" in prompt


async def test_a_skill_is_said_by_its_command_and_offered_in_the_prompt(tmp_path: Path) -> None:
    """Names and descriptions for the model, the text on demand."""
    path = put_skill(tmp_path, "deploy", "Check twice.")
    async with opened(tmp_path, ScriptedProvider(answers("one"), answers("two"))) as rig:
        rig.tool.spec = type(rig.tool.spec)(name="read", description="d", parameters={"type": "object"})
        rig.chat().says("/skill:deploy now")
        await rig.chat().answer()
        rig.chat().says("/deploy later")
        await rig.chat().answer()

        assert "Check twice." in rig.prompts(0)[0]
        assert rig.prompts(0)[0].endswith("</skill>\n\nnow")
        assert rig.prompts(1)[1].endswith("</skill>\n\nlater")
        assert f"<location>{path}</location>" in rig.provider.requests[0].system_prompt
        assert "Check twice." not in rig.provider.requests[0].system_prompt


async def test_what_calls_nothing_is_said_or_helped(tmp_path: Path) -> None:
    """A path is a message, a missing skill is named, and a mistyped command is still seen."""
    put_skill(tmp_path, "deploy")
    async with opened(tmp_path, ScriptedProvider(answers("a path"))) as rig:
        rig.chat().says("/usr/bin/env")
        assert (await rig.chat().answer()).text == "a path"
        rig.chat().says("/skill:deplyo now")
        assert (await rig.chat().answer()).text == "There is no skill `deplyo`. Did you mean `/skill:deploy`?"
        rig.chat().says("/skill:zzz")
        assert "`/skills` lists" in (await rig.chat().answer()).text
        rig.chat().says("/statsu")
        assert "Did you mean /status?" in (await rig.chat().answer()).text


async def test_a_skill_that_the_agent_installs_is_asked_about_and_used_after_consent(tmp_path: Path) -> None:
    """Until then neither the model nor the command sees it; a change is a new question."""
    provider = ScriptedProvider(answers(call("c", "work")), answers("installed"), answers("used"), answers(call("c", "work")), answers("x"))
    async with opened(tmp_path, provider) as rig:
        bodies = iter(["Echo.", "Echo louder."])

        async def install(invocation: ToolInvocation) -> ToolResult:
            put_skill(invocation.context.workspace, "echo", next(bodies))
            return text_result("ok")

        rig.tool._run = install
        chat = rig.chat()
        chat.says("make a skill")
        assert (await chat.answer()).text == "installed"
        question = await chat.answer()
        assert "new skill in this chat's folder, `echo`" in question.text
        [[show, allow, refuse]] = question.buttons

        chat.says("/skill:echo")
        assert "once you allow it" in (await chat.answer()).text
        chat.presses(show)
        assert "Echo." in (await chat.answer()).text
        chat.presses(allow)
        assert "may be used" in (await chat.answer()).text
        chat.says("/skill:echo hi")
        assert (await chat.answer()).text == "used"
        assert "Echo." in rig.prompts(2)[-1]

        chat.says("improve it")
        assert (await chat.answer()).text == "x"
        assert "new skill" in (await chat.answer()).text
        chat.presses(allow)
        assert "has changed since" in (await chat.answer()).text
        assert refuse.startswith("/skills refuse skill echo ")
        await rig.idle()


async def test_in_a_group_an_owner_decides(tmp_path: Path) -> None:
    """The question says so; somebody else's press changes nothing."""
    async with opened(tmp_path, ScriptedProvider(answers("hi"))) as rig:
        chat = rig.channel.chat("1", group=True, person="2", name="Bert")
        chat.says("hello")
        await chat.answer()
        await rig.idle()
        put_skill(tmp_path / "workspaces" / "loop-1", "echo")
        chat.says("/skills")
        listed = await chat.answer()
        assert "An owner decides." in listed.text
        [[_, allow, _]] = listed.buttons
        chat.presses(allow)
        assert "only an owner" in (await chat.answer()).text
        chat.says(allow, sender=Person(id="loop:1", name="Anna"))
        assert "may be used" in (await chat.answer()).text


async def test_a_template_that_waits_in_the_line_is_filled_when_its_turn_comes(tmp_path: Path) -> None:
    """While a run goes on, whether it steers or is collected; collected messages do not become its arguments."""
    put_template(tmp_path, "review", "Review [$@].")
    async with opened(tmp_path, ScriptedProvider(answers(call("c", "work")), answers("first"), answers("second"))) as rig:
        tool = Gated(rig)
        rig.chat().says("do it")
        await tool.begun.wait()
        rig.chat().says("/review a")
        await eventually(lambda: rig.conversation().status().queued == 1)
        tool.go_on.set()
        assert (await rig.chat().answer()).text == "first"
        assert rig.prompts(1) == ["do it", "Review [a]."]

    (tmp_path / "collect").mkdir()
    again = ScriptedProvider(answers(call("c", "work")), answers("1"), answers("2"), answers("3"))
    async with opened(tmp_path / "collect", again, busy="collect") as rig:
        put_template(tmp_path / "collect", "review", "Review [$@].")
        tool = Gated(rig)
        rig.chat().says("do it")
        await tool.begun.wait()
        for text in ("/review a", "then b", "and c"):
            rig.chat().says(text)
        await eventually(lambda: rig.conversation().status().queued == 3)
        tool.go_on.set()
        for expected in ("1", "2", "3"):
            assert (await rig.chat().answer()).text == expected
        assert rig.prompts(3) == ["do it", "Review [a].", "then b\nand c"]


async def test_a_broken_skill_is_listed_and_hurts_nobody(tmp_path: Path) -> None:
    """Whoever put it there finds it with /skills."""
    put_skill(tmp_path, "good")
    (tmp_path / "skills" / "bad").mkdir()
    (tmp_path / "skills" / "bad" / "SKILL.md").write_text("---\nname: [bad\n---\n")
    async with opened(tmp_path, ScriptedProvider(answers("fine"))) as rig:
        rig.chat().says("hello")
        assert (await rig.chat().answer()).text == "fine"
        rig.chat().says("/skills")
        text = (await rig.chat().answer()).text

    assert "`good`" in text
    assert "skills/bad/SKILL.md" in text
    assert "no valid YAML at line 3" in text
