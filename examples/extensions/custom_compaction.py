"""Sums up long conversations without asking a model: what people said is kept in their own words, and what was answered in its first line.

A handler of ``BeforeCompaction`` may ``cancel`` the compaction, leave it to the host, or ``use`` a summary of its own, as here. If it
raised, nothing would be compacted.

Configuration, optional::

    [extensions.config.custom-compaction]
    longest = 6000      # characters of a summary; the oldest lines go first
"""

from collections.abc import Iterator, Sequence

from features.contracts.extension_events import BeforeCompaction
from features.contracts.extensions import ExtensionApi
from features.contracts.messages import AssistantMessage, Message, UserMessage, message_text

LONGEST_LINE = 400


async def activate(api: ExtensionApi) -> None:
    longest = int(api.config.get("longest", 6000))

    async def sum_up(event: BeforeCompaction) -> None:
        earlier = event.previous_summary.splitlines() if event.previous_summary else []
        lines = [*earlier, *lines_of([*event.history, *event.turn_prefix])]
        if lines:
            event.use("\n".join(newest(lines, longest)), details={"lines": len(lines)})

    api.on(BeforeCompaction, sum_up)


def lines_of(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, UserMessage) and (text := message_text(message).strip()):
            yield f"The person said: {' '.join(text.split())[:LONGEST_LINE]}"
        elif isinstance(message, AssistantMessage) and (text := message_text(message).strip()):
            yield f"You answered: {text.splitlines()[0][:LONGEST_LINE]}"


def newest(lines: Sequence[str], longest: int) -> list[str]:
    """As many of the last lines as fit."""
    kept: list[str] = []
    room = longest
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]
