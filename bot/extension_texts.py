"""Extensions in words for people, with the buttons to them."""

from collections.abc import Sequence

from bot.chat_commands.markdown import code, in_rows, one_line, plain
from features.contracts.chat import Button
from features.extensions import LoadedExtension

__all__ = ["extension_list", "extension_news", "extension_problems"]

_DIGITS = 12
_LONGEST_REASON = 300
_MOST_LISTED = 40

Rows = Sequence[Sequence[Button]]


def extension_news(news: Sequence[LoadedExtension]) -> tuple[str, Rows]:
    """What the chat is told of extensions of its own that do not run."""
    waiting = [code(extension.name) for extension in news if extension.state == "untrusted" and not extension.reason]
    lines = []
    if waiting:
        them, do, they = ("This extension", "does", "it") if len(waiting) == 1 else ("These extensions", "do", "each")
        lines.append(f"{them} in this chat's folder {do} not run before an owner trusts what {they} holds now: {', '.join(waiting)}.")
    others = [extension for extension in news if extension.reason]
    lines += [f"The extension {code(extension.name)} in this chat's folder does not run: {_reason(extension)}." for extension in others]
    return "\n".join(lines), ((Button(label="Show extensions", command="/extensions"),),)


def extension_problems(failed: Sequence[LoadedExtension]) -> str:
    """What owners are told of the whole host's extensions that do not run."""
    named = [(code(extension.name), plain(extension.origin, limit=200), _reason(extension)) for extension in failed[:_MOST_LISTED]]
    lines = [f"- {name} in {origin}: {reason}" for name, origin, reason in named]
    return "I have started, but without these extensions:\n" + "\n".join(lines) + "\nOnce that is mended, say `/reload`."


def extension_list(extensions: Sequence[LoadedExtension], *, owner: bool) -> tuple[str, Rows]:
    """All of a chat's extensions, each with its state. Paths and buttons are for owners."""
    if not extensions:
        return "There are no extensions here. The guide for authors is docs/extensions.md.", ()
    lines = [_line(extension, owner=owner) for extension in extensions[:_MOST_LISTED]]
    if len(extensions) > _MOST_LISTED:
        lines.append(f"- ...and {len(extensions) - _MOST_LISTED} more")
    buttons = [button for extension in extensions[:_MOST_LISTED] if (button := _button(extension)) is not None]
    rows = [*in_rows(buttons, across=2), [Button(label="Load again", command="/extensions reload")]] if owner else []
    return "\n".join(lines), rows


def _line(extension: LoadedExtension, *, owner: bool) -> str:
    reason = _reason(extension)
    state = {
        "active": "active" + (f" ({reason})" if reason else ""),
        "disabled": f"disabled {reason or 'for the whole host, by its configuration'}",
        "untrusted": f"untrusted: {reason or 'waits for an owner'}",
        "failed": f"failed: {reason}",
    }[extension.state]
    source = plain(extension.origin, limit=200) if owner else "this chat's own" if extension.own else "the host's"
    content = f", content {code(extension.digest[:_DIGITS])}" if owner and extension.own and extension.digest else ""
    return f"- {code(extension.name)} {state}\n  {source}{content}"


def _button(extension: LoadedExtension) -> Button | None:
    name = one_line(extension.name, limit=30)
    if extension.state == "active":
        return Button(label=f"Disable {name}", command=f"/extensions disable {extension.name}")
    if extension.state == "disabled" and extension.reason:
        return Button(label=f"Enable {name}", command=f"/extensions enable {extension.name}")
    if extension.state == "untrusted" and not extension.reason:
        return Button(label=f"Trust {name}", command=f"/extensions trust {extension.digest[:_DIGITS]}")
    return None


def _reason(extension: LoadedExtension) -> str:
    return plain(extension.reason, limit=_LONGEST_REASON).rstrip(".")
