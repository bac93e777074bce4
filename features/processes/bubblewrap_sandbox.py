"""A sandbox for what agents start: Linux namespaces, set up by bubblewrap."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from features.contracts.errors import ModelMustAct
from features.contracts.processes import ProcessSpawnEvent

__all__ = ["BubblewrapSandbox"]

_PROBE_TIMEOUT_S = 5.0
_DOORS = tuple(map(Path, ("/run/user", "/run/dbus", "/run/docker.sock", "/run/containerd", "/run/podman")))
"""Sockets behind which others act for whoever knocks; read-only does not keep a socket shut."""


class BubblewrapSandbox:
    """A ``ProcessSpawnHook`` that puts every process into namespaces of its own.

    The system is read-only, ``/tmp`` is the process's own, ``hidden`` folders (the host's data, its configuration) are empty; the request's
    workspace is writable and, inside it, the host's ``.pumice`` folder read-only. The sandbox and all in it end with the host.

    Args:
        hidden: folders and files that no process may see, be they in a writable folder or not.
        writable: further folders that a process may change (``tools.roots``).
        readable: folders that a process may see, though they are in hidden ones.
        network: whether processes may use the network.
    """

    def __init__(
        self,
        *,
        hidden: Sequence[Path],
        writable: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        network: bool,
        bwrap: str | None = None,
    ) -> None:
        self._hidden = tuple(path.resolve() for path in hidden)
        self._writable = tuple(path.resolve() for path in writable)
        self._readable = tuple(path.resolve() for path in readable)
        self._network = network
        self._bwrap = bwrap or shutil.which("bwrap")

    async def problem(self) -> str | None:
        """Why it cannot work on this machine, with the fix; None where it does. Tries it for real."""
        if self._bwrap is None:
            return "bubblewrap is not installed; install your system's package bubblewrap"
        try:
            probe = await asyncio.create_subprocess_exec(
                *self._arguments(workspace=None),
                "/bin/true",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env={},
            )
        except OSError as error:
            return f"{self._bwrap} cannot be started: {error.strerror}"
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                _, complaint = await probe.communicate()
        except TimeoutError:
            return f"{self._bwrap} does not come to an end"
        finally:
            if probe.returncode is None:
                probe.kill()
                await probe.wait()
        if probe.returncode == 0:
            return None
        said = complaint.decode(errors="replace").strip().splitlines()
        return (
            f"bubblewrap does not work here ({said[-1] if said else f'exit status {probe.returncode}'}); allow unprivileged user namespaces"
        )

    async def __call__(self, event: ProcessSpawnEvent) -> None:
        workspace = event.request.workspace
        if workspace is None:
            raise ModelMustAct(f"a {event.request.purpose} process has no workspace to be kept in")
        event.argv = (*self._arguments(workspace=workspace.resolve()), "--chdir", str(event.cwd.resolve()), "--", *event.argv)
        event.cwd = Path("/")

    def _arguments(self, *, workspace: Path | None) -> list[str]:
        assert self._bwrap is not None
        arguments = [self._bwrap, "--die-with-parent", "--cap-drop", "ALL", "--unshare-user-try"]
        arguments += ["--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        arguments += [] if self._network else ["--unshare-net"]
        arguments += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        arguments += ["--tmpfs", "/tmp"]  # noqa: S108 - a mount of its own
        for path in self._writable:
            arguments += ["--bind-try", str(path), str(path)]
        for path in (*_DOORS, *self._hidden):  # after the writable ones, which may hold some of them
            if path.exists():  # where nothing is, nothing can be mounted
                arguments += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
        for path in self._readable:
            arguments += ["--ro-bind-try", str(path), str(path)]
        if workspace is not None:
            arguments += ["--bind", str(workspace), str(workspace)]
            private = workspace / ".pumice"
            arguments += ["--ro-bind-try", str(private), str(private)]
        return arguments
