"""What doctor says of extensions and hooks."""

from collections.abc import Callable
from pathlib import Path

from bot.doctor import Finding, examine
from bot.migrations import all_migrations
from features.contracts.testing import FakeClock
from features.extensions import ExtensionChoices, ExtensionLoader
from features.storage import Database

GOOD = "async def activate(api): pass\n"


async def look(folder: Path, text: str = "") -> Callable[[str], list[tuple[str, str]]]:
    """Gives a function from a check to the states and sentences about it."""
    (folder / "pumice.toml").write_text(f"http.port = 0\nprocesses.sandbox = 'none'\n{text}")
    found: list[Finding] = await examine(None, {"TZ": "Europe/Vienna"}, folder, FakeClock())
    return lambda check: [
        (finding.state, finding.what + (f". {finding.fix}" if finding.fix else "")) for finding in found if finding.check == check
    ]


async def test_each_extension_that_a_start_would_refuse_is_wrong(tmp_path: Path) -> None:
    """With its reason; the others are counted. None is activated."""
    folder = tmp_path / "ext"
    folder.mkdir()
    (folder / "bad.py").write_text("import nothing_like_it")
    (folder / "fine.py").write_text(GOOD.replace("pass", "raise SystemExit"))
    found = await look(tmp_path, "[extensions]\npaths = ['ext', 'gone.py']\ndisabled = ['fime']\n[extensions.config.other]\n")

    assert found("extensions") == [
        ("ok", "1 for all chats: fine"),
        (
            "wrong",
            (
                f"bad ({folder}/bad.py): importing it fails: ModuleNotFoundError: No module named 'nothing_like_it'. "
                "Mend it, or name it in extensions.disabled"
            ),
        ),
        (
            "wrong",
            f"gone ({tmp_path}/gone.py): there is no such file or folder. Mend it, or name it in extensions.disabled",
        ),
        ("warning", "extensions.disabled names 'fime', and the host has no such extension. Did you mean 'fine'?"),
        (
            "warning",
            (
                "extensions.config names 'other', and the host has no such extension. "
                "Correct it, unless an extension in a chat's own folder is meant"
            ),
        ),
    ]


async def test_an_extension_that_others_may_change_is_wrong(tmp_path: Path) -> None:
    """They could have the host do anything."""
    (tmp_path / "fine.py").write_text(GOOD)
    (tmp_path / "fine.py").chmod(0o666)
    found = await look(tmp_path, "[extensions]\npaths = ['fine.py']\n")

    path = tmp_path / "fine.py"
    assert ("wrong", f"others may change {path}, which runs inside the host. Run: chmod o-w {path}") in found("extensions")


async def test_what_nobody_has_trusted_in_a_chats_folder_is_told(tmp_path: Path) -> None:
    """It is read and never run."""
    own = tmp_path / "data" / "workspaces" / "telegram-1" / ".pumice" / "extensions"
    own.mkdir(parents=True)
    (own / "a.py").write_text(GOOD)
    (own / "b.py").write_text("raise SystemExit")
    (found,) = [one for one in await ExtensionLoader().read_place(own) if one.path.name == "a.py"]
    assert found.snapshot is not None
    async with Database(tmp_path / "data" / "state.db", all_migrations()) as database:
        await ExtensionChoices(database, FakeClock()).trust("telegram:1", found.snapshot.digest, name="a", by="telegram:7")

    assert (await look(tmp_path))("chat extensions") == [
        ("ok", "2 in the chats' own folders"),
        ("warning", "nobody has trusted telegram-1/b.py as it is now. An owner decides with /extensions in the chat"),
        ("warning", "without a sandbox they run in owners' private chats alone. Mend the sandbox if others are to have them"),
    ]


async def test_hooks_that_cannot_be_started_are_wrong(tmp_path: Path) -> None:
    """Addresses are not called: that would tell them of something that has not happened."""
    (tmp_path / "notify.sh").write_text("#!/bin/sh\n")
    hooks = "".join(f"[[hooks]]\nevent = 'agent_end'\ncommand = ['{command}']\n" for command in ("./notify.sh", "no-such-program", "true"))
    found = await look(tmp_path, hooks + "[[hooks]]\nevent = 'agent_end'\nurl = 'http://127.0.0.1:1/'\n")

    assert found("hooks") == [
        ("wrong", f"{tmp_path}/notify.sh may not be executed. Run: chmod +x {tmp_path}/notify.sh"),
        ("wrong", "no-such-program is not there. Correct the command in [[hooks]]; a relative path is relative to the configuration"),
    ]
    (tmp_path / "notify.sh").chmod(0o755)
    found = await look(tmp_path, "[[hooks]]\nevent = 'agent_end'\ncommand = ['./notify.sh']\n")
    assert found("hooks") == [("ok", "1 set")]
