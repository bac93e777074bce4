"""What went wrong with a call, in our own terms."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from features.contracts.stream import FailureKind

__all__ = [
    "UpstreamFailure",
    "google_failure",
    "is_image_refusal",
    "is_overflow",
    "kind_of",
    "retry_after_s",
    "status_failure",
    "upstream_failure",
]

OVERFLOW_EXCLUSIONS = (r"^(throttling ?(error|exception)|service unavailable):", r"rate limit", r"too many requests")
"""Looked for first: a throttled call is worth a retry, not a compaction."""

OVERFLOW_PATTERNS = (
    r"prompt is too long",  # Anthropic
    r"request_too_large|request exceeds the maximum size",  # Anthropic, HTTP 413
    r"input is too long for requested model",  # Bedrock
    r"exceeds the context window",  # OpenAI
    r"input token count.*exceeds the maximum",  # Google
    r"maximum prompt length is \d+",  # xAI
    r"reduce the length of the messages",  # Groq
    r"maximum context length is [\d,]+ tokens",  # OpenRouter, OpenAI
    r"exceeds (?:the )?(?:model'?s )?maximum context length(?: of [\d,]+ tokens?|\s*\([\d,]+\))",  # LiteLLM
    r"exceeds (?:the )?maximum allowed input length of [\d,]+ tokens?",  # Poolside
    r"input \(\d+ tokens\) is longer than the model'?s context length \(\d+ tokens\)",  # Together
    r"prompt too long; exceeded (?:max )?context length",  # Ollama
    r"this model.?s maximum context length is \d+|requested \d+ output tokens|prompt contains.*\d+ input tokens",  # vLLM
    r"for a total of.*\d+ tokens",  # vLLM
    r"prompt has [\d,]+ tokens, but the configured context size is",  # DS4
    r"prompt token count.*exceeds the limit of \d+",  # Copilot
    r"exceeds the available context size",  # llama.cpp
    r"greater than the context length",  # LM Studio
    r"context window exceeds limit",  # MiniMax
    r"exceeded model token limit",  # Kimi
    r"too large for model with \d+ maximum context length",  # Mistral
    r"model_context_window_exceeded",  # z.ai, Anthropic
    r"context[_ ]length[_ ]exceeded",
    r"too many tokens",
    r"token limit exceeded",
    r"^4(?:00|13)\s*(?:status code)?\s*\(no body\)",  # Cerebras
)

IMAGE_PATTERNS = (
    r"could not process image|unable to process input image|unsupported mime type: image",
    r"image (?:dimensions )?exceeds?\b",
    r"image\.source\.base64",
    r"unsupported image",
    r"invalid_image|image_parse_error|invalid_base64|invalid image|not a valid image|image data you provided",
)

_exclusions = re.compile("|".join(OVERFLOW_EXCLUSIONS), re.IGNORECASE)
_overflow = re.compile("|".join(OVERFLOW_PATTERNS), re.IGNORECASE)
_image = re.compile("|".join(IMAGE_PATTERNS), re.IGNORECASE)
_billing = re.compile(r"insufficient_quota|credit balance is too low|billing_hard_limit|exceeded your current quota", re.IGNORECASE)

_BY_TYPE: dict[str, FailureKind] = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "invalid_api_key": "auth",
    "billing_error": "billing",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "overloaded_error": "overloaded",
    "api_error": "server",
    "server_error": "server",
    "timeout_error": "server",
    "invalid_request_error": "invalid",
    "not_found_error": "invalid",
    "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "auth",
    "API_KEY_INVALID": "auth",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "UNAVAILABLE": "overloaded",
    "INTERNAL": "server",
    "DEADLINE_EXCEEDED": "server",
    "INVALID_ARGUMENT": "invalid",
    "NOT_FOUND": "invalid",
    "content_filter": "refused",
    "content_policy_violation": "refused",
}
_BY_STATUS: dict[int, FailureKind] = {
    401: "auth",
    402: "billing",
    403: "auth",
    408: "server",
    409: "server",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}


class UpstreamFailure(Exception):
    """A failure that has been understood; the text is the full one, for the log and for whoever looks closer."""

    def __init__(self, kind: FailureKind, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s


def is_overflow(message: str) -> bool:
    """Whether an error text says that the conversation is too long for the model."""
    return _exclusions.search(message) is None and _overflow.search(message) is not None


def is_image_refusal(message: str) -> bool:
    """Whether an error text says that an image of the conversation cannot be used."""
    return _image.search(message) is not None


def kind_of(status: int | None, types: tuple[str, ...], message: str) -> FailureKind:
    """Who is at fault, by HTTP status (None in mid-stream), the service's error types and its words."""
    if status != 429 and is_overflow(message):
        return "overflow"
    if _billing.search(message) or _billing.search(" ".join(types)):
        return "billing"
    if status is not None and status in _BY_STATUS:
        return _BY_STATUS[status]
    if status is not None and status >= 500:
        return "overloaded" if "overloaded_error" in types else "server"
    for name in types:
        if name in _BY_TYPE:
            return _BY_TYPE[name]
    if status is not None and 400 <= status < 500:
        return "invalid"
    return "unknown"


def upstream_failure(status: int | None, body: Any, *, retry_after: float | None = None, request_id: str | None = None) -> UpstreamFailure:
    """The failure that an error body describes: Anthropic's, OpenAI's, or whatever a gateway says."""
    types, words = _describe(body)
    parts = [str(status)] if status is not None else []
    parts += [" ".join(dict.fromkeys(types))] if types else []
    message = " ".join(parts)
    if not words and not types and status is not None:
        message = f"{status} status code (no body)"
    elif words:
        message = f"{message}: {words}" if message else words
    kind = kind_of(status, types, message)
    if request_id:
        message += f" (request {request_id})"
    return UpstreamFailure(kind, message, retry_after_s=retry_after)


def status_failure(status: int, body: Any, headers: Mapping[str, str], now: datetime) -> UpstreamFailure:
    return upstream_failure(
        status,
        body,
        retry_after=retry_after_s(headers, now),
        request_id=headers.get("request-id") or headers.get("x-request-id"),
    )


def google_failure(status: int | None, body: Any, *, retry_after: float | None = None) -> UpstreamFailure:
    """From Google's error body, whose details say more than its words.

    It says "exceeded your current quota" of any limit; only one that is counted by the day is not over soon.
    """
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping) or not error.get("message"):
        return upstream_failure(status, None if isinstance(error, Mapping) else error, retry_after=retry_after)
    details = [entry for entry in error.get("details") or () if isinstance(entry, Mapping)]
    state = str(error.get("status") or "")
    types = [str(entry["reason"]) for entry in details if entry.get("reason")] + ([state] if state.isupper() else [])
    failure = upstream_failure(status, body, retry_after=retry_after)
    kind = failure.kind
    if "RESOURCE_EXHAUSTED" in types:
        kind = "billing" if "PerDay" in str(details) else "rate_limit"
    elif kind in ("invalid", "unknown", "server"):
        kind = next((_BY_TYPE[name] for name in types if name in _BY_TYPE), kind)
    waits = [_seconds(entry.get("retryDelay")) for entry in details]
    wait = next((wait for wait in waits if wait is not None), failure.retry_after_s)
    return UpstreamFailure(kind, " ".join([*types, str(failure)]), retry_after_s=wait)


def _seconds(text: Any) -> float | None:
    """Of a duration as Google writes it, like ``34.07s``."""
    return _number(text.removesuffix("s")) if isinstance(text, str) else None


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the service asks to wait, from ``retry-after-ms``, ``retry-after`` (seconds or a date) or a reset header."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None:
        return seconds
    if text:
        try:
            at = parsedate_to_datetime(text)
        except ValueError:
            return None
        return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds())
    return _number(headers.get("x-ratelimit-reset-after"))


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < float("inf") else None


def _describe(body: Any) -> tuple[tuple[str, ...], str]:
    """Error types and words of a body; the words of the service behind a gateway too."""
    if not isinstance(body, Mapping):
        return (), str(body).strip() if body else ""
    error = body.get("error", body)
    if not isinstance(error, Mapping):
        return (), str(error)
    types = tuple(str(error[key]) for key in ("type", "code") if error.get(key) and error.get(key) != "error")
    words = str(error.get("message") or "")
    metadata = error.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("raw"):
        words += f" {metadata['raw']}"
    return types, words.strip() or ("" if types else str(dict(body)))
