"""A transcript becomes legal for whoever reads it, whatever happened to it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from features.contracts.messages import (
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from features.contracts.models import Model
from features.models import anthropic_wire, google_wire, openai_wire, responses_wire
from features.models.normalise import NO_RESULT, Legal, Target
from tests.features.models.rig import IMAGE, assistant, legalise, result, tool_call, user
from tests.features.models.strategies import TARGETS, TRANSCRIPTS
from tests.servers import anthropic_rules, google_rules, openai_rules, responses_rules

MODEL = Model(provider="anthropic", id="claude-sonnet-5-5", api="anthropic-messages")
OTHER = Model(provider="openai", id="gpt-5", api="openai-completions")
TARGET = Target(provider="anthropic", api="anthropic-messages", model="claude-sonnet-5-5", images=True, thinking=True)


def shape(messages: list[Legal]) -> str:
    """``U`` user, ``A[ids]`` assistant with its calls, ``Rid`` a result, ``!`` an error."""
    parts: list[str] = []
    for message in messages:
        if isinstance(message, UserMessage):
            parts.append("U")
        elif isinstance(message, ToolResultMessage):
            parts.append(f"R{message.tool_call_id}{'!' if message.is_error else ''}")
        else:
            calls = [block.id for block in message.content if isinstance(block, ToolCall)]
            parts.append(f"A[{','.join(calls)}]" if calls else "A")
    return " ".join(parts)


def texts(message: Legal) -> list[str]:
    assert not isinstance(message.content, str)
    return [block.text for block in message.content if isinstance(block, TextBlock)]


U, A = user("u"), assistant("a")
A1, A12 = assistant(tool_call("1")), assistant(tool_call("1"), tool_call("2"))
FAILED = assistant("f", tool_call("1"), stop_reason="error")
ABORTED = assistant("f", tool_call("9"), stop_reason="aborted")
NOTE = CustomMessage(custom_type="n", content="note", display=True, timestamp=0)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([U, A, U], "U A U"),
        ([U, A12, result("1"), U], "U A[1,2] R1 R2! U"),
        ([U, A12, result("2"), result("1"), U], "U A[1,2] R1 R2 U"),
        ([U, A1, A], "U A[1] R1! A U"),
        ([U, A1], "U A[1] R1!"),
        ([U, FAILED, result("1"), U], "U"),
        ([U, ABORTED, U], "U"),
        ([U, A1, NOTE, result("1"), U], "U A[1] R1 U"),
        ([U, A1, U, result("1")], "U A[1] R1 U"),
        ([U, A1, result("1"), result("1"), U], "U A[1] R1 U"),
        ([U, result("7"), A, U], "U A U"),
        ([U, A1, ABORTED, result("9"), result("1"), U], "U A[1] R1 U"),
        ([U, A1, FAILED, result("1"), U], "U A[1] R1! U"),
        ([U, A1, result("1"), A1, result("1"), U], "U A[1] R1 A[1_1] R1_1 U"),
        ([U, A, A, U], "U A U"),
        ([A, U], "U A U"),
        ([U, A], "U A U"),
        ([U, assistant(), U, assistant(" "), U], "U"),
        ([], "U"),
        ([result("1"), FAILED], "U"),
    ],
)
def test_calls_and_results_are_paired_by_id(messages: list[Message], expected: str) -> None:
    """One orphan makes every later request of the session fail."""
    assert shape(legalise(messages, TARGET)) == expected


def test_a_missing_result_says_that_the_call_was_cut() -> None:
    """The model must not think that it went well."""
    legal = legalise([U, A1], TARGET)

    assert texts(legal[-1]) == [NO_RESULT]


def test_two_results_of_the_same_id_go_to_two_calls_of_that_id() -> None:
    """Some servers number their calls from 0 in every message, or give none an id."""
    legal = legalise([U, assistant(tool_call(""), tool_call("")), result("", "first"), result("", "second")], TARGET)

    assert shape(legal) == "U A[call,call_1] Rcall Rcall_1"
    assert [texts(message) for message in legal[2:]] == [["first"], ["second"]]


def test_thinking_of_another_model_becomes_plain_text() -> None:
    """Its signature is worthless here, and a foreign block is refused."""
    message = assistant(
        ThinkingBlock(thinking="Let me think", thinking_signature="s"),
        ThinkingBlock(thinking="", thinking_signature="s"),
        ThinkingBlock(thinking="hidden", thinking_signature="s", redacted=True),
        TextBlock(text="so", text_signature="s"),
        ToolCall(id="c|fc_1", name="bash", arguments={}, thought_signature="t"),
        model=OTHER,
    )
    legal = legalise([U, message, result("c|fc_1")], TARGET)

    assert legal[1].content == [TextBlock(text="Let me think"), TextBlock(text="so"), ToolCall(id="c", name="bash", arguments={})]
    assert shape(legal) == "U A[c] Rc"


def test_thinking_of_the_same_model_stays_where_it_is_signed() -> None:
    """Unsigned thinking would be refused; it is read as text."""
    signed = ThinkingBlock(thinking="", thinking_signature="s")
    hidden = ThinkingBlock(thinking="", thinking_signature="s", redacted=True)
    message = assistant(signed, ThinkingBlock(thinking=" "), ThinkingBlock(thinking="plain"), hidden, "so", model=MODEL)

    assert legalise([U, message], TARGET)[1].content == [signed, TextBlock(text="plain"), hidden, TextBlock(text="so")]


def test_signed_thinking_that_cannot_be_sent_as_it_is_is_left_out() -> None:
    """Byte for byte or not at all."""
    message = assistant(ThinkingBlock(thinking="a\ud800", thinking_signature="s"), "so", model=MODEL)

    assert legalise([U, message], TARGET)[1].content == [TextBlock(text="so")]


def test_thinking_is_never_the_last_thing_said() -> None:
    """The API refuses it."""
    message = assistant("so", ThinkingBlock(thinking="and now", thinking_signature="s"), model=MODEL)

    assert legalise([U, message], TARGET)[1].content == [TextBlock(text="so")]


def test_the_same_model_at_another_provider_is_another_model() -> None:
    """Signatures are bound to the service."""
    elsewhere = Model(provider="gateway", id=MODEL.id, api=MODEL.api)
    message = assistant(ThinkingBlock(thinking="Hm.", thinking_signature="s"), "so", model=elsewhere)

    assert legalise([U, message], TARGET)[1].content == [TextBlock(text="Hm."), TextBlock(text="so")]


def test_images_are_replaced_for_a_blind_model_and_runs_said_once() -> None:
    """And a type that no model can see is named for every model."""
    blind = Target(provider="p", api="a", model="m", images=False, thinking=False)
    bitmap = ImageBlock(data="Qk0=", mime_type="image/bmp")
    messages: list[Message] = [user([IMAGE, IMAGE, TextBlock(text="look"), IMAGE]), A1, result("1", blocks=[IMAGE, IMAGE])]
    legal = legalise(messages, blind)

    note = "(image omitted: model does not support images)"
    assert texts(legal[0]) == [note, "look", note]
    assert texts(legal[2]) == ["(tool image omitted: model does not support images)"]
    assert texts(legalise([user([bitmap])], TARGET)[0]) == ["(image omitted: image/bmp is no type that the model can see)"]


def test_what_people_say_has_its_time_in_the_chats_zone() -> None:
    """The system prompt holds only the date, so that the cached prefix stays."""
    vienna = Target(provider="p", api="a", model="m", images=True, thinking=False, time_zone="Europe/Vienna")
    at = 1_767_603_840_000  # 2026-01-05 09:04 UTC
    legal = legalise([user("hi", at), assistant("a"), user([IMAGE], at), assistant("b"), user("no time")], vienna)

    assert texts(legal[0]) == ["[2026-01-05 Mon 10:04]\nhi"]
    assert texts(legal[2]) == ["[2026-01-05 Mon 10:04]"]
    assert texts(legal[4]) == ["no time"]


def test_summaries_and_notes_are_read_as_the_users() -> None:
    """No service knows these roles."""
    messages: list[Message] = [
        CompactionSummaryMessage(summary="They talked.", tokens_before=9, timestamp=1),
        BranchSummaryMessage(summary="A detour.", from_id="x", timestamp=1),
        BranchSummaryMessage(summary=" ", from_id="x", timestamp=1),
        NOTE,
    ]
    (message,) = legalise(messages, TARGET)

    first, second, third = texts(message)
    assert "<summary>\nThey talked.\n</summary>" in first
    assert "<summary>\nA detour.\n</summary>" in second
    assert third == "note"


def test_an_empty_prompt_is_said_to_be_empty() -> None:
    """A message of nothing is refused by every service."""
    assert texts(legalise([user("  ")], TARGET)[0]) == ["(empty message)"]
    assert texts(legalise([user([], 1_767_603_840_000)], TARGET)[0]) == ["[2026-01-05 Mon 09:04]\n(empty message)"]


def test_split_characters_are_joined_and_halves_left_out() -> None:
    """JSON decoders refuse half of a surrogate pair."""
    assert texts(legalise([user("a\ud83d\ude00b\ud800c")], TARGET)[0]) == ["a😀bc"]


@settings(max_examples=250, deadline=None)
@given(TRANSCRIPTS, TARGETS)
def test_any_transcript_becomes_legal_for_every_protocol(messages: list[Message], target: Target) -> None:
    """Checked by the loopback servers' own rules."""
    legal = legalise(messages, target)
    anthropic: list[Any] = json.loads(b"[" + anthropic_wire.encode_messages(legal, True) + b"]")
    openai: list[Any] = json.loads(b"[" + openai_wire.encode_messages(legal, True) + b"]")

    anthropic_rules.validate({"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": anthropic})
    openai_rules.validate({"model": "gpt-5.4", "messages": openai}, compatible=False)
    responses_rules.validate({"model": "gpt-5.4", "input": json.loads(b"[" + responses_wire.encode_messages(legal, True) + b"]")})
    for model, encode in (("gemini-2.5-flash", google_wire.encode_messages), ("gemini-3.8-flash", google_wire.nested_images)):
        google_rules.validate({"model": model, "contents": json.loads(b"[" + encode(legal, True) + b"]")})


@settings(max_examples=400, deadline=None)
@given(TRANSCRIPTS, TARGETS)
def test_normalising_again_changes_nothing(messages: list[Message], target: Target) -> None:
    """What is legal stays as it is."""
    once = legalise(messages, target)

    assert legalise(once, target) == once


@settings(max_examples=300, deadline=None)
@given(TRANSCRIPTS, TARGETS)
def test_every_call_has_exactly_its_results_behind_it(messages: list[Message], target: Target) -> None:
    """In the order of the calls; and there are no others."""
    waiting: list[str] = []
    for message in legalise(messages, target):
        if isinstance(message, ToolResultMessage):
            assert waiting
            assert message.tool_call_id == waiting.pop(0)
            continue
        assert not waiting
        if isinstance(message, AssistantMessage):
            waiting = [block.id for block in message.content if isinstance(block, ToolCall)]
    assert not waiting
