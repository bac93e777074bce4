"""Errors, named by who has to act next.

::

    PumiceError
    ├── UserMustAct       the person in the chat; the text is shown there as it stands
    ├── ModelMustAct      the model; the text becomes the tool's error result
    ├── RetryLater        nobody; try the same again after ``after``
    ├── OperatorMustAct   whoever runs the host; the text names the setting and the fix
    ├── SessionBusyError  the caller; a run is going on and it did not say how to queue
    └── ReentrantCallError  the extension; it called back into the session that is waiting for it

Anything else is a defect. It is caught at one place per task and logged with an id that the person sees too.
"""

from datetime import timedelta

__all__ = ["ModelMustAct", "OperatorMustAct", "PumiceError", "ReentrantCallError", "RetryLater", "SessionBusyError", "UserMustAct"]


class PumiceError(Exception):
    """Base of every error that Pumice raises on purpose."""


class UserMustAct(PumiceError):
    """The person has to do something; the text says what, in words for them."""


class ModelMustAct(PumiceError):
    """The model has to do something else; the text says what was wrong and what would be right."""


class RetryLater(PumiceError):
    """A service is busy or away for now.

    Args:
        after: how long the service asked us to wait; None when it did not say.
    """

    def __init__(self, message: str, *, after: timedelta | None = None) -> None:
        super().__init__(message)
        self.after = after


class OperatorMustAct(PumiceError):
    """The host cannot work as it is set up; the text reads ``WHAT. FIX.``"""


class SessionBusyError(PumiceError):
    """A run is going on in this session and the caller did not say ``steer`` or ``follow_up``."""


class ReentrantCallError(PumiceError):
    """A handler of an extension called something that waits for that handler to return."""
