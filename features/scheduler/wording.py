"""Jobs in words: for people, for the model, and for jobs.json."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from features.scheduler.crontab import parse_crontab
from features.scheduler.job import Job, JobDefinition, JobRun
from features.scheduler.schedule import Cron, Every, Once, Schedule

__all__ = [
    "SILENT", "cut_text", "delay_words", "due_heading", "due_note", "job_lines", "local", "missed_text", "one_line", "paused_text",
    "run_words", "schedule_words",
]  # fmt: skip

SILENT = "[SILENT]"
_DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_DAY_SETS = {(0, 1, 2, 3, 4, 5, 6): "every day", (1, 2, 3, 4, 5): "every weekday", (0, 6): "every weekend day"}
_EVERY_UNITS = ((604_800, "week"), (86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_HEADED_AFTER = timedelta(minutes=5)
_LATE_AFTER = timedelta(minutes=1)
_RUN_WORDS = {
    "running": "its script is running", "handed": "at work", "done": "done", "silent": "nothing to say", "failed": "failed",
    "stopped": "stopped", "cut": "cut off", "skipped": "skipped",
}  # fmt: skip


def local(moment: datetime, zone: str) -> str:
    """``Monday 5 January 2026, 09:00``, with seconds where there are any."""
    here = moment.astimezone(ZoneInfo(zone))
    seconds = f":{here:%S}" if here.second else ""
    return f"{here:%A} {here.day} {here:%B %Y, %H:%M}{seconds}"


def schedule_words(schedule: Schedule, zone: str) -> str:
    """``every weekday at 09:00``; what has no short form is shown as it is."""
    if isinstance(schedule, Every):
        size, unit = next((size, unit) for size, unit in _EVERY_UNITS if schedule.seconds % size == 0)
        count = schedule.seconds // size
        return f"every {unit}" if count == 1 else f"every {count} {unit}s"
    if isinstance(schedule, Cron):
        return _cron_words(schedule.expression)
    at = schedule.at if isinstance(schedule, Once) else schedule.local.replace(tzinfo=ZoneInfo(zone))
    return f"once, {local(at, zone)}"


def _cron_words(expression: str) -> str:
    crontab = parse_crontab(expression)
    if len(crontab.minutes) * len(crontab.hours) > 3 or len(crontab.months) != 12 or crontab.either_day:
        return f"cron {expression}"
    times = " and ".join(f"{hour:02}:{minute:02}" for hour in crontab.hours for minute in crontab.minutes)
    if len(crontab.days) == 31:
        names = "every " + ", ".join(_DAY_NAMES[number] for number in crontab.weekdays)
        return f"{_DAY_SETS.get(crontab.weekdays, names)} at {times}"
    if len(crontab.days) == 1 and len(crontab.weekdays) == 7:
        return f"every month on day {crontab.days[0]} at {times}"
    return f"cron {expression}"


def delay_words(delay: timedelta) -> str:
    """``2 h 30 min``."""
    minutes = round(delay.total_seconds() / 60)
    days, rest = divmod(minutes, 24 * 60)
    parts = [(days, "d"), (rest // 60, "h"), (rest % 60, "min")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "less than a minute"


def one_line(text: str, limit: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def due_note(job: Job, due_at: datetime, now: datetime) -> str:
    """What the model is told before the prompt."""
    late = f" It runs {delay_words(now - due_at)} late." if now - due_at > _LATE_AFTER else ""
    return (
        f"(Scheduled job {job.id}, due {local(due_at, job.zone)}, {job.zone}.{late} Nobody is at the keyboard."
        f" If there is nothing worth saying, answer exactly {SILENT}.)"
    )


def due_heading(job: Job, due_at: datetime, now: datetime) -> str:
    """What the person reads before an answer that comes late; empty for one that is in time."""
    if now - due_at <= _HEADED_AFTER:
        return ""
    return f"(Due {local(due_at, job.zone)}; {delay_words(now - due_at)} late.)"


def job_lines(job: Job, upcoming: Sequence[datetime]) -> str:
    """All that a person wants to know of a job, as Markdown."""
    definition = job.definition
    lines = [f"**Job {job.id}**, {schedule_words(definition.schedule, job.zone)} ({job.zone})" + _standing(job)]
    lines += [f"- {text}" for text in _what(definition)]
    if upcoming:
        lines.append("- next: " + "; ".join(local(moment, job.zone) for moment in upcoming))
    if definition.ends_at is not None:
        lines.append(f"- ends: {local(definition.ends_at, job.zone)}")
    if definition.quiet_hours:
        lines.append(f"- quiet hours: {definition.quiet_hours}")
    if definition.isolated:
        lines.append("- in a session of its own")
    if job.last_run is not None:
        lines.append(f"- last: {run_words(job.last_run, job.zone)}")
    return "\n".join(lines)


def _standing(job: Job) -> str:
    if job.state == "active":
        return ""
    return f", **{job.state}**" + (f": {job.reason}" if job.reason else "")


def _what(definition: JobDefinition) -> list[str]:
    said = [one_line(definition.text, 200)] if definition.text else []
    if definition.condition:
        return [f"when: {one_line(definition.condition, 200)}", *(f"then: {text}" for text in said), *_script(definition)]
    return _script(definition) + said


def _script(definition: JobDefinition) -> list[str]:
    return [f"script: `{one_line(definition.script, 200).replace('`', chr(39))}`"] if definition.script else []


def run_words(run: JobRun, zone: str) -> str:
    """``Monday 5 January 2026, 09:00: done, delivered``."""
    delivery = {"handed": ", on its way", "delivered": ", delivered", "refused": ", not delivered"}.get(run.delivery, "")
    return f"{local(run.due_at, zone)}: {_RUN_WORDS[run.state]}{delivery}" + (f" ({one_line(run.error, 200)})" if run.error else "")


def cut_text(job: Job, due_at: datetime) -> str:
    what = one_line(job.definition.text or job.definition.condition or job.definition.script)
    return (
        f"Job {job.id} ({what}), due {local(due_at, job.zone)}, was at work when this host stopped. "
        "I do not run it a second time by myself, because part of it may have been done."
    )


def missed_text(job: Job, due_at: datetime) -> str:
    return (
        f"Job {job.id} was due {local(due_at, job.zone)}, when this host was not running, and was left out: {one_line(job.definition.text)}"
    )


def paused_text(job: Job, failures: int, error: str) -> str:
    why = f" The last time: {one_line(error, 300)}" if error else ""
    return f"Job {job.id} ({one_line(job.definition.text or job.definition.script)}) failed {failures} times in a row and is paused.{why}"
