"""What a started process gets to see: command, folder and its whole environment."""

import logging
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from features.contracts.errors import ModelMustAct, PumiceError
from features.contracts.processes import ProcessSpawn, ProcessSpawnEvent, ProcessSpawnHook, ProcessSpawnRequest, SecretRedactor

__all__ = ["ProcessPolicyOptions", "ProcessSpawnPolicy"]

log = logging.getLogger("pumice.processes")

_SAFE = ("PATH", "HOME", "USER", "LANG", "LC_*", "TERM", "TZ", "SHELL", "TMPDIR")
_DENY = ("*TOKEN*", "*KEY*", "*SECRET*", "*PASSWORD*", "*CREDENTIAL*", "*_DSN", "PUMICE_*")


class ProcessPolicyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The ``[processes]`` section. ``allow`` and ``deny`` are name patterns, upper and lower case alike.

    ``deny`` wins over what is inherited and over a pattern in ``allow``; a name written out in ``allow`` wins over ``deny``, because
    whoever wrote it meant that variable.
    """

    inherit: Literal["safe", "all"] = "safe"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = _DENY


class ProcessSpawnPolicy:
    """Implements ``features.contracts.processes.ProcessSpawnPolicy``.

    Order: inherited variables, filtered by name and by value; the request's own, as they are; ``TZ`` from the request's zone; the hooks.

    Args:
        environ: the host's environment; read anew for each spawn.
    """

    def __init__(
        self,
        options: ProcessPolicyOptions,
        *,
        redactor: SecretRedactor,
        environ: Mapping[str, str],
        hooks: Sequence[ProcessSpawnHook] = (),
    ) -> None:
        self._options = options
        self._redactor = redactor
        self._environ = environ
        self._hooks = tuple(hooks)

    async def prepare(self, request: ProcessSpawnRequest) -> ProcessSpawn:
        environment = self._inherited()
        environment.update(request.environment)
        if request.time_zone is not None:
            environment["TZ"] = request.time_zone
        event = ProcessSpawnEvent(request=request, argv=request.argv, cwd=request.cwd, environment=environment)
        for hook in self._hooks:
            await _run(hook, event)
        return ProcessSpawn(argv=tuple(event.argv), cwd=event.cwd, environment=dict(event.environment))

    def _inherited(self) -> dict[str, str]:
        return {name: value for name, value in self._environ.items() if self._is_passed(name) and not self._redactor.contains_secret(value)}

    def _is_passed(self, name: str) -> bool:
        options = self._options
        if name in options.allow:
            return True
        if _matches(name, options.deny):
            return False
        return options.inherit == "all" or _matches(name, _SAFE) or _matches(name, options.allow)


async def _run(hook: ProcessSpawnHook, event: ProcessSpawnEvent) -> None:
    purpose = event.request.purpose
    try:
        await hook(event)
    except ModelMustAct:
        raise
    except PumiceError as refusal:
        raise ModelMustAct(f"the process was not started: {refusal}") from refusal
    except Exception as defect:  # whatever a hook raises, the spawn fails closed
        log.exception(
            "spawn hook failed", extra={"facts": {"purpose": purpose, "hook": getattr(hook, "__qualname__", type(hook).__name__)}}
        )
        raise ModelMustAct(f"the process was not started: a check that must pass before any {purpose} process failed") from defect


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)
