"""``pumice pair``."""

import asyncio
from pathlib import Path
from typing import Any

import click

from bot.cli.host_data import nothing_stored, open_access, running_client
from bot.cli.options import as_json, located, read_client_config
from bot.cli.table import print_json, print_table
from bot.config import Config
from features.contracts.errors import UserMustAct

__all__ = ["command"]


@click.group("pair")
def command() -> None:
    """Say who may talk to the agent."""


@command.command("list")
@located
@as_json
def list_(config: Path | None, data_dir: Path | None, json: bool) -> None:
    """List who is admitted and who holds a pairing code."""
    overview = asyncio.run(_overview(read_client_config(config, data_dir)))
    if json:
        print_json(overview)
        return
    members = [
        (member["id"], member.get("name", ""), "owner" if member.get("owner") else "", member["source"]) for member in overview["members"]
    ]
    print_table(
        ("id", "name", "", "by"), members, empty="Nobody is admitted yet. Who writes to the bot gets a code for 'pumice pair approve'."
    )
    waiting = [(person["id"], person.get("name", ""), str(person["expires_at"])[:16]) for person in overview["pending"]]
    if waiting:
        click.echo()
        print_table(("holds a code", "name", "until (UTC)"), waiting, empty="")


@command.command("approve")
@click.argument("code")
@click.option("--owner", is_flag=True, help="Make the person an owner.")
@located
def approve(code: str, owner: bool, config: Path | None, data_dir: Path | None) -> None:
    """Admit whoever got CODE from the bot."""
    click.echo(asyncio.run(_approve(read_client_config(config, data_dir), code, owner=owner)).replace("`", ""))


@command.command("revoke")
@click.argument("chat_user")
@located
def revoke(chat_user: str, config: Path | None, data_dir: Path | None) -> None:
    """Take the admission of a user or group back: telegram:12345."""
    asyncio.run(_revoke(read_client_config(config, data_dir), chat_user))
    click.echo(f"{chat_user} is no longer admitted.")


@command.command("log")
@click.option("--limit", type=click.IntRange(1, 5000), default=100, show_default=True, help="How many of the latest records.")
@located
@as_json
def log(limit: int, config: Path | None, data_dir: Path | None, json: bool) -> None:
    """Show who was refused, admitted or revoked, by whom and when."""
    records = asyncio.run(_log(read_client_config(config, data_dir), limit))
    if json:
        print_json(records)
        return
    rows = [(record["at"][:16].replace("T", " "), record["event"], record["who"], record["by"], record["detail"]) for record in records]
    print_table(("at (UTC)", "what", "who", "by", ""), rows, empty="Nothing has happened yet.")


async def _log(config: Config, limit: int) -> list[dict[str, Any]]:
    from msgspec import to_builtins

    async with running_client(config) as host:
        if host is not None:
            answer: list[dict[str, Any]] = await host.get(f"/api/access/log?limit={limit}")
            return answer
    if nothing_stored(config):
        return []
    async with open_access(config) as access:
        records: list[dict[str, Any]] = to_builtins(await access.log(limit))
        return records


async def _overview(config: Config) -> dict[str, Any]:
    async with running_client(config) as host:
        if host is not None:
            overview: dict[str, Any] = await host.get("/api/access")
            return overview
    if nothing_stored(config):
        from bot.access.members import Members

        members, pending = Members(config.access).everybody(), []
    else:
        async with open_access(config) as access:
            members, pending = await access.members(), access.pending()
    return {
        "members": [{"id": one.id, "name": one.name, "owner": one.owner, "source": one.source} for one in members if one.in_force],
        "pending": [{"id": one.person, "name": one.name, "expires_at": one.expires_at.isoformat()} for one in pending],
    }


async def _approve(config: Config, code: str, *, owner: bool) -> str:
    from bot.access.access import OPERATOR

    async with running_client(config) as host:
        if host is not None:
            answer = await host.post("/api/access/approve", {"code": code} | ({"owner": True} if owner else {}))
            return str(answer["text"])
    if nothing_stored(config):
        raise UserMustAct("no code was given to anybody here yet. Start the host, and write to the bot to get one.")
    async with open_access(config) as access:
        return await access.approve(code, OPERATOR, owner=owner)


async def _revoke(config: Config, chat_user: str) -> None:
    async with running_client(config) as host:
        if host is not None:
            await host.post("/api/access/revoke", {"id": chat_user})
            return
    from bot.access.access import OPERATOR

    revoked = False
    if not nothing_stored(config):
        async with open_access(config) as access:
            revoked = await access.revoke(chat_user, OPERATOR)
    if not revoked:
        raise UserMustAct(f"{chat_user!r} was not admitted by pairing. 'pumice pair list' shows who is.")
