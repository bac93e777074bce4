"""From files, folders and packages to extensions; and everything that can be wrong with one."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from features.contracts.extensions import ExtensionApi, ExtensionSpec
from features.extensions import ExtensionLoader, LoadedExtensions

GOOD = "async def activate(api):\n    api.append(__name__)\n"


@pytest.fixture
def loader() -> Iterator[ExtensionLoader]:
    loader = ExtensionLoader(deadline_s=5.0)
    yield loader
    loader.close()


def write(folder: Path, **files: str) -> Path:
    """``a__b`` is the file ``b`` in the folder ``a``; ``.py`` is added."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


async def activated(spec: ExtensionSpec) -> list[str]:
    said: list[str] = []
    await spec.activate(cast("ExtensionApi", said))
    return said


def states(loaded: LoadedExtensions) -> dict[str, str]:
    return {extension.name: extension.state for extension in loaded.all}


async def test_files_and_folders_of_a_folder_are_found_one_level_deep(loader: ExtensionLoader, tmp_path: Path) -> None:
    """What a folder of extensions looks like; what begins with a dot or an underscore is nobody's extension."""
    write(tmp_path, beta=GOOD, alpha_one=GOOD, _helper=GOOD)
    write(tmp_path / "gamma", extension="from .inner import activate", inner=GOOD)
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "__init__.py").write_text("from .deep.core import activate")
    write(tmp_path / "delta" / "deep", core="from ..near import activate")
    write(tmp_path / "delta", near=GOOD)
    write(tmp_path / "nothing" / "deeper", extension=GOOD)
    (tmp_path / "notes.txt").write_text("no")

    loaded = await loader.load([tmp_path], entry_points=False)

    assert states(loaded) == {"alpha-one": "active", "beta": "active", "delta": "active", "gamma": "active"}
    assert [spec.origin for spec in loaded.specs] == [str(tmp_path / name) for name in ("alpha_one.py", "beta.py", "delta", "gamma")]
    for spec in loaded.specs:
        assert await activated(spec)


async def test_a_path_may_be_one_file_or_one_folder_that_is_an_extension(loader: ExtensionLoader, tmp_path: Path) -> None:
    """And a file that is named twice, itself and through its folder, is one extension, in the place of its first mention."""
    write(tmp_path, a=GOOD, b=GOOD)
    write(tmp_path / "c", extension=GOOD)

    loaded = await loader.load([tmp_path / "b.py", tmp_path / "c", tmp_path], entry_points=False)

    assert list(states(loaded).items()) == [("b", "active"), ("c", "active"), ("a", "active")]


async def test_name_priority_and_configuration_come_along(tmp_path: Path) -> None:
    """An extension says its name itself; its table of the configuration is under that name."""
    write(tmp_path, x="NAME = 'my-thing'\nPRIORITY: int = -7\n" + GOOD)
    loader = ExtensionLoader(config={"my-thing": {"level": 3}})

    (spec,) = (await loader.load([tmp_path], entry_points=False)).specs

    assert (spec.name, spec.priority, spec.config) == ("my-thing", -7, {"level": 3})
    loader.close()


async def test_two_files_of_one_name_do_not_see_each_other(loader: ExtensionLoader, tmp_path: Path) -> None:
    """Each is a module of its own, whatever it is called; also one that is called like a module of Python."""
    write(tmp_path / "one", json="NAME = 'one'\nwho = []\n" + GOOD)
    write(tmp_path / "two", json="NAME = 'two'\nwho = []\n" + GOOD)

    loaded = await loader.load([tmp_path / "one", tmp_path / "two"], entry_points=False)

    assert states(loaded) == {"one": "active", "two": "active"}
    names = [await activated(spec) for spec in loaded.specs]
    assert names[0] != names[1]
    assert sys.modules["json"].loads("1") == 1


async def test_loading_again_runs_the_file_as_it_is_now(loader: ExtensionLoader, tmp_path: Path) -> None:
    """Also when the change keeps size and time of the file, which fools a cache of compiled files."""
    path = tmp_path / "x.py"
    for word in ("aaa", "bbb"):
        path.write_text(f"async def activate(api):\n    api.append('{word}')\n")
        os.utime(path, (1_000_000, 1_000_000))
        loaded = await loader.load([path], entry_points=False)
        assert await activated(loaded.specs[0]) == [word]

    assert not (tmp_path / "__pycache__").exists()


async def test_an_import_that_happens_later_gives_what_was_read_then(loader: ExtensionLoader, tmp_path: Path) -> None:
    """An extension that was trusted must not be able to pull in what came afterwards."""
    write(tmp_path / "x", extension="async def activate(api):\n    from . import late\n    api.append(late.WORD)\n", late="WORD = 'read'")
    loaded = await loader.load([tmp_path / "x"], entry_points=False)
    write(tmp_path / "x", late="WORD = 'changed'")

    assert await activated(loaded.specs[0]) == ["read"]


async def test_released_modules_are_gone(loader: ExtensionLoader, tmp_path: Path) -> None:
    """A host that is reloaded a hundred times does not keep a hundred copies."""
    write(tmp_path / "x", extension="from .inner import activate", inner=GOOD)
    before = set(sys.modules)
    loaded = await loader.load([tmp_path], entry_points=False)
    assert set(sys.modules) - before

    for extension in loaded.all:
        loader.release(extension)

    assert set(sys.modules) - before == set()
    assert loader._modules not in sys.meta_path


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "syntax": ("async def activate(api)\n", "syntax error in x.py, line 1"),
    "tabs": ("if True:\n\tx = 1\n        y = 2\n", "syntax error in x.py, line 3"),
    "null byte": ("\0", "x.py"),
    "no utf-8": (b"\xff\xfe\xfa = 1", "x.py"),
    "deep": ("x = " + "(" * 5000 + ")" * 5000, "x.py"),
    "nothing in it": ("", "it has no activate; write: async def activate(api)"),
    "activate is no function": ("activate = 5", "its activate is no async function"),
    "activate is not async": ("def activate(api): pass", "its activate is no async function"),
    "activate takes nothing": ("async def activate(): pass", "its activate must take one argument"),
    "activate takes two": ("async def activate(a, b): pass", "its activate must take one argument"),
    "missing import": (
        "import no_such_module_anywhere",
        "importing it fails: ModuleNotFoundError: No module named 'no_such_module_anywhere'",
    ),
    "relative import": ("from . import x", "importing it fails: ImportError"),
    "raises": ("raise RuntimeError('boom\\nsecond line')", "importing it fails: RuntimeError: boom"),
    "exits": ("import sys\nsys.exit(0)", "it calls sys.exit while being imported"),
    "interrupts": ("raise KeyboardInterrupt", "importing it fails: KeyboardInterrupt"),
    "cancels": ("import asyncio\nraise asyncio.CancelledError", "importing it fails: CancelledError"),
    "a base exception": ("class Odd(BaseException): pass\nraise Odd('x')", "importing it fails: Odd: x"),
    "an endless generator": ("raise StopIteration", "importing it fails: StopIteration"),
    "uses the loop": ("import asyncio\nasyncio.get_running_loop()", "importing it fails: RuntimeError"),
    "an impossible name": ("NAME = 'My Thing'\n" + GOOD, "'My Thing' is no extension's name"),
    "a name that is none": ("NAME = 5\n" + GOOD, "5 is no extension's name"),
    "a name that is too long": (f"NAME = '{'a' * 65}'\n" + GOOD, "is no extension's name"),
    "an empty name": ("NAME = ''\n" + GOOD, "'' is no extension's name"),
    "a worked-out name": ("NAME = 'a' + 'b'\n" + GOOD, "NAME is worked out by code"),
    "an odd priority": ("PRIORITY = 'high'\n" + GOOD, "PRIORITY is 'high'"),
    "a priority out of bounds": ("PRIORITY = 1000001\n" + GOOD, "PRIORITY is 1000001"),
    "a true priority": ("PRIORITY = True\n" + GOOD, "PRIORITY is True"),
    "too large": (b"#" * 8_000_001, "it is larger than 8 MB"),
}


@pytest.mark.parametrize(("text", "reason"), BROKEN.values(), ids=BROKEN.keys())
async def test_a_broken_one_is_reported_and_harms_no_other(loader: ExtensionLoader, tmp_path: Path, text: str | bytes, reason: str) -> None:
    """Whatever is in the file; nothing of it stays in the module table either."""
    (tmp_path / "x.py").write_bytes(text.encode() if isinstance(text, str) else text)
    write(tmp_path, good=GOOD)
    before = set(sys.modules)

    loaded = await loader.load([tmp_path], entry_points=False)

    (problem,) = loaded.problems
    assert problem.origin == str(tmp_path / "x.py")
    assert reason in problem.reason
    assert "\n" not in problem.reason
    assert [spec.name for spec in loaded.specs] == ["good"]
    for extension in loaded.all:
        loader.release(extension)
    assert {name for name in set(sys.modules) - before if name.startswith("_pumice")} == set()


async def test_an_import_that_never_ends_is_left_behind(tmp_path: Path) -> None:
    """It must not keep the host from starting. What it registers afterwards is not found any more."""
    release, module = threading.Event(), "release_for_the_test"
    sys.modules[module] = cast("Any", release)
    write(tmp_path, x=f"import sys\nsys.modules[{module!r}].wait()\n" + GOOD, y=GOOD)
    loader = ExtensionLoader(deadline_s=0.2)
    try:
        loaded = await loader.load([tmp_path], entry_points=False)
    finally:
        release.set()
        del sys.modules[module]

    assert states(loaded) == {"x": "failed", "y": "active"}
    assert "takes longer than 0.2 s" in loaded.problems[0].reason
    loader.close()


async def test_whoever_is_cancelled_while_loading_leaves_no_modules(tmp_path: Path) -> None:
    """A person says /stop while a chat is opened."""
    release, module = threading.Event(), "release_for_the_test"
    sys.modules[module] = cast("Any", release)
    write(tmp_path, a=GOOD, b=f"import sys\nsys.modules[{module!r}].wait()\n" + GOOD)
    loader, before = ExtensionLoader(), set(sys.modules)
    loading = asyncio.create_task(loader.load([tmp_path], entry_points=False))
    try:
        async with asyncio.timeout(20):
            while len([name for name in set(sys.modules) - before if name.startswith("_pumice")]) < 2:  # noqa: ASYNC110 - a thread's doing
                await asyncio.sleep(0.005)
        loading.cancel()
        await asyncio.gather(loading, return_exceptions=True)

        assert {name for name in set(sys.modules) - before if name.startswith("_pumice")} == set()
    finally:
        release.set()
        del sys.modules[module]
        loader.close()


async def test_a_pipe_and_a_missing_path_are_reported_and_not_waited_for(loader: ExtensionLoader, tmp_path: Path) -> None:
    """Opening a pipe to read waits for a writer, for ever."""
    folder = write(tmp_path / "folder")
    folder.mkdir()
    os.mkfifo(folder / "pipe.py")
    os.mkfifo(tmp_path / "pipe.py")

    loaded = await loader.load([tmp_path / "pipe.py", folder, tmp_path / "gone"], entry_points=False)

    assert [problem.reason for problem in loaded.problems] == [
        "it is neither a file nor a folder",
        "pipe.py is no ordinary file",
        "there is no such file or folder",
    ]


async def test_the_first_of_a_name_wins_and_the_second_is_reported(tmp_path: Path) -> None:
    """Both would answer to one name in configuration and commands; and nobody takes a name of the host's."""
    write(tmp_path, a="NAME = 'same'\n" + GOOD, b="NAME = 'same'\nraise RuntimeError\n", approvals=GOOD)
    loader = ExtensionLoader(taken=["approvals"])

    loaded = await loader.load([tmp_path], entry_points=False)

    assert [spec.origin for spec in loaded.specs] == [str(tmp_path / "a.py")]
    assert [problem.reason for problem in loaded.problems] == [
        "its name is that of the host itself; the first one counts",
        f"its name is that of {tmp_path / 'a.py'}; the first one counts",
    ]
    loader.close()


async def test_what_is_disabled_is_not_imported(tmp_path: Path) -> None:
    """Also where the file itself says its name: that is read without running anything."""
    write(tmp_path, a="NAME = 'off'\nraise RuntimeError('ran')\n", b=GOOD)
    loader = ExtensionLoader(disabled=["off"])

    loaded = await loader.load([tmp_path], entry_points=False)

    assert states(loaded) == {"off": "disabled", "b": "active"}
    loader.close()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, with one that brings extensions."""
    site = tmp_path / "site"
    package = "pumice_test_package"
    write(
        site / package,
        plain="PRIORITY = 4\n" + GOOD,
        direct=GOOD.replace("activate", "start"),
        bad="import sys\nsys.exit(3)",
        off="raise RuntimeError('ran')",
    )
    (site / package / "__init__.py").write_text("")
    about = site / "pumice_test_package-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: pumice-test-package\nVersion: 1.2\n")
    lines = {"plain": "plain", "direct": "direct:start", "bad": "bad", "off": "off", "missing": "nowhere", "Bad_Name": "plain"}
    (about / "entry_points.txt").write_text("[pumice.extensions]\n" + "\n".join(f"{name} = {package}.{to}" for name, to in lines.items()))
    monkeypatch.syspath_prepend(site)
    yield site
    for name in [name for name in sys.modules if name.startswith(package)]:
        del sys.modules[name]


@pytest.mark.usefixtures("installed")
async def test_installed_packages_bring_extensions() -> None:
    """Through the entry-point group ``pumice.extensions``: a module with ``activate``, or the function itself."""
    loader = ExtensionLoader(disabled=["off"])

    loaded = await loader.load()

    assert {name: state for name, state in states(loaded).items() if name != "Bad_Name"} == {
        "plain": "active", "direct": "active", "bad": "failed", "off": "disabled", "missing": "failed",
    }  # fmt: skip
    assert {spec.name: (spec.origin, spec.priority) for spec in loaded.specs} == {
        "direct": ("package pumice-test-package 1.2", 0), "plain": ("package pumice-test-package 1.2", 4),
    }  # fmt: skip
    reasons = {problem.name: problem.reason for problem in loaded.problems}
    assert "sys.exit" in reasons["bad"]
    assert "ModuleNotFoundError" in reasons["missing"]
    assert "'Bad_Name' is no extension's name" in reasons["Bad_Name"]


@pytest.mark.usefixtures("installed")
async def test_a_configured_file_goes_before_a_package_of_the_same_name(loader: ExtensionLoader, tmp_path: Path) -> None:
    """What somebody wrote down for this host is meant more than what happens to be installed."""
    path = write(tmp_path, plain=GOOD) / "plain.py"

    loaded = await loader.load([path])

    assert next(spec.origin for spec in loaded.specs if spec.name == "plain") == str(path)


async def test_what_is_in_a_place_is_not_run_before_it_is_trusted(loader: ExtensionLoader, tmp_path: Path) -> None:
    """Whoever can put a file there would otherwise own the host. It is listed under its own name all the same."""
    mark = tmp_path / "mark"
    folder = write(tmp_path / "extensions", x=f"NAME = 'thing'\nimport pathlib\npathlib.Path({str(mark)!r}).touch()\n" + GOOD)

    read = await loader.read_place(folder)
    blocked = await loader.load_place(read, trusted=())

    assert states(blocked) == {"thing": "untrusted"}
    assert not mark.exists()
    loaded = await loader.load_place(read, trusted=[blocked.all[0].digest])
    assert states(loaded) == {"thing": "active"}
    assert mark.exists()


async def test_every_change_of_any_file_is_another_content(loader: ExtensionLoader, tmp_path: Path) -> None:
    """Changed, grown, renamed, moved between two files: each asks again."""
    folder = tmp_path / "extensions"
    package = write(folder / "x", extension=GOOD, a="1", b="2")
    digests = []

    async def look() -> None:
        (found,) = await loader.read_place(folder)
        assert found.snapshot is not None
        digests.append(found.snapshot.digest)

    await look()
    (package / "data.bin").write_bytes(b"\0")
    await look()
    (package / "data.bin").rename(package / "data2.bin")
    await look()
    (package / "a.py").write_text("12")
    (package / "b.py").write_text("")
    await look()
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "a.pyc").write_bytes(b"x")
    await look()

    assert len(set(digests)) == 5


async def test_what_is_trusted_is_what_runs_even_if_the_file_changes_in_between(loader: ExtensionLoader, tmp_path: Path) -> None:
    """Looking and running are one reading."""
    folder = write(tmp_path / "extensions", x="async def activate(api):\n    api.append('trusted')\n")
    read = await loader.read_place(folder)
    assert read[0].snapshot is not None
    write(folder, x="async def activate(api):\n    api.append('swapped')\n")

    loaded = await loader.load_place(read, trusted=[read[0].snapshot.digest])

    assert await activated(loaded.specs[0]) == ["trusted"]


async def test_symlinks_in_a_place_are_refused(loader: ExtensionLoader, tmp_path: Path) -> None:
    """They can lead to what the agent may write."""
    outside = write(tmp_path / "outside", x=GOOD, y=GOOD)
    folder = write(tmp_path / "extensions", a__extension=GOOD, b__extension=GOOD)
    (folder / "file.py").symlink_to(outside / "x.py")
    (folder / "folder").symlink_to(outside)
    (outside / "extension.py").write_text(GOOD)
    (folder / "a" / "inner.py").symlink_to(outside / "x.py")
    (folder / "b" / "inner").symlink_to(outside)

    loaded = await loader.load_place(await loader.read_place(folder), trusted=())

    assert states(loaded) == {"a": "failed", "b": "failed", "file": "failed", "folder": "failed"}
    assert all("symlink" in problem.reason for problem in loaded.problems)
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert await loader.read_place(link) == ()


async def test_a_place_cannot_take_the_name_of_the_hosts_extensions(loader: ExtensionLoader, tmp_path: Path) -> None:
    """Nor their configuration with it."""
    folder = write(tmp_path / "extensions", gate=GOOD)
    read = await loader.read_place(folder)
    assert read[0].snapshot is not None

    loaded = await loader.load_place(read, trusted=[read[0].snapshot.digest], names=["gate"])

    assert loaded.problems[0].reason == "its name is that of an extension of the whole host; the first one counts"


async def test_too_many_files_are_no_extension(loader: ExtensionLoader, tmp_path: Path) -> None:
    """A whole environment was copied there; reading it at every start is nobody's wish."""
    folder = write(tmp_path / "extensions", x__extension=GOOD)
    for number in range(500):
        (folder / "x" / f"{number}.txt").touch()

    assert [found.problem for found in await loader.read_place(folder)] == ["it has more than 500 files"]
    assert await loader.read_place(tmp_path / "nowhere") == ()
