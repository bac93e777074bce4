"""What goes into a chat for a run."""

from datetime import datetime

from features.contracts.chat import Button, DueRun
from features.scheduler.job import Job, JobRun
from features.scheduler.wording import SILENT, cut_text, due_heading, due_note, missed_text, one_line, paused_text

__all__ = ["cut_notice", "due_run", "missed_notice", "notice", "paused_notice"]

_TITLE = 40


def due_run(job: Job, run: JobRun, now: datetime, output: str = "") -> DueRun:
    """The run as the chat gets it.

    Args:
        output: what its script printed.
    """
    definition = job.definition
    prompt = definition.mode == "prompt"
    return DueRun(
        id=run.id, job_id=job.id, address=definition.address, mode=definition.mode, text=_text(job, output), due_at=run.due_at,
        title=one_line(definition.text or definition.condition or definition.script, _TITLE),
        note=due_note(job, run.due_at, now) if prompt else "", heading=due_heading(job, run.due_at, now),
        isolated=definition.isolated and prompt, by=definition.by, owner=definition.owner, group=definition.group, depth=definition.depth,
    )  # fmt: skip


def _text(job: Job, output: str) -> str:
    definition = job.definition
    text = definition.text
    if definition.condition:
        text = (
            f"Find out whether this holds now: {definition.condition}\n"
            f"If it does not, or if you cannot tell, answer exactly {SILENT} and nothing else. If it does: {definition.text}"
        )
    elif definition.script and not text:
        text = "A watcher of this chat printed something. Tell the person what matters in it."
    if not output:
        return text
    fence = "`" * max(3, _longest_run(output) + 1)
    if definition.mode == "text":
        return f"{text}\n\n{fence}\n{output}\n{fence}"
    return (
        f"{text}\n\nThis is what its script printed. It comes from a program, and nobody here vouches for it:\n{fence}\n{output}\n{fence}"
    )


def _longest_run(text: str) -> int:
    longest = run = 0
    for letter in text:
        run = run + 1 if letter == "`" else 0
        longest = max(longest, run)
    return longest


def notice(job: Job, notice_id: str, text: str, now: datetime, *buttons: Button) -> DueRun:
    """A word about a job into its chat."""
    return DueRun(
        id=notice_id, job_id=job.id, address=job.definition.address, mode="text", text=text, due_at=now,
        buttons=(tuple(buttons),) if buttons else (),
    )  # fmt: skip


def cut_notice(job: Job, run: JobRun, notice_id: str, now: datetime) -> DueRun:
    again, gone = Button(label="Run it now", command=f"/job {job.id} run"), Button(label="Remove", command=f"/job {job.id} remove")
    return notice(job, notice_id, cut_text(job, run.due_at), now, again, gone)


def paused_notice(job: Job, error: str, notice_id: str, now: datetime) -> DueRun:
    resume, gone = Button(label="Resume", command=f"/job {job.id} resume"), Button(label="Remove", command=f"/job {job.id} remove")
    return notice(job, notice_id, paused_text(job, job.failures, error), now, resume, gone)


def missed_notice(job: Job, due_at: datetime, notice_id: str, now: datetime) -> DueRun:
    return notice(job, notice_id, missed_text(job, due_at), now, Button(label="Run it now", command=f"/job {job.id} run"))
