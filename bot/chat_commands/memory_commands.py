"""What is remembered in a chat."""

from bot.chat_commands.context import CommandContext
from bot.chat_commands.markdown import code, in_rows, one_line, plain
from features.contracts.chat import Button
from features.contracts.errors import UserMustAct
from features.contracts.memory import MEMORY_BYTES
from features.memory import NotesView, Scope

__all__ = ["memory"]

_MOST_BUTTONS = 12
_MOST_SHOWN = 60
_WHERE: dict[Scope, str] = {"chat": "in this chat", "everywhere": "for all chats of the owners"}


async def memory(context: CommandContext, arguments: str) -> None:
    words = arguments.split()
    scope: Scope = "chat"
    if words and words[-1] == "everywhere":
        scope = "everywhere"
        words.pop()
    match words:
        case []:
            await _show(context, scope)
        case ["forget", key]:
            note = await context.services.memory.forget(context.conversation.place, scope, key)
            await _show(context, scope, f"Forgotten: {plain(note, limit=200)}")
        case ["clear"]:
            await _ask_to_clear(context, scope)
        case ["clear", "yes"]:
            count = await context.services.memory.clear(context.conversation.place, scope)
            await context.say(f"Forgotten: {count} note{'' if count == 1 else 's'} {_WHERE[scope]}.")
        case _:
            raise UserMustAct(f"I do not understand {code(arguments)}. `/memory` shows what I remember, `/memory clear` forgets all of it.")


async def _show(context: CommandContext, scope: Scope, done: str = "") -> None:
    view = await context.services.memory.view(context.conversation.place, scope)
    lines = [f"{number}. {plain(text, limit=300)}" for number, (_, text) in enumerate(view.notes[:_MOST_SHOWN], 1)]
    if len(view.notes) > _MOST_SHOWN:
        lines.append(f"… and {len(view.notes) - _MOST_SHOWN} more, in `MEMORY.md`")
    title = (
        f"**I remember {_WHERE[scope]}** ({_fill(view)}):" if lines else f"I have noted nothing {_WHERE[scope]} yet. Say `remember ...`."
    )
    rest = " Text around the notes is in `MEMORY.md`." if lines and len(view.notes) > 0 and scope == "chat" and _has_more(view) else ""
    await context.say("\n\n".join(part for part in (done, title, "\n".join(lines), rest.strip()) if part), *_buttons(context, scope, view))


def _buttons(context: CommandContext, scope: Scope, view: NotesView) -> list[list[Button]]:
    suffix = "" if scope == "chat" else " everywhere"
    rows = in_rows(
        [
            Button(label=f"✕ {number}. {one_line(text, limit=18)}", command=f"/memory forget {key}{suffix}")
            for number, (key, text) in enumerate(view.notes[:_MOST_BUTTONS], 1)
        ],
        across=2,
    )
    last = [Button(label="Forget all", command=f"/memory clear{suffix}")] if view.notes else []
    if context.services.memory.host_file(context.conversation.place) is not None:
        other = ("All chats", "/memory everywhere") if scope == "chat" else ("This chat", "/memory")
        last.append(Button(label=other[0], command=other[1]))
    return [*rows, last] if last else rows


async def _ask_to_clear(context: CommandContext, scope: Scope) -> None:
    count = len((await context.services.memory.view(context.conversation.place, scope)).notes)
    if not count:
        await context.say(f"I have noted nothing {_WHERE[scope]}.")
        return
    suffix = "" if scope == "chat" else " everywhere"
    buttons = [Button(label="Forget all", command=f"/memory clear yes{suffix}"), Button(label="Keep", command=f"/memory{suffix}")]
    await context.say(f"Forget all {count} note{'' if count == 1 else 's'} {_WHERE[scope]}?", buttons)


def _fill(view: NotesView) -> str:
    return f"{view.size:,} of {MEMORY_BYTES:,} bytes" + (", more than I read" if view.size > MEMORY_BYTES else "")


def _has_more(view: NotesView) -> bool:
    return any(line.strip() and not line.lstrip().startswith(("-", "*", "+", "#")) for line in view.text.split("\n"))
