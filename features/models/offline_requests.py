"""What the offline assistant understands, and what it does about it."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, time, timedelta
from typing import Any

import msgspec

__all__ = ["HELP", "Action", "Say", "Situation", "understand"]

NAME = "I am the offline assistant that comes with Pumice: a few fixed rules, no language model, no network."
UNDERSTOOD = """- `hello`, `what can you do`
- `run: COMMAND` runs a command
- `read FILE`, `write FILE: TEXT`, `send me FILE`
- `remember TEXT`, `what do you remember`
- `remind me in 5 minutes to TEXT`, `remind me at 18:30 to TEXT`, `remind me every day at 08:30 to TEXT`
- `what is on today`, `add TITLE tomorrow at 10:00`
- `sum up`"""
ADVICE = "For real conversations, set `models.default` to a model of a provider that you have a key for."
HELP = f"{NAME} I understand:\n\n{UNDERSTOOD}\n\n{ADVICE}"
_MAX_TITLE = 80


class Say(msgspec.Struct, frozen=True):
    """Answer with a text."""

    text: str


class Action(msgspec.Struct, frozen=True):
    """Call a tool. ``done`` introduces its result; without the tool, ``missing`` is what this host lacks."""

    tool: str
    arguments: dict[str, Any]
    done: str
    missing: str
    show_result: bool = True


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer may depend on. ``now`` is in the chat's zone; ``said`` are the person's earlier messages, oldest first."""

    now: datetime
    said: Sequence[str]


def understand(text: str, situation: Situation) -> Say | Action:
    """The answer to a message, or the first call that leads to it."""
    wanted = _NOTES.sub("", text.strip()).strip()
    for pattern, respond in _RULES:
        match = pattern.fullmatch(wanted)
        if match is not None:
            return respond(match, situation)
    return Say(f"I did not understand that. {HELP}")


def _hello(_: re.Match[str], __: Situation) -> Say:
    return Say(f"Hello! {NAME} Ask me `what can you do`.")


def _help(_: re.Match[str], __: Situation) -> Say:
    return Say(HELP)


def _run(match: re.Match[str], _: Situation) -> Action:
    command = match[1].strip()
    return Action("bash", {"command": command}, f"I ran `{command}`.", "no tool that runs commands here")


def _read(match: re.Match[str], _: Situation) -> Action:
    path = _name(match[1])
    return Action("read", {"path": path}, f"{path}:", "no tool that reads files here")


def _write(match: re.Match[str], _: Situation) -> Action:
    path = _name(match[1])
    content = match[2].removeprefix("\n").rstrip("\n") + "\n"
    return Action("write", {"path": path, "content": content}, f"I wrote {path}.", "no tool that writes files here")


def _send(match: re.Match[str], _: Situation) -> Action:
    path = _name(match[1])
    return Action("send", {"path": path}, f"I sent you {path}.", "no way to send files into this chat", show_result=False)


def _remember(match: re.Match[str], _: Situation) -> Action:
    note = " ".join(match[1].split())
    return Action("memory", {"action": "add", "text": note}, f"Noted: {note}", "no memory on this host", show_result=False)


def _recall(_: re.Match[str], __: Situation) -> Action:
    return Action("memory", {"action": "read"}, "This is what I have noted:", "no memory on this host")


def _remind_in(match: re.Match[str], _: Situation) -> Action:
    number, unit, prompt = int(match[1]), match[2].lower().rstrip("s"), match[3].strip()
    when = f"in {number} {unit}" + ("" if number == 1 else "s")
    return _schedule(when, prompt)


def _remind_daily(match: re.Match[str], _: Situation) -> Say | Action:
    at = _time(match[1])
    return (
        Say(f"{match[1]} is no time of day. Write it as HH:MM, like 08:30.")
        if at is None
        else _schedule(f"every day at {at}", match[2].strip())
    )


def _remind_at(match: re.Match[str], _: Situation) -> Action:
    """Any other time; the tool says whether it is one."""
    return _schedule(" ".join(match["when"].split()), match["what"].strip())


def _schedule(when: str, prompt: str) -> Action:
    return Action(
        "schedule",
        {"action": "create", "when": when, "prompt": f"Remind me now: {prompt}"},
        f"I will remind you {when} to {prompt}.",
        "no scheduler here, so I cannot remind you",
    )


def _remind_now(match: re.Match[str], _: Situation) -> Say:
    """What a reminder's own prompt asks when it is due."""
    return Say(f"Reminder: {match[1].strip()}")


def _watched(match: re.Match[str], _: Situation) -> Say:
    """A watcher's prompt: what its script printed is all that there is to say."""
    return Say(f"The watcher says:\n\n{match[1]}")


def _silent(_: re.Match[str], __: Situation) -> Say:
    """A question that takes judgement, asked by the scheduler when nobody is there."""
    return Say("[SILENT]")


def _remind_when(match: re.Match[str], _: Situation) -> Say:
    prompt = _short(match[1])
    return Say(f"When? Write `remind me in 5 minutes to {prompt}` or `remind me every day at 08:30 to {prompt}`.")


def _today(_: re.Match[str], situation: Situation) -> Action:
    midnight = situation.now.replace(hour=0, minute=0, second=0, microsecond=0)
    arguments = {"action": "list", "start": midnight.isoformat(), "end": (midnight + timedelta(days=1)).isoformat()}
    return Action("calendar", arguments, "Today:", "no calendar on this host (yet)")


def _add(match: re.Match[str], situation: Situation) -> Say | Action:
    title, day, at = match[1].strip(), match[2].lower(), _time(match[3])
    if at is None:
        return Say(f"{match[3]} is no time of day. Write it as HH:MM, like 10:00.")
    date = situation.now.date() + timedelta(days=day == "tomorrow")
    start = datetime.combine(date, time.fromisoformat(at), situation.now.tzinfo)
    arguments = {"action": "create", "title": title, "start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    return Action("calendar", arguments, f"I added {title}, {day} at {at}.", "no calendar on this host (yet)")


def _sum_up(_: re.Match[str], situation: Situation) -> Say:
    if not situation.said:
        return Say("Nothing has been said yet.")
    lines = [f"- {_short(text)}" for text in situation.said[-10:]]
    count = len(situation.said)
    start = f"You have sent {count} message{'' if count == 1 else 's'} before this one"
    return Say(f"{start}{'; the last ten' if count > 10 else ''}:\n\n" + "\n".join(lines))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TITLE else line[: _MAX_TITLE - 1] + "…"


def _name(text: str) -> str:
    return text.strip().strip("`'\"")


def _time(text: str) -> str | None:
    hour, _, minute = text.partition(":")
    return f"{int(hour):02d}:{minute}" if int(hour) < 24 and int(minute) < 60 else None


def _rule(pattern: str, respond: Callable[[re.Match[str], Situation], Say | Action]) -> tuple[re.Pattern[str], Callable[..., Say | Action]]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL), respond


_TIME_FIRST = r"(?:in|at|every|on|next|today|tonight|tomorrow|daily|\d{4}-)[^\n]{1,60}?"
_TIME_AT_THE_END = (
    r"in \d{1,6} (?:minutes?|hours?|days?)|(?:(?:tomorrow|today|every (?:day|weekday|[a-z]{3,6}day)) )?at \d{1,2}(?::\d{2})?(?: ?[ap]m)?"
)
_NOTES = re.compile(r"^(?:\([^\n]*\)\n)+")
"""What the host tells the model before a prompt, a line each."""

_RULES = (
    _rule(r"(?:hello|hi|hey|good (?:morning|day|evening))\b[\s!.,]{0,9}(?:there|you)?[!.]{0,9}", _hello),
    _rule(r"(?:what can you do|help)[\s?.!]{0,9}", _help),
    _rule(r"run:\s*(\S.*)", _run),
    _rule(r"read\s+(\S[^\n]*)", _read),
    _rule(r"write\s+([^\s:][^:\n]*):[ \t]*(\S.*|\n.*)", _write),
    _rule(r"send me\s+(\S[^\n]*)", _send),
    _rule(r"what do you remember[\s?.!]{0,9}", _recall),
    _rule(r"remember(?: that)?\s+(\S.*)", _remember),
    _rule(r"remind me in\s+(\d{1,6})\s*(minutes?|hours?|days?)\s+to\s+(\S.*)", _remind_in),
    _rule(r"remind me every day at\s+(\d{1,2}:\d{2})\s+to\s+(\S.*)", _remind_daily),
    _rule(rf"remind me\s+(?P<when>{_TIME_FIRST})\s+to\s+(?P<what>\S.*)", _remind_at),
    _rule(rf"remind me to\s+(?P<what>\S[^\n]*?)\s+(?P<when>{_TIME_AT_THE_END})[\s.!]{{0,9}}", _remind_at),
    _rule(r"(?:find out whether this holds now:|this is the heartbeat:).*", _silent),
    _rule(r".*\n\nThis is what its script printed\.[^\n]*\n(`{3,}\n.*)", _watched),
    _rule(r"remind me now:\s*(\S.*)", _remind_now),
    _rule(r"remind me to\s+(\S.*)", _remind_when),
    _rule(r"what(?:'s| is) on today[\s?.!]{0,9}", _today),
    _rule(r"add\s{1,5}(\S[^\n]{0,200}?)\s{1,5}(today|tomorrow)\s{1,5}at\s+(\d{1,2}:\d{2})[\s.!]{0,9}", _add),
    _rule(r"sum(?:\s+it)? up[\s.!]{0,9}", _sum_up),
)
