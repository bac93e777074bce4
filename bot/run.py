"""Runs a host in a process of its own."""

import asyncio
import gc
import logging
import os
import random
import sys
import threading

from bot.config import Config
from bot.host import Host
from bot.service_manager import ServiceManager

__all__ = ["run_host"]

log = logging.getLogger("pumice.host")

_FORCED_AFTER_S = 10.0


async def run_host(config: Config) -> int:
    """Run until cancelled; then settle, and return. A process that does not end in time is ended."""
    from bot.clock import SystemClock
    from bot.ids import new_id
    from bot.logs import configure_logs

    clock = SystemClock()
    manager = ServiceManager(os.environ, clock)
    host = Host(config, clock=clock, ids=new_id, random=random.SystemRandom())
    configure_logs(config.host.log_level, host.redactor, json=not sys.stderr.isatty())
    for warning in config.warnings:
        log.warning(warning)
    async with host:
        _calm_collector()
        print(f"Pumice is at {host.login_link()}", flush=True)  # noqa: T201 - the one line that whoever starts it waits for
        manager.ready(f"serving {', '.join(sorted(host.channels))}")
        try:
            await manager.keep_alive()
            await asyncio.Event().wait()
        finally:
            manager.stopping()
            _force_later()
    return 0


def _calm_collector() -> None:
    """Look for cycles less often and never in what the start made: with many chats a fifth of the time went into walking live objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _force_later() -> None:
    """Whatever hangs, the process is gone in time; a thread, because it may be the loop that hangs."""
    timer = threading.Timer(_FORCED_AFTER_S, os._exit, (1,))
    timer.daemon = True
    timer.start()
