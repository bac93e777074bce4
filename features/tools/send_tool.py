"""The ``send`` tool: files and texts into the chat."""

import os
import re
from pathlib import Path
from typing import Literal

from features.contracts.chat import ChatSender, OutboundFile, OutboundMessage
from features.contracts.errors import ModelMustAct
from features.contracts.models import ToolSpec
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from features.tools.background import Stop, in_thread
from features.tools.file_walk import shown_name
from features.tools.files import HOST_FOLDER, Located, WorkspaceFiles
from features.tools.truncation import size_text

__all__ = ["SendTool"]

_MAX_BYTES = 50 * 1024 * 1024
_COPY_BYTES = 1024 * 1024


class SendTool:
    """Implements ``features.contracts.tools.Tool``.

    What is handed over is a copy in the scratch folder: delivery may come later, after an outage or a restart, and then sends what the
    file was when the model sent it, whatever has become of it since.
    """

    label = "Send"
    prompt_snippet = "send: send a file or a text into the chat"
    prompt_guidelines: tuple[str, ...] = ("A path in an answer sends nothing; to give the person a file, use send.",)
    execution: Literal["parallel", "sequential"] = "sequential"
    spec = ToolSpec(
        name="send",
        description=(
            "Send a file from the workspace into this chat, or a text beside your answer. Your answer itself is delivered without it. "
            f"A file may have up to {size_text(_MAX_BYTES)}."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to send"},
                "text": {"type": "string", "description": "Text to send, as Markdown"},
                "caption": {"type": "string", "description": "Caption of the file"},
            },
        },
    )

    def __init__(self, sender: ChatSender) -> None:
        self._sender = sender

    async def run(self, call: ToolInvocation) -> ToolResult:
        path, text = call.arguments.get("path"), call.arguments.get("text", "")
        caption = call.arguments.get("caption", "")
        if path is None:
            if not (text or caption).strip():
                raise ModelMustAct("there is nothing to send; give path or text")
            await self._sender(OutboundMessage(text=text or caption))
            return text_result("Handed over for delivery: the text.")
        file, size = await in_thread(lambda stop: _copied(call, path, caption, stop))
        await self._sender(OutboundMessage(text=text, files=(file,)))
        beside = " and the text" if text.strip() else ""
        return text_result(f"Handed over for delivery: {file.name} ({size_text(size)}){beside}.")


def _copied(call: ToolInvocation, path: str, caption: str, stop: Stop) -> tuple[OutboundFile, int]:
    files = WorkspaceFiles(call.context)
    located = files.locate(path)
    if located.is_hosts and not _is_scratch(located, call.context.scratch):
        raise ModelMustAct(f"{path} is in {HOST_FOLDER}/; of that folder only what is in {HOST_FOLDER}/tmp can be sent")
    with files.open_file(located) as (source, size):
        if size > _MAX_BYTES:
            raise ModelMustAct(
                f"{path} has {size_text(size)}; at most {size_text(_MAX_BYTES)} can be sent. Make it smaller, or send it in parts."
            )
        if size == 0:
            raise ModelMustAct(f"{path} is empty; chats do not take empty files")
        name = shown_name(located.parts[-1])
        target = _target(call, name)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as copy:
            while piece := source.read(_COPY_BYTES):
                stop.check()
                copy.write(piece)
    return OutboundFile(path=target, name=name, caption=caption), size


def _target(call: ToolInvocation, name: str) -> Path:
    call.context.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    extension = re.sub(r"[^A-Za-z0-9.]", "", Path(name).suffix)[:16]
    return call.context.scratch / f"send-{re.sub(r'[^A-Za-z0-9_-]', '_', call.id)[:64]}{extension}"


def _is_scratch(located: Located, scratch: Path) -> bool:
    return located.path.is_relative_to(Path(os.path.realpath(scratch)))
