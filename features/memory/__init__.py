"""What an agent keeps beyond a conversation: MEMORY.md of its place, MEMORY.md of all of the owners' places, and the place's full log.

Owns the changes to those files and the tools ``memory`` and ``history``. The text of a file reaches the model through the system prompt.
Borders: a place's notes and log are seen in that place alone; the host-wide file, where it is switched on, in places of owners alone.
Failure: a change happens whole or not at all; one that would go beyond what the prompt shows, or meets another change, is refused.
"""

from features.memory.memory import Memory, NotesView, Scope

__all__ = ["Memory", "NotesView", "Scope"]
