"""Slack, through slack-bolt: Socket Mode, or signed requests to the host's own address.

Receiving: an event is acknowledged only when the sink has stored it; Slack sends again what was not.
Sending: Markdown in Slack's own block where it fits, else mrkdwn in parts; a draft that was shown live becomes the answer.
Pace: one gate for everything that is sent, by Slack's figures for each method; previews give way, finals wait.
"""

from channels.slack.channel import SlackChannel
from channels.slack.manifest import REQUIRED_SCOPES, app_manifest
from channels.slack.options import SlackOptions

__all__ = ["REQUIRED_SCOPES", "SlackChannel", "SlackOptions", "app_manifest"]
