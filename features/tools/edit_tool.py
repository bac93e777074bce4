"""The ``edit`` tool."""

from typing import Literal

from features.contracts.errors import ModelMustAct
from features.contracts.models import ToolSpec
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from features.tools.background import Stop, in_thread
from features.tools.file_locks import file_lock
from features.tools.files import Located, WorkspaceFiles
from features.tools.line_diff import line_diff
from features.tools.text_edit import edited, replacements
from features.tools.text_lines import SNIFF_BYTES, looks_binary
from features.tools.truncation import size_text

__all__ = ["EditTool"]

_MAX_FILE_BYTES = 8 * 1024 * 1024
_BOM = "\ufeff"
_OLD = {"type": "string", "description": "The text to replace; it must stand in the file exactly once"}
_NEW = {"type": "string", "description": "What comes in its place"}


class EditTool:
    """Implements ``features.contracts.tools.Tool``. Bytes outside of the replaced parts stay as they are, whatever they are."""

    label = "Edit"
    prompt_snippet = "edit: replace parts of a text file"
    prompt_guidelines: tuple[str, ...] = ("For edit, copy the old text from the file and take enough of it to be unique.",)
    execution: Literal["parallel", "sequential"] = "parallel"
    spec = ToolSpec(
        name="edit",
        description=(
            "Replace text in a file. Give oldText and newText, or several of them as edits: each is matched against the file as it is "
            "before the call, and they must not overlap."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to change, relative to the workspace or absolute"},
                "oldText": _OLD,
                "newText": _NEW,
                "edits": {
                    "type": "array",
                    "description": "Several replacements at once",
                    "items": {"type": "object", "properties": {"oldText": _OLD, "newText": _NEW}, "required": ["oldText", "newText"]},
                },
            },
            "required": ["path"],
        },
    )

    async def run(self, call: ToolInvocation) -> ToolResult:
        files = WorkspaceFiles(call.context)
        edits = _edits(call)
        located = files.locate_target(call.arguments["path"], guess=True)
        async with file_lock(located.path):
            return await in_thread(lambda stop: _edit(files, located, edits, stop))


def _edits(call: ToolInvocation) -> list[tuple[str, str]]:
    arguments = call.arguments
    edits = [(edit["oldText"], edit["newText"]) for edit in arguments.get("edits", ())]
    if ("oldText" in arguments) != ("newText" in arguments):
        raise ModelMustAct("oldText and newText go together; an empty newText deletes")
    if "oldText" in arguments:
        edits.append((arguments["oldText"], arguments["newText"]))
    if not edits:
        raise ModelMustAct("there is nothing to replace; give oldText and newText, or edits")
    return edits


def _edit(files: WorkspaceFiles, located: Located, edits: list[tuple[str, str]], stop: Stop) -> ToolResult:
    name = located.written
    with files.open_file(located) as (file, size):
        if size > _MAX_FILE_BYTES:
            raise ModelMustAct(f"{name} has {size_text(size)}; edit takes files up to {size_text(_MAX_FILE_BYTES)}")
        content = file.read()
    if looks_binary(content[:SNIFF_BYTES]):
        raise ModelMustAct(f"{name} is a binary file; edit changes text only")
    whole = content.decode("utf-8", "surrogateescape")
    bom, text = (_BOM, whole[1:]) if whole.startswith(_BOM) else ("", whole)
    found = replacements(text, edits, name)
    result = edited(text, found)
    if result == text:
        raise ModelMustAct(
            f"No changes made to {name}. The replacement produced identical content. "
            "This might indicate an issue with special characters or the text not existing as expected."
        )
    stop.check()
    files.replace(located, _encoded(bom + result), stop)
    diff, first_changed = line_diff(text, found)
    count = "text" if len(found) == 1 else f"{len(found)} texts"
    return text_result(f"Successfully replaced {count} in {name}.", details={"diff": _printable(diff), "firstChangedLine": first_changed})


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character in the new text; what came from the file is kept
        return "".join(c if not "\ud800" <= c <= "\udfff" or "\udc80" <= c <= "\udcff" else "\ufffd" for c in text).encode(
            "utf-8", "surrogateescape"
        )


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
