"""What the model is told before the conversation.

Owns the text of the system prompt and the reading of a workspace's AGENTS.md and MEMORY.md. What rarely changes comes first and the
date, without a time, comes last, so that a provider can cache the beginning. The same facts give the same text.
Failure: a file that cannot be read, or is none, counts as empty and is logged once per change; the prompt is built without it.
"""

from features.system_prompt.builder import SystemPromptBuilder, SystemPromptFacts

__all__ = ["SystemPromptBuilder", "SystemPromptFacts"]
