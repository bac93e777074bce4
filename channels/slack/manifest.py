"""What Pumice asks of a Slack workspace."""

from typing import Any

__all__ = ["EVENTS", "REQUIRED_SCOPES", "SLASH_COMMAND", "app_manifest"]

SLASH_COMMAND = "/pumice"
REQUIRED_SCOPES: dict[str, str] = {
    "app_mentions:read": "hear when it is mentioned",
    "assistant:write": "show what it is doing",
    "channels:history": "read the threads of public channels it is in",
    "channels:read": "know those channels",
    "chat:write": "answer",
    "commands": f"offer {SLASH_COMMAND}",
    "files:read": "read files that people send",
    "files:write": "send files",
    "groups:history": "read the threads of private channels it is in",
    "groups:read": "know those channels",
    "im:history": "hear direct messages",
    "im:read": "know its direct messages",
    "im:write": "begin a direct message, for reminders",
    "mpim:history": "hear group messages",
    "mpim:read": "know its group messages",
    "reactions:write": "mark a message",
    "users:read": "know people's names",
}
EVENTS = ("app_mention", "message.channels", "message.groups", "message.im", "message.mpim")


def app_manifest(*, name: str = "Pumice", mode: str = "socket", request_url: str = "") -> dict[str, Any]:
    """The app's manifest, to paste at api.slack.com/apps.

    Args:
        request_url: where Slack sends events in ``http`` mode.
    """
    http = {"request_url": request_url} if mode == "http" else {}
    command = {
        "command": SLASH_COMMAND,
        "description": "Tell the agent of this conversation to do something",
        "usage_hint": "new | stop | status | help",
        "should_escape": True,
    }
    return {
        "display_information": {"name": name, "description": "An agent that works in your conversations"},
        "features": {
            "app_home": {"home_tab_enabled": False, "messages_tab_enabled": True, "messages_tab_read_only_enabled": False},
            "bot_user": {"display_name": name.lower(), "always_online": True},
            "slash_commands": [command | ({"url": request_url} if http else {})],
        },
        "oauth_config": {"scopes": {"bot": sorted(REQUIRED_SCOPES)}},
        "settings": {
            "event_subscriptions": http | {"bot_events": sorted(EVENTS)},
            "interactivity": {"is_enabled": True} | http,
            "org_deploy_enabled": False,
            "socket_mode_enabled": mode == "socket",
            "token_rotation_enabled": False,
        },
    }
