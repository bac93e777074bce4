"""What systemd is told of this process: that it is ready, that it lives, that it stops.

Source: https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
"""

import logging
import os
import socket
from collections.abc import Mapping

from features.contracts.clock import Clock

__all__ = ["ServiceManager"]

log = logging.getLogger("pumice.host")


class ServiceManager:
    """Tells nothing where nobody listens. What cannot be told is no reason to end.

    Args:
        environ: holds ``NOTIFY_SOCKET`` and ``WATCHDOG_USEC`` where a service manager started us.
    """

    def __init__(self, environ: Mapping[str, str], clock: Clock) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self._clock = clock
        mine = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        microseconds = environ.get("WATCHDOG_USEC", "") if mine else ""
        self._every_s = int(microseconds) / 3e6 if microseconds.isdecimal() else 0.0

    def ready(self, status: str) -> None:
        self._tell(f"READY=1\nSTATUS={status}")

    def stopping(self) -> None:
        self._tell("STOPPING=1\nSTATUS=finishing what goes on")

    async def keep_alive(self) -> None:
        """Say again and again that the loop turns, until cancelled; a third of the time that the manager waits for it."""
        while self._every_s:
            self._tell("WATCHDOG=1")
            await self._clock.sleep(self._every_s)

    def _tell(self, message: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as to:
                to.sendto(message.encode(), address)
        except OSError as error:
            log.warning("the service manager does not listen", extra={"facts": {"reason": str(error)}})
