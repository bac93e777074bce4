"""What Slack's refusals mean, by who acts next."""

from datetime import timedelta

from channels.slack.api import Flooded, SlackRefusal, SlackUnreachable
from features.contracts.chat import DeliveryRefused, DeliveryUncertain
from features.contracts.errors import RetryLater

__all__ = ["TOKEN_CODES", "delivery_failure", "draft_gone", "thread_gone", "unreadable"]

TOKEN_CODES = frozenset(
    ("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "no_permission", "not_allowed_token_type")
)
_UNCERTAIN = frozenset(("internal_error", "fatal_error", "request_timeout"))
_LATER = frozenset(("service_unavailable", "team_added_to_org", "org_login_required", "accesslimited"))
_UNREADABLE = (
    "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "markdown_text_conflict", "invalid_attachments",
)  # fmt: skip
_DRAFT_GONE = ("message_not_found", "cant_update_message", "edit_window_closed", "message_not_in_streaming_state", "not_in_streaming_state")
_THREAD_GONE = ("thread_not_found", "invalid_thread_ts", "cannot_reply_to_message", "message_not_found")
_PLAIN_WORDS = {
    "channel_not_found": "Slack does not know this conversation, or the bot may not see it.",
    "not_in_channel": "The bot is not in this channel; invite it with /invite.",
    "is_archived": "This channel is archived.",
    "restricted_action": "A workspace setting keeps the bot from writing here.",
    "restricted_action_read_only_channel": "This channel is read-only.",
    "restricted_action_thread_only_channel": "Only threads may be written in this channel.",
    "cannot_dm_bot": "This is another bot, and bots do not write to each other.",
    "user_disabled": "This person's Slack account is disabled.",
    "messages_tab_disabled": "The app's messages tab is switched off; an admin has to allow messages to it.",
    "file_uploads_disabled": "This workspace takes no files from apps.",
    "file_upload_size_restricted": "The file is larger than Slack takes.",
    "storage_limit_reached": "The workspace's file storage is full.",
    "no_text": "There was nothing in it that Slack could show.",
}


def delivery_failure(error: SlackRefusal | SlackUnreachable) -> Exception:
    """The contract's error for a call that failed."""
    match error:
        case SlackUnreachable(sent=False):
            return RetryLater(f"Slack cannot be reached ({error})")
        case SlackUnreachable():
            return DeliveryUncertain(f"the connection to Slack broke ({error})")
        case Flooded():
            return RetryLater("Slack asks for a pause", after=timedelta(seconds=error.seconds))
        case SlackRefusal(code=code) if code in TOKEN_CODES:
            return RetryLater(f"Slack does not accept the bot's token ({code})")
        case SlackRefusal(code=code) if code in _LATER:
            return RetryLater(f"Slack is away ({code})")
        case SlackRefusal(code=code) if code in _UNCERTAIN or error.status >= 500:
            return DeliveryUncertain(f"Slack failed while it took this ({code})")
        case SlackRefusal(code="missing_scope"):
            return DeliveryRefused(f"The Slack app lacks the scope {error.needed}; add it and install the app again.")
        case _:
            return DeliveryRefused(_PLAIN_WORDS.get(error.code, f"Slack refused it: {error.code}"))


def unreadable(error: SlackRefusal) -> bool:
    """Whether the text as it was formatted is the trouble."""
    return error.code in _UNREADABLE


def draft_gone(error: SlackRefusal) -> bool:
    return error.code in _DRAFT_GONE


def thread_gone(error: SlackRefusal) -> bool:
    return error.code in _THREAD_GONE
