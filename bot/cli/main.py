"""``pumice``: finding the command, and turning every error into one line."""

import sys
from importlib import import_module
from typing import Any

import click

__all__ = ["main"]

_COMMANDS = {
    "run": ("bot.cli.run", "Run the host until it is told to stop."),
    "chat": ("bot.cli.chat", "Chat in this terminal, or ask one thing."),
    "doctor": ("bot.cli.doctor", "Look at everything the host needs and say what to mend."),
    "sessions": ("bot.cli.sessions", "List, show, export, import, check and delete sessions."),
    "jobs": ("bot.cli.jobs", "List and look after scheduled jobs."),
    "pair": ("bot.cli.pair", "Say who may talk to the agent."),
    "slack": ("bot.cli.slack", "Print the manifest of the Slack app."),
    "send": ("bot.cli.send", "Deliver a text or files into a chat."),
    "service": ("bot.cli.service", "Install the host as a service of systemd."),
    "backup": ("bot.cli.backup", "Write all data into one file."),
    "restore": ("bot.cli.restore", "Bring the data of a backup back."),
}
_MISTAKE, _FAILURE, _INTERRUPTED = 2, 1, 130


class _LazyGroup(click.Group):
    """Knows names and one line of help; the rest is imported with the command that is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(_COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in _COMMANDS:
            from difflib import get_close_matches

            near = get_close_matches(args[0], _COMMANDS, n=1)
            hint = f"Did you mean 'pumice {near[0]}'?" if near else "See 'pumice --help'."
            raise click.UsageError(f"there is no command {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from bot.version import VERSION

        click.echo(f"pumice {VERSION}")
        context.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, no_args_is_help=True)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the version and leave.")
def _pumice() -> None:
    """A host for chat agents: one agent per chat, in Telegram, Slack, the terminal and a web page.

    Start it with 'pumice run'; without any configuration it serves a page on this machine.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit status: 0, 1 for a failure while working, 2 for a mistake in what was asked."""
    sys.exit(_status_of(arguments))


def _status_of(arguments: list[str] | None) -> int:
    try:
        status: Any = _pumice.main(arguments, prog_name="pumice", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return _MISTAKE
    except click.ClickException as error:
        return _tell(_as_sentences(error), _MISTAKE if isinstance(error, click.UsageError) else _FAILURE)
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except BrokenPipeError:  # whoever read our output has left
        sys.stderr.close()
        return _FAILURE
    except Exception as error:  # the one place where a command's defect becomes a line
        return _tell_error(error)
    return status if isinstance(status, int) else 0


def _tell_error(error: Exception) -> int:
    from features.contracts.errors import PumiceError

    if isinstance(error, PumiceError):
        from bot.config.errors import ConfigurationError

        return _tell(str(error), _MISTAKE if isinstance(error, ConfigurationError) else _FAILURE)
    import logging

    from bot.ids import new_id

    error_id = new_id()
    logging.basicConfig()  # where the host's own log is not set up, the traceback goes to stderr
    logging.getLogger("pumice.cli").error("defect", exc_info=error, extra={"facts": {"error_id": error_id}})
    return _tell(f"something broke inside ({type(error).__name__}, error {error_id}). Please report it with the lines above.", _FAILURE)


def _tell(text: str, status: int) -> int:
    line = " ".join(text.split())
    click.echo(f"pumice: error: {line if line.endswith(('.', '?', '!')) else line + '.'}", err=True)
    return status


def _as_sentences(error: click.ClickException) -> str:
    """``WHAT. FIX.`` of what click found."""
    what = error.format_message().rstrip(".")
    what = what[:1].lower() + what[1:]
    if not isinstance(error, click.UsageError) or error.ctx is None or "pumice --help" in what or "Did you mean" in what:
        return what
    return f"{what}. See '{error.ctx.command_path} --help'."
