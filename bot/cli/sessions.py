"""``pumice sessions``."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from bot.cli.options import as_json, located, read_client_config
from bot.cli.table import print_json, print_table
from bot.config import Config
from features.contracts.errors import PumiceError, UserMustAct

if TYPE_CHECKING:
    from bot.cli.session_source import SessionSource
    from features.contracts.session_transfer import CheckedSession, ExportFormat, ImportedSession

__all__ = ["command"]

T = TypeVar("T")


@click.group("sessions")
def command() -> None:
    """List, show, export, import, check and delete the sessions of all chats."""


@command.command("list")
@located
@as_json
def list_(config: Path | None, data_dir: Path | None, json: bool) -> None:
    """List the sessions of all chats, the newest first."""
    sessions = _listed(read_client_config(config, data_dir))
    if json:
        print_json(sessions)
        return
    rows = [
        (
            one["id"],
            one["scope"],
            one["name"] or one["first_message"],
            str(one["message_count"]),
            str(one["modified_at"])[:16].replace("T", " "),
        )
        for one in sessions
    ]
    print_table(("id", "chat", "session", "messages", "last (UTC)"), rows, empty="There are no sessions yet.")


@command.command("show")
@click.argument("id")
@located
@as_json
def show(id: str, config: Path | None, data_dir: Path | None, json: bool) -> None:
    """Show what was said in a session; ID may be its beginning."""

    async def read(source: "SessionSource") -> dict[str, Any]:
        return await source.show(_the_one(await source.list(), id)["id"])

    detail = _with_sessions(read_client_config(config, data_dir), read)
    if detail is None:
        raise _unknown(id)
    if json:
        print_json(detail)
        return
    summary = detail["summary"]
    click.echo(f"{summary['id']}  {summary['scope']}  {summary['name'] or summary['first_message']}".rstrip())
    for entry in detail["entries"]:
        if entry["type"] == "message":
            click.echo()
            click.echo(f"{str(entry['timestamp'])[:16].replace('T', ' ')}  {entry['message']['role']}")
            click.echo(_text(entry["message"]))


@command.command("export")
@click.argument("id")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--format", "form", type=click.Choice(["jsonl", "html", "md"]), help="jsonl unless FILE's name says otherwise.")
@click.option("--force", is_flag=True, help="Write over a FILE that is there.")
@located
def export(id: str, file: Path | None, form: str | None, force: bool, config: Path | None, data_dir: Path | None) -> None:
    """Write a session into FILE, or to standard output; ID may be its beginning.

    jsonl is the session file that pi reads too, html and md are for people.
    """
    if form is None:
        form = file.suffix.lstrip(".") if file is not None and file.suffix in (".html", ".md") else "jsonl"
    if file is not None and file.exists() and not force:
        raise UserMustAct(f"{file} is there already. Choose another name, or say --force.")

    async def read(source: "SessionSource") -> bytes:
        return await source.export(_the_one(await source.list(), id)["id"], cast("ExportFormat", form))

    data = _with_sessions(read_client_config(config, data_dir), read)
    if data is None:
        raise _unknown(id)
    if file is None:
        click.echo(data, nl=False)
        return
    try:
        _write_whole(file, data)
    except OSError as error:
        raise UserMustAct(f"{file} cannot be written: {error.strerror}.") from None
    click.echo(f"{file} is written.", err=True)


@command.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--chat", default="console:main", metavar="CHAT", show_default=True, help="The chat that can resume them.")
@located
@as_json
def import_(files: Sequence[Path], chat: str, config: Path | None, data_dir: Path | None, json: bool) -> None:
    """Take session files in, of pi or of this program, of any version; prints the new ids.

    What is damaged is salvaged and said; the files stay as they are. '/resume ID' in CHAT goes on with one.
    """
    from features.contracts.chat import Address

    try:
        Address.parse(chat)
    except ValueError as error:
        raise click.BadParameter(f"{error}", param_hint="--chat") from None
    refused: list[str] = []
    imported: list[dict[str, Any]] = []

    async def take(source: "SessionSource") -> None:
        for file in _shown(files, "Importing"):
            try:
                found = await source.import_file(file.read_bytes(), chat)
            except OSError as error:
                refused.append(f"{file} cannot be read: {error.strerror}.")
            except UserMustAct as error:
                refused.append(f"{file}: {error}")
            else:
                imported.append({"file": str(file), "id": found.id, "entries": found.entries, "warnings": found.warnings})
                if not json:
                    _tell_imported(file, found)

    _with_sessions(read_client_config(config, data_dir), take, make=True)
    if json:
        print_json(imported)
    if refused:
        for line in refused[:-1]:
            click.echo(f"pumice: error: {line}", err=True)
        raise UserMustAct(refused[-1])


@command.command("check")
@click.argument("ids", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Only say what is wrong.")
@located
@as_json
def check(ids: Sequence[str], dry_run: bool, config: Path | None, data_dir: Path | None, json: bool) -> None:
    """Look for damage in sessions, in all of them or in those with these IDs, and repair it.

    A session as it was before a repair is kept as a file in the data directory's folder 'damaged'.
    """

    async def look(source: "SessionSource") -> "list[CheckedSession]":
        listed = await source.list()
        asked = [_the_one(listed, typed)["id"] for typed in ids] or [one["id"] for one in listed]
        return [await source.check(session_id, repair=not dry_run) for session_id in _shown(asked, "Checking")]

    checked = _with_sessions(read_client_config(config, data_dir), look) or []
    if json:
        print_json(checked)
    else:
        rows = [(one.id, _state(one), "; ".join([*one.problems, *one.remarks]), one.original or "") for one in checked]
        print_table(("id", "state", "found", "as it was"), rows, empty="There are no sessions yet.")
    if any(one.problems and one.original is None for one in checked):
        raise PumiceError("some sessions are damaged. Repair them with 'pumice sessions check'.")


@command.command("delete")
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@located
def delete(id: str, yes: bool, config: Path | None, data_dir: Path | None) -> None:
    """Delete a session for good; ID may be its beginning."""
    read = read_client_config(config, data_dir)
    session = _the_one(_listed(read), id)
    if not yes:
        click.confirm(
            f"Delete {session['name'] or session['first_message'] or session['id']!r} of {session['scope']} for good?", abort=True
        )
    _with_sessions(read, lambda source: source.delete(session["id"]))
    click.echo(f"{session['id']} is deleted.")


def _listed(config: Config) -> list[dict[str, Any]]:
    return _with_sessions(config, lambda source: source.list()) or []


def _with_sessions(config: Config, act: "Callable[[SessionSource], Awaitable[T]]", *, make: bool = False) -> T | None:
    """Do something with the sessions; None where no host ever ran."""

    async def run() -> T | None:
        from bot.cli.session_source import open_sessions

        async with open_sessions(config, make=make) as source:
            return None if source is None else await act(source)

    return asyncio.run(run())


def _the_one(sessions: Sequence[dict[str, Any]], typed: str) -> dict[str, Any]:
    """The session whose id this is, or begins with this."""
    found = [one for one in sessions if one["id"] == typed] or [one for one in sessions if one["id"].startswith(typed)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserMustAct(f"{typed!r} could be {len(found)} sessions. Give more of its id.")
    raise _unknown(typed)


def _unknown(typed: str) -> UserMustAct:
    return UserMustAct(f"there is no session {typed!r}. 'pumice sessions list' lists them.")


def _tell_imported(file: Path, found: "ImportedSession") -> None:
    click.echo(found.id)
    for warning in found.warnings:
        click.echo(f"pumice: warning: {file}: {warning}", err=True)


def _state(one: "CheckedSession") -> str:
    if not one.problems:
        return "sound"
    return "damaged" if one.original is None else "repaired"


def _shown(things: Sequence[T], label: str) -> Iterator[T]:
    """The things one by one, with a bar on a terminal."""
    if len(things) < 2 or not sys.stderr.isatty():
        yield from things
        return
    with click.progressbar(things, label=label, file=sys.stderr) as bar:
        yield from bar


def _write_whole(file: Path, data: bytes) -> None:
    """As a whole or not at all; what it replaces is there until then."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.new")
    try:
        draft.write_bytes(data)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _text(message: dict[str, Any]) -> str:
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    parts = []
    for block in content:
        kind = block.get("type")
        if kind == "text":
            parts.append(block["text"])
        elif kind == "toolCall":
            parts.append(f"[{block['name']} {block['arguments']}]")
        elif kind == "image":
            parts.append(f"[{block.get('mimeType', 'image')}]")
    return "\n".join(parts)
