"""The heartbeat: now and then the agent looks by itself whether something needs the person."""

from features.contracts.chat import Address
from features.contracts.errors import UserMustAct
from features.scheduler.job import JobDefinition
from features.scheduler.job_book import JobBook
from features.scheduler.schedule import Every
from features.scheduler.wording import SILENT

__all__ = ["HEARTBEAT", "keep_heartbeat"]

HEARTBEAT = "heartbeat"
_NOTES = "HEARTBEAT.md"
_PROMPT = (
    "This is the heartbeat: look by yourself whether something here needs the person now, going by what the check below says and by what "
    f"you know of this chat. Say only what is worth interrupting them for; if nothing is, answer exactly {SILENT}."
)


async def keep_heartbeat(book: JobBook, address: Address, *, every_minutes: int, check: str) -> None:
    """Make, change or take away the heartbeat of a place.

    Args:
        check: a script, of the configuration; without one ``HEARTBEAT.md`` in the workspace says what to look after. Where the check says
            nothing, no model is asked.
    """
    if every_minutes <= 0:
        await book.forget(address.place, HEARTBEAT)
        return
    present = next((job for job in await book.list(address.place) if job.definition.key == HEARTBEAT), None)
    schedule = Every(seconds=every_minutes * 60, start=book.now())
    if present is not None:
        kept = present.definition.schedule
        if isinstance(kept, Every) and kept.seconds == schedule.seconds:
            schedule = kept
        address = present.definition.address
    definition = JobDefinition(
        address=address, schedule=schedule, text=_PROMPT, script=check, checks_file="" if check else _NOTES, isolated=True, key=HEARTBEAT,
        owner=True,
    )  # fmt: skip
    try:
        await book.put_keyed(definition)
    except UserMustAct:  # as many jobs as a chat may have: the person's own come first
        return
