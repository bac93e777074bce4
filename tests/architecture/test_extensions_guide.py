"""``docs/extensions.md`` says what the contracts are, so that its readers need not look them up."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from features.contracts import extension_events
from features.contracts.extension_events import EXTENSION_EVENTS, AgentSettled, ExtensionEvent
from features.contracts.extensions import ExtensionApi, SessionView
from features.contracts.ui import UserInterface
from features.extensions import ExtensionLoader
from features.extensions.testing import LoneApi

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "extensions.md").read_text()


def table(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    _, _, below = GUIDE.partition(f"\n## {heading}\n")
    rows = re.search(r"(?:^\|.*\|\n)+", below, re.MULTILINE)
    assert rows is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows.group().splitlines()[2:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)", cell)


def parts(event: type[ExtensionEvent]) -> tuple[list[str], list[str]]:
    """The fields that an event sets for itself, properties among them, and its methods."""
    (definition,) = ast.parse(inspect.getsource(event)).body
    assert isinstance(definition, ast.ClassDef)
    functions = [node for node in definition.body if isinstance(node, ast.FunctionDef)]
    targets = [
        target
        for function in functions
        if function.name == "__init__"
        for node in function.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    properties = [function.name for function in functions if function.decorator_list]
    attributes = [target.attr for target in targets if isinstance(target, ast.Attribute)]
    fields = [name.removeprefix("_") for name in attributes if not name.startswith("_") or name[1:] in properties]
    return fields, [function.name for function in functions if function.name not in ("__init__", *properties)]


def test_the_guide_has_every_event_as_it_is() -> None:
    """With its name, class, deadline and fields, and every method that lets a handler decide."""
    rows = {names(row[0])[0]: row for row in table("Events")}

    assert list(rows) == [event.__name__ for event in EXTENSION_EVENTS]
    for event in EXTENSION_EVENTS:
        _, name, kind, deadline, holds, may = rows[event.__name__]
        fields, methods = parts(event)
        assert (names(name), kind, deadline) == ([event.name], event.kind, f"{event.deadline_s:g} s"), event.name
        assert names(holds) == fields, event.name
        assert {*methods, *(["cancel"] if event.kind == "gate" else [])} <= set(names(may)), event.name
        if event.kind == "observe":
            assert may.startswith(("look", "add to")), event.name


def test_every_event_is_in_the_list_that_the_guide_is_compared_with() -> None:
    """One that is left out could not be hooked either."""
    defined = {
        one for _, one in inspect.getmembers(extension_events, inspect.isclass) if issubclass(one, ExtensionEvent) and hasattr(one, "name")
    }

    assert set(EXTENSION_EVENTS) == defined
    assert len({event.name for event in EXTENSION_EVENTS}) == len(EXTENSION_EVENTS)


def members(protocol: type) -> list[str]:
    (definition,) = ast.parse(inspect.getsource(protocol)).body
    assert isinstance(definition, ast.ClassDef)
    found = []
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.append(node.target.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.name)
    return found


def test_the_guide_has_every_member_of_the_api() -> None:
    """In the order of the contract; of the session and of the person's side too."""
    rows = {names(row[0])[0]: row for row in table("The API")}

    assert list(rows) == members(ExtensionApi)
    assert set(names(rows["session"][1])) == set(members(SessionView))
    assert set(names(rows["ui"][1])) == set(members(UserInterface))


def test_links_lead_somewhere_and_every_example_is_shown() -> None:
    """And no example is forgotten."""
    for target in re.findall(r"\]\((\.\./[^)#]+)", GUIDE):
        assert (ROOT / "docs" / target).exists(), target
    shown = set(re.findall(r"examples/extensions/(\w+\.py)", GUIDE))
    assert shown == {path.name for path in (ROOT / "examples" / "extensions").glob("*.py")}


def test_what_does_not_come_over_from_pi_is_said() -> None:
    """Authors look for it."""
    theirs = " ".join(row[0] for row in table("Coming from pi"))
    for word in ("user_bash", "registerFlag", "registerShortcut", "themes"):
        assert word in theirs


def block(containing: str) -> str:
    """The Python in the guide that has these words."""
    found: list[str] = [code for code in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if containing in code]
    assert len(found) == 1
    return found[0]


async def test_the_first_extension_of_the_guide_works(tmp_path: Path) -> None:
    """Whoever copies it sees it answer."""
    (tmp_path / "hello.py").write_text(block("def hello("))
    (spec,) = (await ExtensionLoader().load([tmp_path / "hello.py"], entry_points=False)).specs
    api = await LoneApi(spec.activate, workspace=tmp_path).activated()
    await api.happens(AgentSettled("success"))

    assert await api.says("/hello Anna") == "Hello, Anna. There were 1 runs."


async def test_the_test_of_the_guide_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples" / "extensions")
    names: dict[str, Any] = {}
    exec(block("test_a_no_is_a_no"), names)

    await names["test_a_no_is_a_no"](tmp_path)
