from typing import Any

import pytest

from features.contracts.errors import ModelMustAct
from features.contracts.models import ToolSpec
from features.contracts.tools import Tool, ToolInvocation, ToolResult, text_result
from features.tools import ToolRegistry

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["path"],
    "$defs": {"edit": {"type": "object", "properties": {"line": {"type": "integer"}}, "required": ["line"]}},
}


class Probe:
    """A tool with a given schema."""

    label = "Probe"
    prompt_snippet = ""
    prompt_guidelines: tuple[str, ...] = ()
    execution: Any = "parallel"

    def __init__(self, schema: dict[str, Any]) -> None:
        self.spec = ToolSpec(name="probe", description="", parameters=schema)

    async def run(self, call: ToolInvocation) -> ToolResult:
        return text_result("ran")


def validated(arguments: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    tool: Tool = Probe(schema)
    return ToolRegistry([tool]).validate(tool, arguments)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"path": "a", "count": "5"}, {"path": "a", "count": 5}),
        ({"path": "a", "count": 5.0}, {"path": "a", "count": 5}),
        ({"path": "a", "ratio": "0.5"}, {"path": "a", "ratio": 0.5}),
        ({"path": "a", "deep": "True"}, {"path": "a", "deep": True}),
        ({"path": "a", "deep": 1}, {"path": "a", "deep": True}),
        ({"path": "a", "deep": 0}, {"path": "a", "deep": False}),
        ({"path": True}, {"path": "true"}),
        ({"path": 7}, {"path": "7"}),
        ({"path": "a", "tags": "x"}, {"path": "a", "tags": ["x"]}),
        ({"path": "a", "tags": " x"}, {"path": "a", "tags": [" x"]}),
        ({"path": "a", "tags": '["x", "y"]'}, {"path": "a", "tags": ["x", "y"]}),
        ({"path": "a", "tags": 3}, {"path": "a", "tags": ["3"]}),
        ({"path": "a", "edits": {"line": "2"}}, {"path": "a", "edits": [{"line": 2}]}),
        ({"path": "a", "edits": '[{"line": 2}]'}, {"path": "a", "edits": [{"line": 2}]}),
        ({"path": "a", "count": None}, {"path": "a"}),
        ({"path": "a", "maybe": None}, {"path": "a", "maybe": None}),
        ({"path": "a", "maybe": "4"}, {"path": "a", "maybe": 4}),
        ({"path": "5"}, {"path": "5"}),
        ({"path": "a", "unheard_of": {"x": 1}}, {"path": "a", "unheard_of": {"x": 1}}),
    ],
)
def test_values_that_are_nearly_right_are_made_right(given: dict[str, Any], taken: dict[str, Any]) -> None:
    """Models put numbers in quotes, one value for a list, null for nothing, and add keys of their own."""
    result = validated(given)

    assert result == taken
    assert [type(value) for value in result.values()] == [type(value) for value in taken.values()]


def test_the_received_arguments_are_not_changed() -> None:
    """They are part of the transcript."""
    received = {"path": "a", "edits": [{"line": "2"}], "count": None}
    result = validated(received)
    result["edits"][0]["line"] = 9

    assert received == {"path": "a", "edits": [{"line": "2"}], "count": None}


def test_all_errors_come_at_once_with_paths_and_what_was_received() -> None:
    """One more round for each error costs the person time and money."""
    with pytest.raises(ModelMustAct) as refused:
        validated({"count": "many", "edits": [{"line": 1}, {}]})

    lines = str(refused.value).split("\n")
    assert lines[0] == 'Validation failed for tool "probe":'
    assert {line.partition(": ")[0] for line in lines[1:4]} == {"  - count", "  - edits/1/line", "  - path"}
    assert lines[4:6] == ["", "Received arguments:"]
    assert '  "count": "many",' in lines


def test_a_closed_schema_only_loses_the_extra_keys() -> None:
    """An extra key is no reason to refuse a call."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}

    assert validated({"a": 1, "b": 2}, schema) == {"a": 1}


def test_a_huge_argument_does_not_fill_the_error() -> None:
    """The error goes into the context."""
    with pytest.raises(ModelMustAct) as refused:
        validated({"path": "a", "count": "x" * 1_000_000})

    assert len(str(refused.value)) < 6000


def test_half_a_character_in_an_argument_is_no_defect() -> None:
    """Models can write any escape in JSON."""
    assert validated({"path": "\ud83d"}) == {"path": "\ud83d"}


@pytest.mark.parametrize("schema", [{"type": "no such type"}, {"$ref": "http://127.0.0.1:9/schema"}])
def test_a_tool_with_a_broken_schema_is_closed(schema: dict[str, Any]) -> None:
    """Letting everything through would be worse, and nothing is fetched to find out."""
    with pytest.raises(ModelMustAct, match="cannot be used"):
        validated({}, schema)


def test_two_tools_of_one_name_are_a_defect() -> None:
    """Nobody could say which one a call means."""
    with pytest.raises(ValueError, match="same name"):
        ToolRegistry([Probe(SCHEMA), Probe(SCHEMA)])
