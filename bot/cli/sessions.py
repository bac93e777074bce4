"""``pumice sessions``."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bot.cli.host_data import nothing_stored, open_database, running_client
from bot.cli.options import as_json, located, read_client_config
from bot.cli.table import print_json, print_table
from bot.config import Config
from features.contracts.errors import UserMustAct

if TYPE_CHECKING:
    from features.contracts.sessions import SessionStore

__all__ = ["command"]

_MOST_LISTED = 1000


@click.group("sessions")
def command() -> None:
    """List, show and delete the sessions of all chats."""


@command.command("list")
@located
@as_json
def list_(config: Path | None, data_dir: Path | None, json: bool) -> None:
    """List the sessions of all chats, the newest first."""
    sessions = asyncio.run(_list(read_client_config(config, data_dir)))
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
    detail = asyncio.run(_show(read_client_config(config, data_dir), id))
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


@command.command("delete")
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@located
def delete(id: str, yes: bool, config: Path | None, data_dir: Path | None) -> None:
    """Delete a session for good; ID may be its beginning."""
    read = read_client_config(config, data_dir)
    session = _the_one(asyncio.run(_list(read)), id)
    if not yes:
        click.confirm(
            f"Delete {session['name'] or session['first_message'] or session['id']!r} of {session['scope']} for good?", abort=True
        )
    asyncio.run(_delete(read, session["id"]))
    click.echo(f"{session['id']} is deleted.")


async def _list(config: Config) -> list[dict[str, Any]]:
    async with running_client(config) as host:
        if host is not None:
            listed: list[dict[str, Any]] = await host.get("/api/sessions")
            return listed
    if nothing_stored(config):
        return []
    async with open_database(config) as database:
        found: list[dict[str, Any]] = _plain(await _store(database).list(limit=_MOST_LISTED))
        return found


async def _show(config: Config, typed: str) -> dict[str, Any]:
    session_id = _the_one(await _list(config), typed)["id"]
    async with running_client(config) as host:
        if host is not None:
            detail: dict[str, Any] = await host.get(f"/api/sessions/{session_id}")
            return detail
    async with open_database(config) as database:
        store = _store(database)
        header, entries, leaf = await store.load(session_id)
        summary = await store.summary(session_id)
    shown: dict[str, Any] = _plain({"summary": summary, "header": header, "entries": entries, "leaf_id": leaf})
    return shown


async def _delete(config: Config, session_id: str) -> None:
    async with running_client(config) as host:
        if host is not None:
            await host.delete(f"/api/sessions/{session_id}")
            return
    async with open_database(config) as database:
        await _store(database).delete(session_id)


def _store(database: Any) -> "SessionStore":
    from features.sessions import DatabaseSessionStore

    return DatabaseSessionStore(database)


def _the_one(sessions: Sequence[dict[str, Any]], typed: str) -> dict[str, Any]:
    """The session whose id this is, or begins with this."""
    found = [one for one in sessions if one["id"] == typed] or [one for one in sessions if one["id"].startswith(typed)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserMustAct(f"{typed!r} could be {len(found)} sessions. Give more of its id.")
    raise UserMustAct(f"there is no session {typed!r}. 'pumice sessions list' lists them.")


def _plain(value: Any) -> Any:
    """As the HTTP side gives it: one form for both ways."""
    import msgspec

    return msgspec.to_builtins(value)


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
