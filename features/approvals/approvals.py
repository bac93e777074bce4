"""The gate that every tool call passes last."""

import logging
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from features.approvals.grants import Grant, Grants
from features.approvals.options import ApprovalOptions
from features.approvals.request_text import request_text
from features.approvals.simple_command import simple_argv
from features.contracts.chat import Address
from features.contracts.clock import Clock
from features.contracts.database import Database
from features.contracts.errors import PumiceError
from features.contracts.extension_events import ProcessSpawning, ToolCalled
from features.contracts.extensions import ExtensionApi, ExtensionSpec
from features.contracts.sessions import TransactionWork

__all__ = ["Approvals"]

log = logging.getLogger("pumice.approvals")

_SHOWN_WITHIN_S = 30.0
_FIRST, _LAST = 1_000_000, -1_000_000  # as far as priorities go
ONCE, ALWAYS, DENY = "Allow once", "Allow always for this chat", "Deny"

_SWITCHED_OFF = "{tool} is not to be used on this host (approvals.{key} is 'deny'). Do it another way, or say that it cannot be done."
_DENIED = "The person did not allow this call, so it was not run. Do not get the same done in another way; ask what they want instead."
_NOBODY = "This call needs a person's approval and nobody is here to give it, so it was not run. Say what you would have done."
_TOO_LATE = "Nobody allowed this call within {seconds:g} seconds, so it was not run. Say what you wanted to do, and that it needs approval."
_BROKEN = "This call could not be approved for a reason that the log of this host has, so it was not run. Say so."
_CHANGED = "an extension changed the command after it was approved, so it was not run; an owner has to look at the extensions of this host"


class Approvals:
    """Host-wide: the policy, and what chats allowed for good. ``extension`` is what each session gets of it."""

    def __init__(self, options: ApprovalOptions, database: Database, clock: Clock) -> None:
        self.options = options
        self._patterns = options.patterns()
        self._grants = Grants(database)
        self._clock = clock

    def extension(self) -> ExtensionSpec:
        return ExtensionSpec(name="approvals", activate=self._activate, priority=_LAST)

    async def granted(self, place: Address) -> Sequence[Grant]:
        """What a place allowed for good, oldest first."""
        return await self._grants.list(str(place))

    async def remove(self, place: Address, ids: Sequence[str]) -> int:
        """Take back what was allowed for good; how many of ``ids`` there were."""
        return await self._grants.remove(str(place), ids)

    def move_place(self, old: Address, new: Address) -> TransactionWork:
        return self._grants.move(str(old.place), str(new.place))

    def place_moved(self, old: Address, new: Address) -> None:
        """Nothing is kept in memory."""

    async def _activate(self, api: ExtensionApi) -> None:
        place = str(Address.parse(api.session.address).place)
        spawns = _Spawns()

        async def gate(event: ToolCalled) -> None:
            try:
                await self._judge(api, place, event)
            except PumiceError as error:
                event.block(f"This call could not be approved, so it was not run: {error}")
            except Exception:  # raising would count against the extension, and after some of it nobody would be asked any more
                log.exception("approval failed", extra={"facts": {"tool": event.call.name}})
                event.block(_BROKEN)

        api.on(ToolCalled, gate, priority=_LAST)
        if self.options.policy("bash") == "ask":
            api.on(ProcessSpawning, spawns.note, priority=_FIRST)
            api.on(ProcessSpawning, spawns.compare, priority=_LAST)

    async def _judge(self, api: ExtensionApi, place: str, event: ToolCalled) -> None:
        tool, options = event.call.name, self.options
        command = event.arguments.get("command") if tool == "bash" else None
        script = event.arguments.get("script") if tool == "schedule" else None
        if isinstance(script, str) and script.strip() and options.policy(tool) != "deny" and options.policy("bash") != "allow":
            tool, command = "bash", script  # a watcher needs what its command would need, and what is allowed is this very script
        policy = options.policy(tool)
        if policy == "allow":
            return
        event.freeze()
        if policy == "deny":
            event.block(_SWITCHED_OFF.format(tool=tool, key=options.key(tool)))
            return
        argv = simple_argv(command) if isinstance(command, str) else None
        if argv is not None and any(pattern.matches(argv) for pattern in self._patterns):
            return
        if await self._grants.covers(place, tool, argv):
            return
        await self._ask(api, place, event, tool, argv)

    async def _ask(self, api: ExtensionApi, place: str, event: ToolCalled, tool: str, argv: tuple[str, ...] | None) -> None:
        """
        Args:
            tool: the one whose policy it is.
        """
        timeout_s = self.options.timeout_s
        if not api.ui.interactive:
            event.block(_NOBODY)
            return
        may_stand = tool != "bash" or argv is not None
        always = (
            "" if not may_stand else f'"{ALWAYS}" is for this very command.' if argv is not None else f'"{ALWAYS}" is for every call of it.'
        )
        answer = await api.ui.select(
            request_text(event.call.name, event.arguments, always=always),
            [ONCE, ALWAYS, DENY] if may_stand else [ONCE, DENY],
            timeout_s=timeout_s,
            owners_only=[ALWAYS],
        )
        if answer == ALWAYS:
            await self._grants.add(place, Grant(tool=tool, argv=argv), self._clock.now())
        elif answer != ONCE:
            event.block(_DENIED if answer == DENY else _TOO_LATE.format(seconds=timeout_s))


class _Spawns:
    """What is approved is what runs: extensions of a session may not change a command on its way to being started."""

    def __init__(self) -> None:
        self._noted: WeakKeyDictionary[ProcessSpawning, tuple[object, ...]] = WeakKeyDictionary()

    async def note(self, event: ProcessSpawning) -> None:
        """Before all others: what the host itself, its sandbox among it, made of the request."""
        self._noted[event] = _facts(event)

    async def compare(self, event: ProcessSpawning) -> None:
        """After all others."""
        if event.spawn.request.purpose == "bash" and self._noted.get(event) != _facts(event):
            event.cancel(_CHANGED)


def _facts(event: ProcessSpawning) -> tuple[object, ...]:
    return (*event.spawn.argv, event.spawn.cwd)
