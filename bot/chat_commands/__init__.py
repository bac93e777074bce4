"""What can be said with a slash in every chat.

Each command answers in the chat with a short text; what the person did wrong is answered with the way out. They act on a conversation
through ``context``, and know no channel.
"""

from bot.chat_commands.commands import chat_commands
from bot.chat_commands.context import CommandContext, CommandServices

__all__ = ["CommandContext", "CommandServices", "chat_commands"]
