"""Keeping a conversation within its model's window: older messages are replaced by notes on them.

Owns when that is due, where a branch is cut, what the model is asked, and what stands in the summary. The agent asks the model, stores
the summary, and tells of it.
Order: what was said last stays word for word; a call and its result stay together; what an earlier compaction kept is summed up by the
next one; texts that must survive (pins, open questions) are put beside the notes word for word, every time anew.
Failure: notes that are missing, cut off or no shorter than what they replace are never stored; the conversation is then as it was.
"""

from features.compaction.compactor import CompactionOptions, Compactor

__all__ = ["CompactionOptions", "Compactor"]
