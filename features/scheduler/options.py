"""What a scheduler can be told."""

from datetime import timedelta
from typing import Literal

import msgspec

__all__ = ["SchedulerOptions"]


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``catch_up`` is what becomes of a job that fell due while no host ran: it runs once, or is left out.

    ``quiet_hours`` hold for what repeats, on the clock of each chat; empty for none. ``scripts`` says for whom scripts may run: for
    everybody who is admitted, for owners alone (no sandbox), or for nobody. ``instance`` names the host among those that share a database:
    after a crash it looks after the runs that were its own.
    """

    max_jobs_per_chat: int = 50
    min_interval: timedelta = timedelta(seconds=60)
    catch_up: Literal["once", "skip"] = "once"
    concurrency: int = 4
    script_timeout: timedelta = timedelta(seconds=60)
    quiet_hours: str = ""
    scripts: Literal["everybody", "owners", "nobody"] = "owners"
    instance: str = "host"
    look_at_clock_every: timedelta = timedelta(seconds=60)
