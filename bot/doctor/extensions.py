"""Extensions and hooks: whether each can be loaded, is trusted, and can be started."""

import shutil
import stat
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path

from bot.config import Config
from bot.doctor.finding import Finding, good, warning, wrong
from bot.host_parts import BUILT_IN, hook_argv
from features.extensions import ExtensionLoader, LoadedExtensions

__all__ = ["examine_extensions", "examine_hooks", "examine_own_extensions"]

_MOST_NAMED = 5


async def examine_extensions(config: Config) -> list[Finding]:
    """Imports those of the whole host, as a start does, and activates none."""
    section = config.extensions
    loader = ExtensionLoader(config=section.config, disabled=section.disabled, taken=BUILT_IN)
    try:
        loaded = await loader.load(section.paths)
    finally:
        loader.close()
    found = [
        wrong("extensions", f"{extension.name} ({extension.origin}): {extension.reason}", "Mend it, or name it in extensions.disabled")
        for extension in loaded.problems
    ]
    found += _unknown_names(config, loaded)
    found += [
        wrong("extensions", f"others may change {path}, which runs inside the host", f"Run: chmod o-w {path}")
        for path in section.paths
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o002
    ]
    at_work = [extension.name for extension in loaded.all if extension.state == "active"]
    return [good("extensions", f"{len(at_work)} for all chats" + (f": {', '.join(at_work)}" if at_work else "")), *found]


def _unknown_names(config: Config, loaded: LoadedExtensions) -> Iterator[Finding]:
    names = {extension.name for extension in loaded.all}
    written = [("extensions.disabled", name) for name in config.extensions.disabled]
    written += [("extensions.config", name) for name in config.extensions.config]
    for key, name in written:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            fix = f"Did you mean {near[0]!r}?" if near else "Correct it, unless an extension in a chat's own folder is meant"
            yield warning("extensions", f"{key} names {name!r}, and the host has no such extension", fix)


async def examine_own_extensions(config: Config, trusted: Collection[str] | None, *, sandboxed: bool) -> list[Finding]:
    """Those in the chats' own folders; nothing of them is run.

    Args:
        trusted: the digests that somebody trusts; None where that cannot be seen.
    """
    loader, total, untrusted = ExtensionLoader(), 0, []
    workspaces = config.host.data_dir / "workspaces"
    for workspace in sorted(workspaces.iterdir()) if workspaces.is_dir() else ():
        for found in await loader.read_place(workspace / ".pumice" / "extensions"):
            total += 1
            if found.snapshot is not None and trusted is not None and found.snapshot.digest not in trusted:
                untrusted.append(f"{workspace.name}/{found.path.name}")
    if not total:
        return []
    findings = [good("chat extensions", f"{total} in the chats' own folders")]
    if untrusted:
        shown = ", ".join(untrusted[:_MOST_NAMED]) + (f" and {len(untrusted) - _MOST_NAMED} more" if len(untrusted) > _MOST_NAMED else "")
        findings.append(
            warning("chat extensions", f"nobody has trusted {shown} as it is now", "An owner decides with /extensions in the chat")
        )
    if not sandboxed:
        what = "without a sandbox they run in owners' private chats alone"
        findings.append(warning("chat extensions", what, "Mend the sandbox if others are to have them"))
    return findings


def examine_hooks(config: Config) -> Iterator[Finding]:
    """Whether each command is there; nobody is called."""
    missing = [hook_argv(config, hook)[0] for hook in config.hooks if hook.command and shutil.which(hook_argv(config, hook)[0]) is None]
    for command in missing:
        if Path(command).exists():
            yield wrong("hooks", f"{command} may not be executed", f"Run: chmod +x {command}")
        else:
            yield wrong(
                "hooks", f"{command} is not there", "Correct the command in [[hooks]]; a relative path is relative to the configuration"
            )
    if config.hooks and not missing:
        yield good("hooks", f"{len(config.hooks)} set")
