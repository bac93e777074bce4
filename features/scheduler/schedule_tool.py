"""The ``schedule`` tool: the agent makes and changes the jobs of its chat."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Literal

import msgspec

from features.contracts.chat import Address, Button
from features.contracts.clock import Clock
from features.contracts.errors import ModelMustAct, UserMustAct
from features.contracts.jobs import JobDelivery, JobOrigin
from features.contracts.models import ToolSpec
from features.contracts.tools import ToolInvocation, ToolResult, text_result
from features.scheduler.job import Job, JobDefinition
from features.scheduler.job_book import JobBook
from features.scheduler.plain_words import parse_plain_words
from features.scheduler.schedule import Every, Once, Schedule, Wall
from features.scheduler.wording import job_lines, local

__all__ = ["ScheduleTool"]

_CONDITION_EVERY_S = 600
_MOST_LISTED = 60
_TEXT = {"type": "string"}


class ScheduleTool:
    """Implements ``features.contracts.tools.Tool``, bound to one chat. What it makes is announced there with a button to remove it.

    Args:
        origin: who speaks in the session at the moment.
        scripts: for whom a watcher's script may run.
    """

    label = "Schedule"
    prompt_snippet = "schedule: prompts, reminders, watchers and conditions that start at a time"
    prompt_guidelines: tuple[str, ...] = (
        "For anything that shall happen later or again, use schedule, and tell the person the time that it answers with.",
    )
    execution: Literal["parallel", "sequential"] = "sequential"
    spec = ToolSpec(
        name="schedule",
        description=(
            "Make, list and change the jobs of this chat. A job starts by itself and its prompt is then answered into this chat. "
            "'when' is in plain words on the chat's clock: 'in 20 minutes', 'at 18:30', 'tomorrow at 9', '2026-12-24 18:00', "
            "'2026-12-24T18:00+01:00', 'every 15 minutes', 'every day at 9', 'every weekday at 09:00', 'every monday at 8', "
            "'cron 0 9 * * 1-5' (weekdays from Sunday, 0). The result says what time that is, with weekday, zone and the next runs; "
            "check it. A 'script' (bash, in the workspace) runs first and costs nothing while it prints nothing; its output comes with the "
            "prompt. A 'condition' is looked at every 10 minutes unless 'when' says otherwise; when it holds, the prompt is carried out."
        ),
        parameters={
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["create", "list", "update", "pause", "resume", "remove", "run"]},
                "id": {**_TEXT, "description": "The job, for everything but create and list"},
                "when": {**_TEXT, "description": "When, in plain words"},
                "prompt": {**_TEXT, "description": "What you shall do then, in full: you may not remember this conversation"},
                "script": {**_TEXT, "description": "A watcher: bash that prints something only when there is something to do"},
                "condition": {**_TEXT, "description": "Do it when this holds"},
                "repeat": {"type": "boolean", "description": "A condition goes on after it came true; false unless given"},
                "isolated": {"type": "boolean", "description": "Run in a session of its own, without this conversation"},
                "ends": {**_TEXT, "description": "Not after this time: '2026-12-31 18:00'"},
                "quiet_hours": {**_TEXT, "description": "Not within these: '22:00-07:00'; '' for none"},
            },
            "required": ["action"],
        },
    )

    def __init__(
        self,
        book: JobBook,
        delivery: JobDelivery,
        clock: Clock,
        *,
        address: Address,
        origin: Callable[[], JobOrigin],
        run_now: Callable[[str], Awaitable[None]],
        scripts: Literal["everybody", "owners", "nobody"],
    ) -> None:
        self._book = book
        self._delivery = delivery
        self._clock = clock
        self._address = address
        self._origin = origin
        self._run_now = run_now
        self._scripts = scripts

    async def run(self, call: ToolInvocation) -> ToolResult:
        arguments = call.arguments
        origin = msgspec.structs.replace(self._origin(), owner=call.context.owner)
        try:
            text = await self._act(arguments["action"], arguments, origin)
        except UserMustAct as error:
            raise ModelMustAct(str(error)) from None
        return text_result(text)

    async def _act(self, action: str, arguments: dict[str, Any], origin: JobOrigin) -> str:
        if action == "list":
            live = [job for job in await self._book.list(self._address.place) if job.state != "done"]
            return "\n\n".join(self._told(job) for job in live[:_MOST_LISTED]) or "There are no jobs in this chat."
        if action == "create":
            return await self._create(arguments, origin)
        job = await self._book.get(str(arguments.get("id", "")), self._address.place)
        match action:
            case "update":
                return await self._update(job, arguments, origin)
            case "pause":
                return self._told(await self._book.pause(job.id))
            case "resume":
                return self._told(await self._book.resume(job.id))
            case "run":
                await self._run_now(job.id)
                return f"Job {job.id} runs beside this; its answer comes into the chat."
            case _:
                await self._book.remove(job.id)
                return f"Job {job.id} is removed."

    async def _create(self, arguments: dict[str, Any], origin: JobOrigin) -> str:
        self._check_script(arguments.get("script", ""), origin)
        zone = await self._delivery.zone(self._address.place)
        schedule, spoken = self._when(arguments, zone)
        condition = arguments.get("condition", "")
        definition = JobDefinition(
            address=self._address, schedule=schedule, text=arguments.get("prompt", "") or spoken, script=arguments.get("script", ""),
            condition=condition, once=not arguments.get("repeat", False), isolated=arguments.get("isolated", bool(condition)),
            ends_at=self._ends(arguments, zone), quiet_hours=arguments.get("quiet_hours"),
            by=origin.by, owner=origin.owner, group=origin.group, depth=origin.depth,
        )  # fmt: skip
        job = await self._book.add(definition)
        await self._announce("I made", job)
        return self._told(job)

    async def _update(self, job: Job, arguments: dict[str, Any], origin: JobOrigin) -> str:
        """Change what is given and leave the rest. Whoever changes a job answers for it from then on."""
        script = arguments.get("script", job.definition.script)
        self._check_script(script, origin)
        changes: dict[str, Any] = {"by": origin.by, "owner": origin.owner, "group": origin.group}
        names = {"prompt": "text", "script": "script", "condition": "condition", "isolated": "isolated", "quiet_hours": "quiet_hours"}
        changes |= {field: arguments[name] for name, field in names.items() if name in arguments}
        if "repeat" in arguments:
            changes["once"] = not arguments["repeat"]
        if "when" in arguments:
            changes["schedule"], _ = self._when(arguments, job.zone)
        if "ends" in arguments:
            changes["ends_at"] = self._ends(arguments, job.zone)
        changes["depth"] = max(job.definition.depth, origin.depth)
        changed = await self._book.update(job, msgspec.structs.replace(job.definition, **changes))
        await self._announce("I changed", changed)
        return self._told(changed)

    def _when(self, arguments: dict[str, Any], zone: str) -> tuple[Schedule, str]:
        """The schedule, and what stands after it in the same words."""
        words = arguments.get("when", "").strip()
        if not words and arguments.get("condition"):
            return Every(seconds=_CONDITION_EVERY_S, start=self._clock.now()), ""
        if not words:
            raise UserMustAct("'when' is missing; write it like 'every weekday at 09:00' or 'in 20 minutes'.")
        spoken = parse_plain_words(words, now=self._clock.now(), zone=zone)
        if spoken.rest and arguments.get("prompt"):
            raise UserMustAct(f"I do not understand {spoken.rest!r} at the end of 'when' ({words!r}). Only the time belongs there.")
        return spoken.schedule, spoken.rest

    def _ends(self, arguments: dict[str, Any], zone: str) -> datetime | None:
        words = arguments.get("ends", "").strip()
        if not words:
            return None
        spoken = parse_plain_words(words, now=self._clock.now(), zone=zone)
        if not isinstance(spoken.schedule, Once | Wall) or spoken.rest:
            raise UserMustAct(f"'ends' is {words!r}; write one time, like '2026-12-31 18:00'.")
        return spoken.schedule.next_after(self._clock.now(), zone)

    def _check_script(self, script: str, origin: JobOrigin) -> None:
        if not script or self._scripts == "everybody" or (self._scripts == "owners" and origin.owner):
            return
        who = "commands are not sandboxed here, so an owner of this host has to ask" if self._scripts == "owners" else "bash is held back"
        raise ModelMustAct(f"this host does not let you put up a script: {who}. Use a prompt or a condition instead.")

    def _told(self, job: Job) -> str:
        now = self._clock.now()
        return f"{job_lines(job, self._book.upcoming(job))}\n- it is {local(now, job.zone)} ({job.zone}) now"

    async def _announce(self, what: str, job: Job) -> None:
        remove = Button(label="Remove", command=f"/job {job.id} remove")
        await self._delivery.post(self._address, f"{what} a job.\n\n{job_lines(job, self._book.upcoming(job))}", buttons=((remove,),))
