"""Extensions of one session: what they registered, what they are told, and what they may do.

``ExtensionRunner`` activates them, hands events to their handlers and takes back only what a handler has finished and may change.

Order: handlers run one after another, higher priority first, then in the order of loading and registration.
Failure: one that raises, is late, or leaves something that the event does not allow, is told of as an ``extension_error``; its change is
dropped, and a gate says no. After three failures in a row the extension is out of this session, with all that it had registered.
"""

from features.extensions.extension_runner import ExtensionRunner

__all__ = ["ExtensionRunner"]
