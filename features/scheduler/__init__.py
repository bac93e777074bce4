"""Prompts that start on their own, at a time or on a rhythm; scripts and conditions that decide whether the agent is asked at all.

Owns the jobs, their runs, the words for times, the ``schedule`` tool, and what ``/schedule``, ``/jobs`` and ``/job`` say. The runs
themselves belong to the chats, to which the host delivers them (``JobDelivery``).
Order: the runs of one chat begin in the order they fell due, one after another; a run waits for what is going on in its chat.
Failure: a run is claimed and handed over in one transaction, so that it happens once or not at all; one that was cut is told and not
repeated; a job that fails five times in a row is paused, and its chat is told.
"""

from features.scheduler.job_scheduler import JobScheduler
from features.scheduler.options import SchedulerOptions
from features.scheduler.tables import SCHEDULER_MIGRATIONS

__all__ = ["SCHEDULER_MIGRATIONS", "JobScheduler", "SchedulerOptions"]
