"""The host's own process, closed to the processes it starts."""

import ctypes
import os
import sys

__all__ = ["HostProcessHardening"]

_PR_SET_DUMPABLE = 4


class HostProcessHardening:
    """Makes the host non-dumpable: a child of the same user can then neither read ``/proc/<host>/environ`` nor trace the host.

    A started program is dumpable again by itself, so children are not changed.
    """

    def __init__(self, *, platform: str = sys.platform) -> None:
        self._platform = platform
        self._applied = False

    def apply(self) -> list[str]:
        """Harden this process, once; later calls do nothing.

        Returns:
            What could not be closed, a sentence each with the fix.
        """
        if self._applied:
            return []
        self._applied = True
        warnings = _remote_debugging()
        if not self._platform.startswith("linux"):
            warnings.append(f"processes of the same user can read this host's memory on {self._platform}; run it as a user of its own")
        elif (failure := _make_non_dumpable()) is not None:
            warnings.append(f"processes of the same user can read this host's memory ({failure}); run it as a user of its own")
        return warnings


def _make_non_dumpable() -> str | None:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError) as problem:
        return str(problem)
    return os.strerror(ctypes.get_errno()) if failed else None


def _remote_debugging() -> list[str]:
    # Python 3.14 lets a process of the same user run code inside this one.
    is_enabled = getattr(sys, "is_remote_debug_enabled", None)
    if is_enabled is None or not is_enabled():
        return []
    return ["Python's remote debugging is enabled; start the host with PYTHON_DISABLE_REMOTE_DEBUG=1 or python -X disable-remote-debug"]
