"""Arbitrary transcripts, broken in every way that sessions get broken."""

from hypothesis import strategies as st

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
    Usage,
    UserMessage,
)
from features.models.normalise import Target
from tests.features.models.rig import IMAGE

IDS = st.sampled_from(["a", "b", "call|fc_1", "call|fc_2", "x" * 70, "ü!", "", "a_2"])
TEXTS = st.one_of(st.sampled_from(["", " \n", "hi", "\ud800", "a\udfffb", "\ud83d\ude00"]), st.text(max_size=6))
TIMES = st.sampled_from([0, 1_767_600_000_000, -5, 10**18])
IMAGES = st.sampled_from([IMAGE, ImageBlock(data="", mime_type="image/png"), ImageBlock(data="Qk0=", mime_type="image/bmp")])
TEXT_BLOCKS = st.builds(TextBlock, text=TEXTS, text_signature=st.sampled_from([None, "s"]))
USER_BLOCKS = st.lists(st.one_of(TEXT_BLOCKS, IMAGES), max_size=3)
THOUGHTS = st.builds(ThinkingBlock, thinking=TEXTS, thinking_signature=st.sampled_from([None, "sig-1"]), redacted=st.booleans())
CALLS = st.builds(
    ToolCall,
    id=IDS,
    name=st.sampled_from(["bash", "", "a.b", "n" * 90, "\ud800"]),
    arguments=st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(), st.lists(TEXTS, max_size=2)), max_size=2),
    thought_signature=st.sampled_from([None, "t"]),
)
OWN = ("anthropic", "anthropic-messages", "claude-sonnet-5-5")
ASSISTANTS = st.builds(
    lambda content, own, stop: AssistantMessage(
        content=content,
        api=OWN[1] if own else "openai-completions",
        provider=OWN[0] if own else "openai",
        model=OWN[2],
        usage=Usage(),
        stop_reason=stop,
        timestamp=7,
    ),
    st.lists(st.one_of(TEXT_BLOCKS, THOUGHTS, CALLS), max_size=4),
    st.booleans(),
    st.sampled_from(["stop", "stop", "toolUse", "length", "error", "aborted"]),
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, content=st.one_of(TEXTS, USER_BLOCKS), timestamp=TIMES),
    ASSISTANTS,
    ASSISTANTS,
    st.builds(ToolResultMessage, tool_call_id=IDS, tool_name=TEXTS, content=USER_BLOCKS, is_error=st.booleans(), timestamp=TIMES),
    st.builds(ToolResultMessage, tool_call_id=IDS, tool_name=TEXTS, content=USER_BLOCKS, is_error=st.booleans(), timestamp=TIMES),
    st.builds(CustomMessage, custom_type=st.just("note"), content=st.one_of(TEXTS, USER_BLOCKS), display=st.booleans(), timestamp=TIMES),
    st.builds(CompactionSummaryMessage, summary=TEXTS, tokens_before=st.just(1), timestamp=TIMES),
    st.builds(BranchSummaryMessage, summary=TEXTS, from_id=st.just("x"), timestamp=TIMES),
)
TRANSCRIPTS = st.lists(MESSAGES, max_size=14)
TARGETS = st.builds(
    Target,
    provider=st.just(OWN[0]),
    api=st.just(OWN[1]),
    model=st.just(OWN[2]),
    images=st.booleans(),
    thinking=st.booleans(),
    unsigned_thinking=st.booleans(),
    time_zone=st.sampled_from(["UTC", "Europe/Vienna", "Nowhere/Town"]),
    id_limit=st.just(40),
)
