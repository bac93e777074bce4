"""A chat in the terminal: one question and its answer, or a conversation with streaming answers.

Owns what is shown and typed; the chat itself is reached through a ``ConsoleConnection``, whoever hosts it.
Failure: a lost connection is the connection's to mend; what was missed meanwhile is read from the chat's log.
"""

from channels.console.connection import ConsoleConnection, ConsoleEvent, ConsoleMessage
from channels.console.file_mentions import said_files
from channels.console.one_shot import Answer, one_answer
from channels.console.terminal import TerminalChat

__all__ = ["Answer", "ConsoleConnection", "ConsoleEvent", "ConsoleMessage", "TerminalChat", "one_answer", "said_files"]
