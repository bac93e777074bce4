"""Importing an extension from what was read of it, under a name of its own, so that nothing it does stays behind when it fails."""

import asyncio
import importlib
import inspect
import sys
import threading
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar

from features.contracts.extensions import Activate
from features.extensions.sources import BrokenExtensionError, Snapshot

__all__ = ["PrivateModules", "activate_of", "guarded"]

T = TypeVar("T")

_PREFIX = "_pumice_extension_"
_numbers = count(1)  # over all hosts of the process: the module table is the interpreter's


class PrivateModules(MetaPathFinder, Loader):
    """The modules of loaded extensions. They come from snapshots: what changes on the disk later is not run."""

    def __init__(self) -> None:
        self._snapshots: dict[str, Snapshot] = {}

    def reserve(self, snapshot: Snapshot) -> str:
        """A private name for the extension's module; ``unload`` gives it back."""
        root = f"{_PREFIX}{next(_numbers)}"
        self._snapshots[root] = snapshot
        if self not in sys.meta_path:
            sys.meta_path.append(self)
        return root

    def load(self, root: str) -> Activate:
        """Import what was reserved. Runs the extension's code: call it through ``guarded``.

        Raises:
            BrokenExtensionError: it has no ``activate``.
            BaseException: whatever its code raises.
        """
        source = self._snapshots[root].source
        below = source.is_folder and source.entry != "__init__.py"
        module = importlib.import_module(f"{root}.{Path(source.entry).stem}" if below else root)
        return activate_of(getattr(module, "activate", None))

    def unload(self, root: str) -> None:
        self._snapshots.pop(root, None)
        for name in [name for name in sys.modules if name == root or name.startswith(f"{root}.")]:
            del sys.modules[name]
        if not self._snapshots and self in sys.meta_path:
            sys.meta_path.remove(self)

    def close(self) -> None:
        for root in list(self._snapshots):
            self.unload(root)

    # What the interpreter asks

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        root, _, below = fullname.partition(".")
        if (snapshot := self._snapshots.get(root)) is None:
            return None
        if not snapshot.source.is_folder:
            return None if below else self._spec(fullname, snapshot, snapshot.source.entry, is_package=False)
        inside = below.replace(".", "/")
        as_package = f"{inside}/__init__.py" if inside else "__init__.py"
        if as_package in snapshot.files or any(name.startswith(f"{inside}/" if inside else "") for name in snapshot.files):
            return self._spec(fullname, snapshot, as_package, is_package=True)
        return self._spec(fullname, snapshot, f"{inside}.py", is_package=False) if f"{inside}.py" in snapshot.files else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        snapshot, inside = spec.loader_state
        code: CodeType = compile(snapshot.files.get(inside, b""), str(spec.origin), "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - this is what loading an extension is; it was configured or trusted

    def get_source(self, fullname: str) -> str | None:
        """For tracebacks."""
        spec = self.find_spec(fullname)
        if spec is None:
            return None
        snapshot, inside = spec.loader_state
        return str(snapshot.files.get(inside, b""), "utf-8", "replace")

    def _spec(self, fullname: str, snapshot: Snapshot, inside: str, *, is_package: bool) -> ModuleSpec:
        path = snapshot.source.path
        spec = ModuleSpec(fullname, self, origin=str(path / inside if snapshot.source.is_folder else path), is_package=is_package)
        spec.has_location = True
        spec.loader_state = (snapshot, inside)
        return spec


def activate_of(found: Any) -> Activate:
    """``async def activate(api)``, or an object that can be called like it.

    Raises:
        BrokenExtensionError: it is something else.
    """
    if found is None:
        raise BrokenExtensionError("it has no activate; write: async def activate(api)")
    call = found if inspect.isroutine(found) else getattr(found, "__call__", None)  # noqa: B004 - the method itself is looked at
    if not (inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(call)):
        raise BrokenExtensionError("its activate is no async function; write: async def activate(api)")
    try:
        inspect.signature(found).bind(None)
    except TypeError:
        raise BrokenExtensionError("its activate must take one argument; write: async def activate(api)") from None
    activate: Activate = found
    return activate


async def guarded(work: Callable[[], T], *, deadline_s: float) -> T:
    """Run somebody's code on a thread of its own, so that neither what it raises nor how long it takes can harm the host.

    A thread cannot be stopped; one that is late is left behind.

    Raises:
        BrokenExtensionError: the code raised, also SystemExit and the like, or is late.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, problem: BaseException | None) -> None:
        if done.done():
            return
        if problem is not None:
            done.set_exception(problem)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, problem = None, None
        try:
            result = work()
        except BrokenExtensionError as error:
            problem = error
        except BaseException as error:  # also SystemExit, which would end the thread in silence
            problem = BrokenExtensionError(_said(error))
            problem.__cause__ = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, problem)

    threading.Thread(target=run, name="extension import", daemon=True).start()
    try:
        async with asyncio.timeout(deadline_s):
            return await done
    except TimeoutError:
        raise BrokenExtensionError(
            f"importing it takes longer than {deadline_s:g} s; do slow work in activate, not while importing"
        ) from None


def _said(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"syntax error in {Path(error.filename or '').name}, line {error.lineno}: {error.msg}"
    if isinstance(error, SystemExit):
        return "it calls sys.exit while being imported"
    text = str(error).strip().partition("\n")[0][:300]
    return f"importing it fails: {type(error).__name__}" + (f": {text}" if text else "")
