"""What a person reads at the end of a run."""

from features.contracts.agent import RunFailure
from features.contracts.events import CompactionResult, ModelFallback

__all__ = ["EMPTY", "SILENT", "STOPPED", "closing_text", "compacted_text", "failure_text", "fallback_text"]

SILENT = "[SILENT]"
"""The whole answer to a scheduled prompt that has nothing to say."""
STOPPED = "Stopped before there was an answer."
EMPTY = "Done. There was nothing more to say."

_FAILURES: dict[str, str] = {
    "auth": "The model service does not accept this host's key. Whoever runs the host has to check it.",
    "billing": "The account at the model service has run out of credit. Whoever runs the host has to top it up.",
    "rate_limit": "The model service takes no more requests for the moment. Please try again in a minute or two.",
    "overloaded": "The model service is overloaded just now. Please try again in a few minutes.",
    "server": "The model service had an error of its own. Please try again.",
    "network": "I could not reach the model service. Please try again in a moment.",
    "overflow": (
        "This is more than the model can take in at once, and summing up what came before did not help. Send less at once, choose another "
        "/model, or start afresh with /new."
    ),
    "refused": "The model declined to answer this.",
    "invalid": "The model service did not understand the request. Another /model or a fresh session with /new may help.",
    "turn_limit": "I stopped here: this took more steps than one answer may take. Say so if I should go on.",
    "storage": "I could not write this down: the host's disk is full or damaged. Once whoever runs it has seen to that, say it again.",
    "unknown": "The model gave up on this for a reason it did not tell. Please try again.",
}


def failure_text(failure: RunFailure | None, error_id: str) -> str:
    """The failure in words for people, with the id under which the log has the details."""
    if failure is not None and failure.kind == "budget":
        return failure.message  # it is in words for people, and nothing went wrong
    return f"{_FAILURES[failure.kind if failure is not None else 'unknown']} (error {error_id})"


def compacted_text(result: CompactionResult) -> str:
    return (
        f"Summed up: what was said before takes about {result.tokens_after:,} tokens now instead of {result.tokens_before:,}. "
        "The newest messages are kept word for word, and nothing is lost from the session."
    )


def fallback_text(event: ModelFallback) -> str:
    """A plain word about another model that answers; the service's own words are in the log."""
    reason = {
        "auth": "does not accept this host's key",
        "billing": "has no credit left",
        "rate_limit": "takes no more requests for the moment",
        "overloaded": "is overloaded",
        "network": "cannot be reached",
    }.get(event.reason, "does not answer just now")
    return f"{event.from_model} {reason}, so {event.to_model} answers instead."


def closing_text(text: str, *, outcome: str, failure: str = "") -> str:
    """What is delivered at the end of a run, never nothing.

    Args:
        text: what the model said.
        failure: what to say about a run whose outcome is ``error``.
    """
    said = text.strip()
    if outcome == "error":
        return f"{said}\n\n{failure}" if said else failure
    if said:
        return text
    return STOPPED if outcome == "aborted" else EMPTY
