"""The machine: folders, rights, space, clock, processes, the port."""

import os
import shutil
import socket
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bot.config import Config
from bot.doctor.finding import Finding, good, warning, wrong
from bot.lock import running_host
from features.contracts.clock import Clock

__all__ = ["examine_machine"]

_RELEASED = datetime(2026, 1, 1, tzinfo=UTC)
_LITTLE_SPACE = 200_000_000
_PRIVATE_FILES = ("state.db", "http.token", "master.key")


def examine_machine(config: Config, clock: Clock) -> Iterator[Finding]:
    yield from _data_directory(config.host.data_dir)
    yield from _private_files(config)
    yield _disk(config.host.data_dir)
    yield _clock(clock, config.host.default_time_zone)
    yield _hardening(config)
    yield from _host_and_port(config)


def _data_directory(data_dir: Path) -> Iterator[Finding]:
    if not data_dir.exists():
        parent = next(folder for folder in data_dir.parents if folder.exists())
        if os.access(parent, os.W_OK | os.X_OK):
            yield good("data directory", f"{data_dir} is made at the first start")
        else:
            yield wrong("data directory", f"{data_dir} cannot be made", f"Let this user write in {parent}, or set host.data_dir")
        return
    if not data_dir.is_dir() or not os.access(data_dir, os.R_OK | os.W_OK | os.X_OK):
        yield wrong("data directory", f"{data_dir} is no folder that this user can write in", "Correct its owner, or set host.data_dir")
        return
    mode = stat.S_IMODE(data_dir.stat().st_mode)
    if mode & 0o077:
        yield warning("data directory", f"others may look into {data_dir} (mode {mode:04o})", f"Run: chmod 700 {data_dir}")
    else:
        yield good("data directory", f"{data_dir}, private")


def _private_files(config: Config) -> Iterator[Finding]:
    files = [config.host.data_dir / name for name in _PRIVATE_FILES]
    if config.source is not None and any("plain text" in told for told in config.warnings):
        files.append(config.source)
    open_ones = [file for file in files if file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o077]
    for file in open_ones:
        yield wrong("secrets", f"others may read {file}", f"Run: chmod 600 {file}")
    if not open_ones:
        yield good("secrets", f"{len(config.secrets)} resolved; their files are private")


def _disk(data_dir: Path) -> Finding:
    folder = next(folder for folder in (data_dir, *data_dir.parents) if folder.exists())
    free = shutil.disk_usage(folder).free
    if free < _LITTLE_SPACE:
        return wrong("disk", f"only {free // 1_000_000} MB are free in {folder}", "Make room; without space no message can be taken")
    return good("disk", f"{free / 1_000_000_000:.1f} GB free")


def _clock(clock: Clock, zone: str) -> Finding:
    from zoneinfo import ZoneInfo

    now = clock.now()
    if now < _RELEASED:
        return wrong(
            "clock", f"the clock says {now:%Y-%m-%d}", "Set the machine's clock, best with NTP; certificates and jobs depend on it"
        )
    return good("clock", f"{now.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} in {zone}")


def _hardening(config: Config) -> Finding:
    if config.processes.harden:
        return good("hardening", "the host hides its memory and environment from its children")
    return warning("hardening", "children can read the host's environment and memory", "Set processes.harden = true")


def _host_and_port(config: Config) -> Iterator[Finding]:
    pid = running_host(config.host.data_dir)
    if pid is not None:
        yield good("host", f"running as process {pid}" if pid else "running")
        return
    yield good("host", "not running; nobody holds the data directory")
    host, port = config.http.host, config.http.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        yield wrong("port", f"{host}:{port} cannot be used: {error.strerror or error}", "Stop what uses it, or set http.port")
    else:
        yield good("port", f"{host}:{port} is free")
