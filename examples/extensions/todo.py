"""A todo list: a tool for the model, a command for people, and a state that follows the branch.

What ``api.set_state`` keeps is an entry of the session's tree. Going back with ``/undo``, ``/tree`` or ``/fork`` brings back the list as it
was there, and a restart of the host changes nothing. Nobody but this extension sees it; the model learns of the open items because
``api.model_context`` puts them into its system prompt.
"""

from typing import Any, Literal

from features.contracts.errors import ModelMustAct
from features.contracts.extensions import CommandResult, ExtensionApi, ExtensionCommand
from features.contracts.models import ToolSpec
from features.contracts.tools import ToolInvocation, ToolResult, text_result

MOST_ITEMS = 100
LONGEST_ITEM = 200


async def activate(api: ExtensionApi) -> None:
    todo = TodoList(api)

    async def show(arguments: str) -> CommandResult:
        if arguments == "clear":
            await todo.keep([])
        return CommandResult(text=todo.text())

    api.register_tool(TodoTool(todo))
    api.register_command(
        ExtensionCommand(name="todo", description="Shows the todo list; 'clear' empties it.", run=show, complete=lambda typed: ["clear"])
    )


class TodoList:
    """Items are ``{"text": ..., "done": ...}``, numbered from 1. The state is read each time: it changes when the branch does."""

    def __init__(self, api: ExtensionApi) -> None:
        self._api = api

    @property
    def items(self) -> list[dict[str, Any]]:
        return [dict(item) for item in self._api.state("items", [])]

    async def keep(self, items: list[dict[str, Any]]) -> None:
        await self._api.set_state("items", items)
        open_ones = [item["text"] for item in items if not item["done"]]
        told = "Open items of the todo list:\n" + "\n".join(f"- {text}" for text in open_ones) if open_ones else None
        await self._api.model_context("open", told, place="system_prompt")

    def text(self) -> str:
        lines = [f"{number}. [{'x' if item['done'] else ' '}] {item['text']}" for number, item in enumerate(self.items, 1)]
        return "\n".join(lines) or "The todo list is empty."


class TodoTool:
    """Implements ``features.contracts.tools.Tool``."""

    label = "Todo list"
    prompt_snippet = "todo: keep a list of what is to be done"
    prompt_guidelines: tuple[str, ...] = ("Keep the steps of longer work in the todo list, and tick each off when it is done.",)
    execution: Literal["parallel", "sequential"] = "sequential"  # two changes at once would lose one
    spec = ToolSpec(
        name="todo",
        description="Add an item to the todo list, mark one as done by its number, or list them all. Answers with the list.",
        parameters={
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["add", "done", "list"]},
                "text": {"type": "string", "description": "The item to add", "maxLength": LONGEST_ITEM},
                "number": {"type": "integer", "description": "The item that is done"},
            },
            "required": ["action"],
        },
    )

    def __init__(self, todo: TodoList) -> None:
        self._todo = todo

    async def run(self, call: ToolInvocation) -> ToolResult:
        items = self._todo.items
        action = call.arguments["action"]
        if action == "add":
            text = str(call.arguments.get("text", "")).strip()
            if not text:
                raise ModelMustAct("text is missing; say what is to be done")
            if len(items) >= MOST_ITEMS:
                raise ModelMustAct(f"the list has {MOST_ITEMS} items already; no more fit")
            await self._todo.keep([*items, {"text": text, "done": False}])
        elif action == "done":
            number = call.arguments.get("number")
            if not isinstance(number, int) or not 1 <= number <= len(items):
                raise ModelMustAct(f"number is {number!r}; the list has the items 1 to {len(items)}")
            items[number - 1]["done"] = True
            await self._todo.keep(items)
        return text_result(self._todo.text())
