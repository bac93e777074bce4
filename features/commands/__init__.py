"""Slash commands: reading them, explaining them, listing them for a platform's menu.

Knows no command itself; whoever composes a conversation registers them and runs what ``parse`` finds. A command that is marked ``control``
may run at once, beside whatever else is going on.
"""

from features.commands.command_registry import Command, CommandRegistry

__all__ = ["Command", "CommandRegistry"]
