"""Scheduled work in this host: runs go into chats as messages that no person sent, through the same inbox, sessions and outbox.

``JobDesk`` is the host's end of the scheduler. A run of a chat waits for its turn there; an isolated one has a session of its own.
Failure: whatever the inbox promises of a message holds for a run, except that one which was cut is told and not taken up again.
"""

from bot.jobs.job_desk import JobDesk

__all__ = ["JobDesk"]
