"""Rules that a person pins: they stand in every request of a conversation, also after it has been summed up.

``Pins`` is an extension with the command ``/pin``. What is pinned belongs to the branch: going back to an earlier point brings back what
held there, and another session has pins of its own.
Failure: what cannot be pinned is said, with the reason; a crash in between is mended when the session is opened.
"""

from features.pins.pins import Pins

__all__ = ["Pins"]
