"""How long something has been going on, as people say it."""

__all__ = ["elapsed", "with_elapsed"]

_STEP_S = 15
_MINUTE_S, _HOUR_S = 60, 3600


def elapsed(seconds: float) -> str:
    """In steps that leave a line as it is for a while: quarters of the first minute, then minutes; nothing for what has just begun."""
    if seconds < _STEP_S:
        return ""
    if seconds < _MINUTE_S:
        return f"{int(seconds // _STEP_S) * _STEP_S} s"
    hours, rest = divmod(int(seconds), _HOUR_S)
    minutes = rest // _MINUTE_S
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def with_elapsed(line: str, seconds: float) -> str:
    spent = elapsed(seconds)
    return f"{line}, {spent}" if spent else line
