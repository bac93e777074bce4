"""Has a model write notes on a conversation, in as many pieces as its window asks for."""

from collections.abc import Awaitable, Callable, Sequence

from features.compaction.prompts import SYSTEM, SummaryForm, request_text
from features.compaction.tokens import estimate
from features.contracts.errors import RetryLater
from features.contracts.messages import AssistantMessage, UserMessage, message_text
from features.contracts.models import Model, ModelRequest
from features.contracts.stream import FailureKind

__all__ = ["Ask", "Summariser"]

Ask = Callable[[ModelRequest], Awaitable[tuple[AssistantMessage, FailureKind | None]]]
"""One model call: its answer, and who was at fault where it failed. It retries passing faults by itself."""

_CHARS_PER_TOKEN = 4
_MOST_NARROWINGS = 3
_MOST_PARTS = 8
_FEWEST_TOKENS = 512
_SHARE_OF_WINDOW = 0.85
"""A quarter of the characters is a guess."""


class Summariser:
    """
    Args:
        limit: tokens that a request may take at most; the model's window, or less where the service has refused that much.
    """

    def __init__(self, model: Model, ask: Ask, *, limit: int) -> None:
        self._model = model
        self._ask = ask
        self._limit = limit

    async def write(
        self,
        form: SummaryForm,
        pieces: Sequence[str],
        *,
        max_output: int,
        previous: str | None = None,
        focus: str = "",
        standing: Sequence[str] = (),
        think: bool = False,
    ) -> str:
        """Notes on the pieces, one part after another, each with the notes on what came before it.

        Raises:
            RetryLater: the model failed, gave no notes, or was cut off; there are no notes then.
        """
        notes, rest, narrowed = previous, list(pieces), 0
        budget = int(self._limit * _SHARE_OF_WINDOW) - max_output
        most = budget
        while rest:
            around = request_text(form, "", previous=notes, focus=focus, standing=standing, most_words=0)
            room = max(min(budget - _tokens(SYSTEM + around), most), _FEWEST_TOKENS) * _CHARS_PER_TOKEN
            rest = _newest(rest, room * _MOST_PARTS)
            part, behind = _part(rest, room)

            def request(most_words: int, part: str = part, notes: str | None = notes) -> str:
                return request_text(form, part, previous=notes, focus=focus, standing=standing, most_words=most_words)

            text = await self._text(request, max_output, think=think)
            if text is not None:
                notes, rest = text, behind
                continue
            narrowed += 1
            if narrowed > _MOST_NARROWINGS:
                raise RetryLater("I could not sum up what was said before: it is too long for the model even piece by piece.")
            most = -(-_tokens(part) // 2)
        return notes or ""

    async def _text(self, request: Callable[[int], str], max_output: int, *, think: bool) -> str | None:
        """What the model writes; None when the request was too long for it. Notes that were cut off are asked for once more, shorter."""
        message, failure = await self._ask(self._request(request(0), max_output, think=think))
        if failure is None and message.stop_reason == "length":
            words = max(max_output // 3, 50)
            message, failure = await self._ask(self._request(request(words), max_output, think=False))
        if failure == "overflow":
            return None
        if failure is not None:
            raise RetryLater(_failed(failure)) from _Reply(message)
        if message.stop_reason == "length":
            raise RetryLater(
                "The summary was cut off at the model's limit twice, so I did not keep it. Nothing is lost; another /model may help."
            )
        if not (text := message_text(message).strip()):
            raise RetryLater("The model gave an empty summary, so I did not keep it. Nothing is lost.")
        return text

    def _request(self, text: str, max_output: int, *, think: bool) -> ModelRequest:
        return ModelRequest(
            system_prompt=SYSTEM,
            messages=[UserMessage(content=text, timestamp=0)],
            thinking="high" if think and self._model.reasoning else "off",
            max_output=max_output,
        )


class _Reply(Exception):
    """What the service said, for the log."""

    def __init__(self, message: AssistantMessage) -> None:
        super().__init__(message.error_message or "no reason given")


def _failed(kind: FailureKind) -> str:
    reason = {
        "auth": "the model service does not accept this host's key",
        "billing": "the account at the model service has run out of credit",
        "rate_limit": "the model service takes no more requests for the moment",
        "overloaded": "the model service is overloaded",
        "network": "I could not reach the model service",
        "refused": "the model declined to",
    }.get(kind, "the model service failed")
    return f"I could not sum up what was said before: {reason}. Nothing is lost; try /compact later."


def _part(pieces: Sequence[str], room: int) -> tuple[str, list[str]]:
    """As many of the first pieces as fit into ``room`` characters, one at least, and the others."""
    used, size = 0, 0
    for piece in pieces:
        size += len(piece) + 2
        if used and size > room:
            break
        used += 1
    text = "\n\n".join(pieces[:used])
    if len(text) > room:  # a single one
        half = room // 2
        text = f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
    return text, list(pieces[used:])


def _newest(pieces: list[str], room: int) -> list[str]:
    """What bounds the work: the newest pieces that fit, and a word about the others."""
    size, kept = 0, len(pieces)
    for index in range(len(pieces) - 1, -1, -1):
        size += min(len(pieces[index]), room // _MOST_PARTS) + 2
        if size > room and kept < len(pieces):
            break
        kept = index
    return pieces if kept == 0 else [f"[{kept} older messages did not fit and are left out]", *pieces[kept:]]


def _tokens(text: str) -> int:
    return estimate(UserMessage(content=text, timestamp=0))
