"""What was sent before is kept, and changes nothing but the time it takes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.contracts.messages import Message
from features.contracts.testing import FakeClock
from features.models import anthropic_wire, google_wire, openai_wire, responses_wire
from features.models.normalise import Legal, Target, finish, normalise_part
from features.models.transcript import Transcript, TranscriptCache, WireEncoder
from tests.features.models.rig import assistant, result, tool_call, user
from tests.features.models.strategies import TARGETS, TRANSCRIPTS

TARGET = Target(provider="anthropic", api="anthropic-messages", model="m", images=True, thinking=True)
WRITERS: list[WireEncoder] = [
    anthropic_wire.encode_messages,
    openai_wire.encode_messages,
    responses_wire.encode_messages,
    google_wire.encode_messages,
    google_wire.nested_images,
]
ENCODERS = st.sampled_from(WRITERS)


U, V, A, B = user("u"), user("v"), assistant("a"), assistant("b")
CALL, RESULT = assistant(tool_call("c")), result("c")


def afresh(messages: list[Message], target: Target) -> list[Legal]:
    """The whole transcript in one go, without anything kept."""
    return finish(normalise_part(messages, target, {}))


def conversation(turns: int) -> list[Message]:
    messages: list[Message] = []
    for turn in range(turns):
        messages += [
            user(f"question {turn}"),
            assistant(tool_call(f"c{turn}", command="ls")),
            result(f"c{turn}"),
            assistant(f"answer {turn}"),
        ]
    return messages


@settings(max_examples=300, deadline=None)
@given(TRANSCRIPTS, TARGETS, ENCODERS, st.data())
def test_what_is_sent_is_the_same_with_and_without_a_memory(
    messages: list[Message], target: Target, encode: WireEncoder, data: st.DataObject
) -> None:
    """However a session grew, shrank or branched between the calls."""
    transcript = Transcript(target, encode)
    for _ in range(4):
        length = data.draw(st.integers(0, len(messages)))
        if data.draw(st.booleans()) and messages:
            index = data.draw(st.integers(0, len(messages) - 1))
            messages = [*messages[:index], *messages[index + 1 :]]
        part = messages[:length]

        assert b"".join(transcript.pieces(part)) == encode(afresh(part, target), True)


@settings(max_examples=200, deadline=None)
@given(TRANSCRIPTS, TARGETS, ENCODERS, st.lists(st.integers(0, 14), max_size=6))
def test_a_session_may_grow_step_by_step_and_go_back(messages: list[Message], target: Target, encode: WireEncoder, ends: list[int]) -> None:
    """First message by message, then to any earlier or later end."""
    transcript = Transcript(target, encode)
    for end in [*range(len(messages) + 1), *ends]:
        part = messages[:end]

        assert b"".join(transcript.pieces(part)) == encode(afresh(part, target), True)


@pytest.mark.parametrize(
    "steps",
    [
        [[U, A], [U, A, B, U]],  # two answers in a row are one message
        [[U, A, U, B, U], [U, A, U, V]],  # another question where an answer had been
        [[U, CALL, RESULT, A], [U, CALL, RESULT]],
        [[U, CALL, RESULT, A], [U, CALL, RESULT, V]],
        [[U, A, U, B], [V, A, U, B]],
    ],
)
@pytest.mark.parametrize("encode", WRITERS)
def test_a_kept_part_never_meets_what_it_would_have_to_join(steps: list[list[Message]], encode: WireEncoder) -> None:
    """What is kept ends before an answer that stays, so that nothing behind it can change it."""
    transcript = Transcript(TARGET, encode)
    for part in steps:
        assert b"".join(transcript.pieces(part)) == encode(afresh(part, TARGET), True)


def test_a_growing_session_is_converted_once() -> None:
    """Each message is encoded when it is new and once more when it has settled, not at every call."""
    encoded = 0

    def encode(messages: list[object], last: bool) -> bytes:
        nonlocal encoded
        encoded += len(messages)
        return b"{}"

    transcript = Transcript(TARGET, encode)  # type: ignore[arg-type]
    messages: list[Message] = []
    for message in conversation(200):
        messages.append(message)
        transcript.pieces(messages)

    assert encoded <= 5 * len(messages)


def test_old_sessions_are_forgotten() -> None:
    """By number, by bytes and by idle time: a provider never hears that a session has left."""
    clock = FakeClock()
    by_number = TranscriptCache(anthropic_wire.encode_messages, clock, max_sessions=2)
    for name in "abc":
        by_number.pieces(name, TARGET, conversation(2))
    by_bytes = TranscriptCache(anthropic_wire.encode_messages, clock, max_bytes=10_000)
    for name in "abc":
        by_bytes.pieces(name, TARGET, conversation(20))

    assert len(by_number) == 2
    assert by_bytes.size <= 10_000


async def test_an_idle_session_is_forgotten_at_the_next_call() -> None:
    """Whichever session makes it."""
    clock = FakeClock()
    cache = TranscriptCache(anthropic_wire.encode_messages, clock, idle_s=60)
    cache.pieces("old", TARGET, conversation(2))
    await clock.advance(61)
    cache.pieces("new", TARGET, conversation(2))

    assert len(cache) == 1


def test_without_a_session_nothing_is_kept() -> None:
    """A summary or a probe is asked once."""
    cache = TranscriptCache(anthropic_wire.encode_messages, FakeClock())
    cache.pieces("", TARGET, conversation(2))

    assert (len(cache), cache.size) == (0, 0)


def test_another_model_starts_afresh() -> None:
    """Thinking and images are another matter then."""
    cache = TranscriptCache(anthropic_wire.encode_messages, FakeClock())
    other = Target(provider="anthropic", api="anthropic-messages", model="other", images=False, thinking=False)
    messages = [*conversation(3), user("now")]
    cache.pieces("s", TARGET, messages)

    assert b"".join(cache.pieces("s", other, messages)) == anthropic_wire.encode_messages(afresh(messages, other), True)
    assert len(cache) == 1
