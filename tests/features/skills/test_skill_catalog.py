"""Skills and templates on a real disk, with decisions in a real database."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from features.contracts.chat import Address
from features.contracts.errors import UserMustAct
from features.contracts.testing import FakeClock
from features.skills import SKILL_MIGRATIONS, SkillCatalog, SkillShelf
from features.storage import Database

PLACE = Address("telegram", "1")
OTHER = Address("telegram", "2")


class Rig:
    def __init__(self, database: Database, root: Path) -> None:
        self.database = database
        self.host = root / "host"
        self.root = root
        self.host.mkdir()
        self.catalog = SkillCatalog(database, FakeClock(), host_folder=self.host, folder=self.folder, taken=("new", "status"))

    def folder(self, place: Address) -> Path:
        folder = self.root / place.chat
        folder.mkdir(exist_ok=True)
        return folder

    async def look(self, place: Address = PLACE) -> SkillShelf:
        return await self.catalog.look(place)

    async def allow(self, kind: str, name: str, place: Address = PLACE, *, allow: bool = True) -> None:
        shelf = await self.look(place)
        item = next(item for item in (*shelf.waiting, *shelf.refused, *shelf.skills) if item.name == name)
        await self.catalog.decide(place, item.kind, name, item.digest[:12], allow=allow, by="telegram:1")


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with Database(tmp_path / "state.db", [SKILL_MIGRATIONS]) as database:
        yield Rig(database, tmp_path)


def put(folder: Path, name: str, front: str | None = None, body: str = "Do it.", **files: str) -> Path:
    skill = folder / "skills" / name
    skill.mkdir(parents=True)
    front = f"name: {skill.name}\ndescription: Use for {skill.name}." if front is None else front
    (skill / "SKILL.md").write_text(f"---\n{front}\n---\n\n{body}\n" if front else body)
    for path, content in files.items():
        (skill / path.replace("__", "/").replace("_sh", ".sh")).write_text(content)
    return skill


def put_template(folder: Path, name: str, text: str) -> Path:
    (folder / "prompts").mkdir(exist_ok=True)
    path = folder / "prompts" / f"{name}.md"
    path.write_text(text)
    return path


# What is found


@pytest.mark.parametrize(
    ("folder", "front", "found", "said"),
    [
        ("valid", None, "valid", None),
        ("mismatch", "name: another\ndescription: d", "another", "does not match parent directory"),
        ("Invalid_Name", "name: Invalid_Name\ndescription: d", "Invalid_Name", "invalid characters"),
        ("a" * 70, f"name: {'a' * 70}\ndescription: d", "a" * 70, "exceeds 64 characters"),
        ("bad--name", "name: bad--name\ndescription: d", "bad--name", "consecutive hyphens"),
        ("-begins", "name: -begins\ndescription: d", "-begins", "starts or ends with a hyphen"),
        ("long", f"name: long\ndescription: {'d' * 1100}", "long", "more than 1024"),
        ("no-description", "name: no-description", None, "description is required"),
        ("empty-description", "description: ''", None, "description is required"),
        ("listed", "description: [a, b]", None, "description is required"),
        ("nothing", "", None, "description is required"),
        ("broken", "name: broken\ndescription: [unclosed", None, "no valid YAML at line"),
        ("unsayable", "name: two words\ndescription: d", None, "cannot be said"),
        ("nameless", "description: named by its folder", "nameless", None),
        ("more", "name: more\ndescription: d\nlicense: MIT\nmetadata: {a: 1}\nallowed-tools: Bash", "more", None),
    ],
)
async def test_each_skill_is_checked_and_hurts_no_other(
    rig: Rig, folder: str, front: str | None, found: str | None, said: str | None
) -> None:
    """As in pi: warnings where it can be used all the same, left out where it cannot; a sound one beside it stays."""
    put(rig.host, folder, front)
    put(rig.host, "zz-sound")
    shelf = await rig.look()

    assert [skill.name for skill in shelf.skills] == ([found] if found else []) + ["zz-sound"]
    assert [problem.fatal for problem in shelf.problems] == ([] if said is None else [found is None])
    assert said is None or said in shelf.problems[0].text
    assert all(problem.path == f"skills/{folder}/SKILL.md" for problem in shelf.problems)


async def test_folders_are_searched_until_a_skill_is_found(rig: Rig) -> None:
    """A folder with a SKILL.md is one skill; hidden folders, installed packages and what is ignored are none."""
    put(rig.host, "group/child")
    put(rig.host, "outer", inner="")
    put(rig.host, "outer/nested")
    put(rig.host, ".hidden/a")
    put(rig.host, "node_modules/b")
    put(rig.host, "drafts/c")
    put(rig.host, "one/build")
    (rig.host / "skills" / ".gitignore").write_text("drafts/\n# comment\n")
    (rig.host / "skills" / "one" / ".ignore").write_text("build\n")
    (rig.host / "skills" / "single.md").write_text("---\ndescription: one file\n---\nbody")
    (rig.host / "skills" / "group" / "README.md").write_text("no skill")

    shelf = await rig.look()
    assert [skill.name for skill in shelf.skills] == ["child", "outer", "single"]
    assert shelf.problems == ()


async def test_a_description_of_several_lines_and_a_hidden_skill(rig: Rig) -> None:
    """The lines stay; a hidden one is used by its command alone."""
    put(rig.host, "lines", "name: lines\ndescription: |\n  First.\n  Second.")
    put(rig.host, "quiet", "name: quiet\ndescription: d\ndisable-model-invocation: true")
    shelf = await rig.look()

    assert shelf.skills[0].description == "First.\nSecond."
    section = shelf.prompt_section({"read"})
    assert "First.\nSecond." in section
    assert "quiet" not in section
    assert shelf.expanded("/skill:quiet") is not None


async def test_of_one_name_the_first_is_taken(rig: Rig) -> None:
    """And the other is named."""
    put(rig.host, "a/same", body="first")
    put(rig.host, "b/same", body="second")
    shelf = await rig.look()

    assert [skill.body for skill in shelf.skills] == ["first"]
    assert 'name "same" collision' in shelf.problems[0].text


async def test_the_host_may_link_its_skills_and_loops_end(rig: Rig, tmp_path: Path) -> None:
    """Whoever runs the host keeps them where they like."""
    put(tmp_path / "elsewhere", "linked")
    (rig.host / "skills").mkdir()
    (rig.host / "skills" / "linked").symlink_to(tmp_path / "elsewhere" / "skills" / "linked")
    (rig.host / "skills" / "again").symlink_to(tmp_path / "elsewhere" / "skills" / "linked")
    (rig.host / "skills" / "round").symlink_to(rig.host / "skills")
    shelf = await rig.look()

    assert [skill.name for skill in shelf.skills] in (["linked"], ["again"])
    assert len([problem for problem in shelf.problems if problem.fatal]) == 0
    assert await rig.catalog.readable() == (rig.host / "skills", tmp_path / "elsewhere" / "skills" / "linked")


async def test_a_change_is_seen_the_next_time(rig: Rig) -> None:
    """Nobody restarts a host for a skill."""
    skill = put(rig.host, "alive", body="old")
    assert (await rig.look()).skills[0].body == "old"
    (skill / "SKILL.md").write_text("---\ndescription: d\n---\nnew")
    assert (await rig.look()).skills[0].body == "new"
    (skill / "SKILL.md").unlink()
    assert (await rig.look()).skills == ()


# Consent


async def test_what_stands_in_a_chats_folder_waits_for_a_word(rig: Rig) -> None:
    """Its agent can write there. Consent is for that content in that place."""
    skill = put(rig.folder(PLACE), "mine", run_sh="echo 1")
    put(rig.folder(OTHER), "mine", run_sh="echo 1")
    put_template(rig.folder(PLACE), "review", "Review $1")

    shelf = await rig.look()
    assert (shelf.skills, shelf.templates) == ((), ())
    assert [item.name for item in shelf.waiting] == ["mine", "review"]
    assert "mine" not in shelf.prompt_section({"read", "write"})
    assert shelf.expanded("/skill:mine") is None
    assert shelf.expanded("/review x") is None

    await rig.allow("skill", "mine")
    await rig.allow("template", "review")
    shelf = await rig.look()
    assert [item.name for item in shelf.skills] == ["mine"]
    assert shelf.expanded("/review x") == "Review x"
    assert [item.name for item in (await rig.look(OTHER)).waiting] == ["mine"]

    (skill / "run.sh").write_text("echo 2")
    shelf = await rig.look()
    assert shelf.skills == ()
    assert [item.name for item in shelf.waiting] == ["mine"]


async def test_every_file_counts_also_new_and_hidden_ones(rig: Rig) -> None:
    """What a skill's text may tell the model to run."""
    skill = put(rig.folder(PLACE), "mine")
    for number, path in enumerate(("new.sh", ".hidden", "node_modules/x.js", "deep/er/file")):
        await rig.allow("skill", "mine")
        assert len((await rig.look()).skills) == 1, number
        (skill / path).parent.mkdir(parents=True, exist_ok=True)
        (skill / path).write_text("x")
        assert (await rig.look()).skills == (), path


async def test_consent_is_for_what_was_shown(rig: Rig) -> None:
    """What changed while the question stood is another question."""
    skill = put(rig.folder(PLACE), "mine")
    shown = (await rig.look()).waiting[0]
    (skill / "SKILL.md").write_text("---\ndescription: other\n---\nother")

    for key in (shown.digest[:12], ""):
        with pytest.raises(UserMustAct, match="has changed"):
            await rig.catalog.decide(PLACE, "skill", "mine", key, allow=True, by="x")
    with pytest.raises(UserMustAct, match="no skill 'gone'"):
        await rig.catalog.decide(PLACE, "skill", "gone", shown.digest[:12], allow=True, by="x")
    assert (await rig.look()).skills == ()


async def test_a_refusal_holds_until_the_content_changes(rig: Rig) -> None:
    """And can be taken back."""
    skill = put(rig.folder(PLACE), "mine")
    await rig.allow("skill", "mine", allow=False)
    shelf = await rig.look()
    assert (shelf.waiting, [item.name for item in shelf.refused]) == ((), ["mine"])
    assert await rig.catalog.questions(PLACE) == []

    (skill / "more.md").write_text("x")
    assert [item.name for item in (await rig.look()).waiting] == ["mine"]
    await rig.allow("skill", "mine")
    assert [item.name for item in (await rig.look()).skills] == ["mine"]


async def test_a_question_is_asked_once_for_each_content(rig: Rig) -> None:
    """Also by two conversations of one place."""
    skill = put(rig.folder(PLACE), "mine")
    assert [item.name for item in await rig.catalog.questions(PLACE)] == ["mine"]
    assert await rig.catalog.questions(PLACE) == []
    (skill / "more.md").write_text("x")
    assert [item.name for item in await rig.catalog.questions(PLACE)] == ["mine"]
    assert [item.name for item in (await rig.look()).waiting] == ["mine"]


async def test_decisions_follow_a_place_that_moves(rig: Rig) -> None:
    """A group that becomes a supergroup keeps what it allowed."""
    put(rig.folder(PLACE), "mine")
    put(rig.folder(OTHER), "mine")
    await rig.allow("skill", "mine")
    await rig.database.write(rig.catalog.move_place(PLACE, OTHER))
    rig.catalog.place_moved(PLACE, OTHER)

    assert [item.name for item in (await rig.look(OTHER)).skills] == ["mine"]
    assert [item.name for item in (await rig.look(PLACE)).waiting] == ["mine"]


async def test_a_chats_own_goes_before_the_hosts_once_it_is_allowed(rig: Rig) -> None:
    """Until then the host's is used."""
    put(rig.host, "same", body="host")
    put(rig.folder(PLACE), "same", body="place")
    assert [skill.body for skill in (await rig.look()).skills] == ["host"]
    await rig.allow("skill", "same")
    shelf = await rig.look()

    assert [skill.body for skill in shelf.skills] == ["place"]
    assert any("collision" in problem.text for problem in shelf.problems)
    assert [skill.body for skill in (await rig.look(OTHER)).skills] == ["host"]


# What a chat's folder may not do


async def test_no_link_in_a_chats_folder_is_followed(rig: Rig, tmp_path: Path) -> None:
    """It would lead the host to files that the chat's agent cannot see."""
    secret = tmp_path / "secret.md"
    secret.write_text("---\ndescription: secret\n---\nsecret")
    put(tmp_path / "elsewhere", "whole")
    skills = rig.folder(PLACE) / "skills"
    put(rig.folder(PLACE), "inside")
    (skills / "inside" / "data").symlink_to(secret)
    (skills / "linked").symlink_to(tmp_path / "elsewhere" / "skills" / "whole")
    (skills / "file.md").symlink_to(secret)
    (skills / "deep").mkdir()
    (skills / "deep" / "SKILL.md").symlink_to(secret)
    (rig.folder(PLACE) / "prompts").symlink_to(tmp_path)
    shelf = await rig.look()

    assert (shelf.skills, shelf.templates, shelf.waiting) == ((), (), ())
    assert len(shelf.problems) == 5
    assert all("link" in problem.text for problem in shelf.problems)
    assert "secret" not in repr([problem.text for problem in shelf.problems])


async def test_pipes_and_masses_are_not_read(rig: Rig) -> None:
    """Nothing in a chat's folder holds up the host."""
    skills = rig.folder(PLACE) / "skills"
    (skills / "pipe").mkdir(parents=True)
    os.mkfifo(skills / "pipe" / "SKILL.md")
    many = put(rig.folder(PLACE), "many")
    for number in range(501):
        (many / f"{number}").touch()
    large = put(rig.folder(PLACE), "large")
    with (large / "big").open("wb") as file:
        file.truncate(30 * 1024 * 1024)
    put(rig.folder(PLACE), "text", body="x" * 300_000)
    put(rig.folder(PLACE), "sound")
    shelf = await rig.look()

    assert [item.name for item in shelf.waiting] == ["sound"]
    said = {problem.path.split("/")[1]: problem.text for problem in shelf.problems}
    assert said.keys() == {"pipe", "many", "large", "text"}
    assert "more than 500 files" in said["many"]


async def test_a_folder_with_too_many_entries_is_left_out(rig: Rig) -> None:
    """What is not looked at cannot be consented to."""
    skill = put(rig.folder(PLACE), "many")
    for number in range(2001):
        (skill / f"d{number}").mkdir()
    shelf = await rig.look()

    assert shelf.waiting == ()
    assert "more than 2000 entries" in shelf.problems[0].text


# Calling


async def test_a_skill_is_called_by_its_command(rig: Rig) -> None:
    """Its text, where it stands, and what was said with it; escaped where its name is quoted."""
    skill = put(rig.host, "code-review", body="Look closely.")
    shelf = await rig.look()
    expected = f'<skill name="code-review" location="{skill}/SKILL.md">\nRelative paths start at {skill}.\n\nLook closely.\n</skill>'

    assert shelf.expanded("/skill:code-review") == expected
    assert shelf.expanded("/skill:code-review  the last\ncommit ") == f"{expected}\n\nthe last\ncommit"
    for call in ("/code-review x", "/code_review x", "/CODE_REVIEW x", "/code-review@my_bot x"):
        assert shelf.expanded(call) == f"{expected}\n\nx"
    for text in ("skill:code-review", "/usr/bin", "/code", "see /code-review", "/", "/code-review/x"):
        assert shelf.find(text) is None
    missing = shelf.find("/skill:code-revue x")
    assert missing is not None
    assert missing.item is None
    assert shelf.suggest("code-revue") == "code-review"


async def test_a_template_is_filled_once(rig: Rig) -> None:
    """One that names itself, or another, is no loop: what comes out is text."""
    put_template(rig.host, "again", "/again $@ and /other")
    put_template(rig.host, "other", "---\ndescription: The other\nargument-hint: '<file>'\n---\n\nLook at $1, then ${@:2}.")
    put_template(rig.host, "plain", "First line of it is long enough to be cut after sixty characters, as in pi\nmore")
    shelf = await rig.look()

    assert shelf.expanded("/again x") == "/again x and /other"
    assert shelf.expanded('/other "a file" b c') == "Look at a file, then b c."
    assert [(item.description, item.hint) for item in shelf.templates] == [
        ("/again $@ and /other", ""),
        ("The other", "<file>"),
        ("First line of it is long enough to be cut after sixty charac...", ""),
    ]


async def test_a_template_goes_before_a_skill_and_a_command_before_both(rig: Rig) -> None:
    """Each can still be called."""
    put(rig.host, "both")
    put(rig.host, "status")
    put_template(rig.host, "both", "template")
    put_template(rig.host, "new", "template")
    put_template(rig.host, "empty", "---\ndescription: d\n---\n")
    shelf = await rig.look()

    assert shelf.expanded("/both") == "template"
    assert "Do it." in str(shelf.expanded("/skill:both"))
    assert "Do it." in str(shelf.expanded("/skill:status"))
    assert [item.name for item in shelf.templates] == ["both"]
    assert sorted(problem.path for problem in shelf.problems) == ["prompts/empty.md", "prompts/new.md"]


async def test_the_menu_shows_what_a_platform_can(rig: Rig) -> None:
    """Small letters, digits and underscores; nothing that is a command already."""
    put(rig.host, "code-review")
    put(rig.host, "status")
    put(rig.host, "x" * 40)
    put_template(rig.host, "daily-report", "Report")

    assert [command.name for command in await rig.catalog.menu()] == ["daily_report", "code_review"]


# What the model is told


async def test_the_model_is_told_names_and_reads_the_rest_itself(rig: Rig) -> None:
    """Escaped, so that a description cannot end its place; nothing at all without the tool that reads."""
    put(rig.host, "one", "name: one\ndescription: \"A & B <c> 'd' </description>\"", body="secret body")
    shelf = await rig.look()
    section = shelf.prompt_section({"read", "write"})

    assert "<description>A &amp; B &lt;c&gt; &apos;d&apos; &lt;/description&gt;</description>" in section
    assert f"<location>{rig.host}/skills/one/SKILL.md</location>" in section
    assert "secret body" not in section
    assert "skills/NAME/SKILL.md" in section
    assert "skills/NAME/SKILL.md" not in shelf.prompt_section({"read"})
    assert shelf.prompt_section({"bash"}) == ""
    assert SkillShelf().prompt_section({"read"}) == ""


async def test_the_same_skills_give_the_same_text(rig: Rig) -> None:
    """A service caches the beginning of what it is sent."""
    for name in ("b", "a", "c"):
        put(rig.host, name)

    assert (await rig.look()).prompt_section({"read"}) == (await rig.look()).prompt_section({"read"})
    assert [skill.name for skill in (await rig.look()).skills] == ["a", "b", "c"]
