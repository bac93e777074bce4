"""``pumice slack``."""

import click

__all__ = ["command"]


@click.group("slack")
def command() -> None:
    """What Slack needs to know of this host."""


@command.command("manifest")
@click.option("--name", default="Pumice", show_default=True, help="The app's name.")
@click.option("--request-url", default="", help="For HTTP mode: https://HOST/slack/events. Without it the app uses Socket Mode.")
def manifest_command(name: str, request_url: str) -> None:
    """Print the app's manifest, with all scopes and events: paste it at api.slack.com/apps, Create New App, From a manifest."""
    import json

    from channels.slack import app_manifest

    if request_url and not request_url.startswith("https://"):
        raise click.UsageError("--request-url is no address that begins with https://. Slack calls no other.")
    click.echo(json.dumps(app_manifest(name=name, mode="http" if request_url else "socket", request_url=request_url), indent=2))
