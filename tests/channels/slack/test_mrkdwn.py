"""Markdown in Slack's own writing."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels.markup import RichText, render, units
from channels.slack.mrkdwn import mrkdwn, mrkdwn_parts, without_pings
from tests.servers.slack_rules import pings_in

_MARKS = ("**", "*", "_", "~~", "`", "```", "> ", "- ", "1. ", "# ", "\n", "\n\n")
_WORDS = ("word ", "日本 ", "🎉", "<!here>", "<@U1>", "&", "<b>", "[x](https://e.x/a|b)")
_PIECES = st.sampled_from(_MARKS + _WORDS)
_MARKDOWN = st.lists(_PIECES | st.text(max_size=8), max_size=50).map("".join)


@pytest.mark.parametrize(
    ("markdown", "written"),
    [
        ("# Title", "*Title*"),
        ("**b** *i* ~~s~~ `c`", "*b* _i_ ~s~ `c`"),
        ("mid**dle**word", "mid\u200b*dle*\u200bword"),
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("[the (page)](https://x.y/a_(b)?p=1&q=2)", "<https://x.y/a_(b)?p=1&amp;q=2|the (page)>"),
        ("> one **b**\n> two", "> one *b*\n> two"),
        ("```py\nif a < b:\n    pass\n```", "```\nif a &lt; b:\n    pass\n```"),
        ("- a\n  - b\n- c", "• a\n  ◦ b\n• c"),
        ("**bold `code` bold**", "*bold* `code` *bold*"),
        ("`` a`b ``", "a`b"),
        ("~~~\n```\n~~~", "```\n`\u200b``\n```"),
        ("<!here> <@U1>", "&lt;!here&gt; &lt;@U1&gt;"),
        ("| a | b |\n|---|---|\n| 1 | 22 |", "```\na │ b\n──┼───\n1 │ 22\n```"),
    ],
)
def test_each_mark(markdown: str, written: str) -> None:
    """What the reader is to see, as Slack wants it written."""
    assert mrkdwn(render(markdown)) == written


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_MARKDOWN)
def test_any_markdown_gives_parts_that_slack_takes_and_nobody_is_pinged_by(markdown: str) -> None:
    """Whatever it holds, and nothing of its text is lost."""
    rich = render(markdown)
    for limit in (3900, 40):
        parts = mrkdwn_parts(rich, limit=limit)

        assert all(0 < units(part) <= limit for part in parts)
        assert not any(pings_in(part) for part in parts)
    assert not pings_in(without_pings(markdown))


def test_plain_text_is_cut_without_loss() -> None:
    """Escapes count as Slack counts them."""
    text = "a&b<c> " * 3000
    parts = mrkdwn_parts(RichText(text.strip()))
    back = "".join(parts).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")

    assert len(parts) > 5
    assert "".join(back.split()) == "".join(text.split())
