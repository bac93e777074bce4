"""``pumice service``: the unit files of systemd."""

import os
import sys
from pathlib import Path

import click

from features.contracts.errors import OperatorMustAct

__all__ = ["command"]

_UNIT = "pumice.service"
_DROP_IN = "sandbox.conf"
_SYSTEM_UNITS = Path("/etc/systemd/system")
_SYSTEM_CONFIG = Path("/etc/pumice/pumice.toml")

_user = click.option("--user", is_flag=True, help="For this user alone, instead of for the machine.")
_units = click.option("--units", type=click.Path(file_okay=False, path_type=Path), help="Where unit files are, if elsewhere.")


@click.group("service")
def command() -> None:
    """Run the host as a service of systemd."""


@command.command("install")
@_user
@_units
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), help="The configuration that the service reads.")
def install(user: bool, units: Path | None, config: Path | None) -> None:
    """Write the unit files; says what to do next."""
    folder = units or _usual(user=user)
    read = (config or (_home_config() / "pumice.toml" if user else _SYSTEM_CONFIG)).absolute()
    for name, text in _files(user=user, config=read).items():
        _write(folder / name, text)
        click.echo(f"Wrote {folder / name}.")
    if not read.exists():
        click.echo(f"There is no {read} yet, and the service does not start without it. Make it; an empty file means the defaults.")
    control = "systemctl --user" if user else "systemctl"
    click.echo(f"Next: {control} daemon-reload && {control} enable --now pumice")
    if user:
        click.echo("To let it run while you are logged out: loginctl enable-linger")


@command.command("uninstall")
@_user
@_units
def uninstall(user: bool, units: Path | None) -> None:
    """Take the unit files away; data and configuration stay."""
    folder = units or _usual(user=user)
    if not (folder / _UNIT).exists():
        raise OperatorMustAct(f"{folder / _UNIT} is not there. 'pumice service install' makes it.")
    for name in (_UNIT, f"{_UNIT}.d/{_DROP_IN}"):
        (folder / name).unlink(missing_ok=True)
    drop_ins = folder / f"{_UNIT}.d"
    if drop_ins.is_dir() and not any(drop_ins.iterdir()):
        drop_ins.rmdir()
    control = "systemctl --user" if user else "systemctl"
    click.echo(f"The unit files are gone. If it still runs: {control} stop pumice; then {control} daemon-reload")


@command.command("status")
@_user
@_units
def status(user: bool, units: Path | None) -> int:
    """Say whether the unit is installed and as this version ships it; status 1 if not."""
    folder = units or _usual(user=user)
    unit = folder / _UNIT
    if not unit.exists():
        click.echo(f"Not installed: there is no {unit}. 'pumice service install{' --user' if user else ''}' makes it.")
        return 1
    config = next((word for word in unit.read_text().split() if word.endswith(".toml")), str(_SYSTEM_CONFIG))
    changed = [name for name, text in _files(user=user, config=Path(config)).items() if _present(folder / name) != text]
    for name in changed:
        click.echo(f"{folder / name} is not as this version ships it: it was changed, or is of another version.")
    if not changed:
        click.echo(f"Installed: {unit}.")
    click.echo(f"Whether it runs: {'systemctl --user' if user else 'systemctl'} status pumice")
    return 1 if changed else 0


def _files(*, user: bool, config: Path) -> dict[str, str]:
    """What belongs into the folder of units, by name."""
    program = f"{sys.executable} -m bot.cli"
    if user:
        text = _shipped("pumice-user.service").replace("@DATA@", str(_home_data()))
        return {_UNIT: text.replace("@PUMICE@", program).replace("@CONFIG@", str(config))}
    home = next((place for place in ("/home", "/root", "/run/user") if Path(sys.prefix).is_relative_to(place)), None)
    if home is not None:
        raise OperatorMustAct(
            f"Pumice is installed in {sys.prefix}, and a service of the machine sees nothing of {home}. Install it elsewhere, such as in "
            "/opt/pumice, or say --user."
        )
    text = _shipped(_UNIT).replace("@PUMICE@", program).replace("@CONFIG@", str(config))
    return {_UNIT: text, f"{_UNIT}.d/{_DROP_IN}": _shipped(_DROP_IN)}


def _shipped(name: str) -> str:
    """In the source tree beside ``bot``, in an installed package within it."""
    here = Path(__file__).parents[1]
    folder = next(folder for folder in (here / "systemd", here.parent / "systemd") if folder.is_dir())
    return (folder / name).read_text()


def _usual(*, user: bool) -> Path:
    if user:
        return _home("XDG_CONFIG_HOME", ".config") / "systemd" / "user"
    if os.geteuid() != 0:
        raise OperatorMustAct("Only root may write the machine's unit files. Use sudo, or say --user.")
    return _SYSTEM_UNITS


def _home_config() -> Path:
    return _home("XDG_CONFIG_HOME", ".config") / "pumice"


def _home_data() -> Path:
    return _home("XDG_DATA_HOME", ".local/share") / "pumice"


def _home(variable: str, fallback: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / fallback)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(text)
        fresh.chmod(0o644)
        fresh.replace(path)
    except OSError as error:
        raise OperatorMustAct(f"{path} cannot be written: {error.strerror or error}. Use sudo, or say --user.") from error


def _present(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None
