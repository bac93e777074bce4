"""What is said about questions."""

from collections.abc import Sequence

from bot.chat_commands.markdown import plain

__all__ = [
    "NOT_YOURS",
    "NO_SUCH_CHOICE",
    "OVER",
    "OWNERS_ALONE",
    "RESTARTED",
    "SEVERAL",
    "UNKNOWN",
    "ended_by",
    "nobody_answered",
    "question_text",
]

OVER = "Nobody waits for this any more."
RESTARTED = "I was restarted before this was answered, so it counts as no. If it is still needed, I ask again."
UNKNOWN = "I do not know this question any more. Ask again."
NOT_YOURS = "Only whoever asked me, or an owner, may answer this."
OWNERS_ALONE = "Only an owner of this host may choose that."
NO_SUCH_CHOICE = "That is none of the choices."
SEVERAL = "More than one question is open here. Press a button under the one that you mean."
_LONGEST_SHOWN = 200


def question_text(title: str, message: str, options: Sequence[str], *, numbered: bool, placeholder: str = "") -> str:
    """The question as the chat shows it. Title and message are Markdown."""
    parts = [title.strip(), message.strip()]
    if numbered:
        parts.append("\n".join(f"{number}. {plain(option, limit=_LONGEST_SHOWN)}" for number, option in enumerate(options, 1)))
        parts.append("Answer with a number.")
    if not options:
        parts.append("Your next message is the answer" + (f", like: {plain(placeholder)}" if placeholder else "") + ".")
    return "\n\n".join(part for part in parts if part)


def ended_by(name: str, answer: str, *, group: bool, choice: bool) -> str:
    """An answer in a sentence; what somebody wrote themselves is not repeated."""
    said = plain(answer, limit=_LONGEST_SHOWN) if choice else ""
    if group:
        return f"{plain(name)}: {said}" if said else f"{plain(name)} answered."
    return f"Answered: {said}" if said else "Answered."


def nobody_answered(seconds: float, *, choice: bool) -> str:
    return f"No answer in {_span(seconds)}, so " + ("it counts as no." if choice else "I go on without one.")


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes and not rest:
        return f"{minutes} minute{'' if minutes == 1 else 's'}"
    return f"{round(seconds)} seconds"
