"""Scheduled jobs, as people make and look after them."""

from bot.chat_commands.context import CommandContext
from features.contracts.chat import OutboundMessage
from features.contracts.jobs import JobOrigin

__all__ = ["job", "jobs", "schedule"]


async def schedule(context: CommandContext, arguments: str) -> None:
    origin = JobOrigin(by=context.sender.id, owner=context.owner, group=context.group)
    await _say(context, await context.services.jobs.schedule(context.conversation.address, arguments, origin))


async def jobs(context: CommandContext, _: str) -> None:
    await _say(context, await context.services.jobs.jobs(context.conversation.address))


async def job(context: CommandContext, arguments: str) -> None:
    await _say(context, await context.services.jobs.job(context.conversation.address, arguments))


async def _say(context: CommandContext, message: OutboundMessage) -> None:
    await context.say(message.text, *message.buttons)
