"""The ``memory`` tool."""

from typing import TYPE_CHECKING, Any, Literal

from features.contracts.chat import Address
from features.contracts.errors import ModelMustAct, UserMustAct
from features.contracts.memory import MEMORY_BYTES, MEMORY_FILE
from features.contracts.models import ToolSpec
from features.contracts.tools import ToolInvocation, ToolResult, text_result

if TYPE_CHECKING:
    from features.memory.memory import Memory, Scope

__all__ = ["MemoryTool"]

_NEEDS = {"add": ("text",), "replace": ("old", "text"), "remove": ("old",)}


class MemoryTool:
    """Implements ``features.contracts.tools.Tool``.

    Args:
        everywhere: whether the place may also see what is kept for all of the owners' places.
    """

    label = "Memory"
    prompt_snippet = "memory: keep, change and drop notes that last beyond this conversation"
    execution: Literal["parallel", "sequential"] = "sequential"

    def __init__(self, memory: "Memory", place: Address, *, everywhere: bool) -> None:
        self._memory = memory
        self._place = place
        properties: dict[str, Any] = {
            "action": {"type": "string", "enum": ["read", "add", "replace", "remove"]},
            "text": {"type": "string", "description": "add, replace: the note, one or two sentences"},
            "old": {"type": "string", "description": "replace, remove: the note that is meant, or words that only this note has"},
        }
        if everywhere:
            properties["scope"] = {
                "type": "string",
                "enum": ["chat", "everywhere"],
                "description": "chat (default): this chat's notes; everywhere: notes that all chats of the owners share",
            }
        self.prompt_guidelines: tuple[str, ...] = (
            "Note what will matter later (facts about people, wishes, decisions) with memory, briefly, unasked; never passwords or keys.",
            "Correct or remove a note of the memory that no longer holds.",
        )
        self.spec = ToolSpec(
            name="memory",
            description=(
                f"Notes of this chat in {MEMORY_FILE}; you see them at the beginning of each conversation. add puts a note at the end, "
                f"replace and remove change the one note that `old` names, read shows all. They hold {MEMORY_BYTES // 1024} KB together."
            ),
            parameters={"type": "object", "properties": properties, "required": ["action"]},
        )

    async def run(self, call: ToolInvocation) -> ToolResult:
        arguments = call.arguments
        action: str = arguments["action"]
        missing = [name for name in _NEEDS.get(action, ()) if not arguments.get(name, "").strip()]
        if missing:
            raise ModelMustAct(f"memory: {action} needs {' and '.join(missing)}")
        try:
            return text_result(await self._done(action, arguments, arguments.get("scope", "chat")))
        except UserMustAct as error:
            raise ModelMustAct(str(error)) from None

    async def _done(self, action: str, arguments: dict[str, Any], scope: "Scope") -> str:
        memory, place = self._memory, self._place
        match action:
            case "add":
                new = await memory.add(place, scope, arguments["text"])
                return "Noted." if new else "That is noted already."
            case "replace":
                return f"Replaced: {await memory.replace(place, scope, arguments['old'], arguments['text'])}"
            case "remove":
                return f"Removed: {await memory.remove(place, scope, arguments['old'])}"
            case _:
                view = await memory.view(place, scope)
                full = view.size * 100 // MEMORY_BYTES
                return f"{view.text}\n\n[{view.size} of {MEMORY_BYTES} bytes, {full} %]" if view.text else "(nothing noted yet)"
