"""The tree as people read it, and the commands that walk it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.chat_commands.testing import NotedPlace, NotedTree
from bot.chat_commands.tree_view import tree_rows, tree_text
from features.contracts.sessions import MessageEntry, SessionEntry, TreeNode
from features.sessions.testing import TIMESTAMP, assistant, said
from tests.bot.chat_commands.conftest import GUEST, Chat


def node(entry: SessionEntry, *children: TreeNode, label: str | None = None) -> TreeNode:
    return TreeNode(entry=entry, label=label, children=list(children))


def answer(entry_id: str, text: str) -> MessageEntry:
    return MessageEntry(id=entry_id, parent_id=None, timestamp=TIMESTAMP, message=assistant(text))


TREE = node(
    said("u1", "plan\n a `trip`"),
    node(
        answer("a1", "where to?"),
        node(said("u2", "north"), node(answer("a2", "oslo"))),
        node(said("u3", "south"), node(answer("a3", "rome"), node(said("u4", "x" * 80)))),
        label="the fork",
    ),
)


def test_only_forks_are_indented_and_the_present_branch_comes_last() -> None:
    """A long conversation reads from the top down; what is not said by people is shown where it ends a branch or has a name."""
    rows = tree_rows([TREE], ["u1", "a1", "u2", "a2"])

    assert tree_text(rows).splitlines() == [
        "u1  plan a 'trip'",
        "a1  → where to? [the fork]",
        "u3  ├─ south",
        f"u4  │  {'x' * 43}…",
        "u2  └─ north",
        "a2     → oslo  ◀ here",
    ]


def test_the_beginning_is_a_place_too() -> None:
    """After everything was taken back."""
    assert tree_text(tree_rows([TREE], [])).splitlines()[-1] == "└─ (the beginning)  ◀ here"
    assert tree_rows([], []) == []


@given(st.lists(st.integers(min_value=0, max_value=60), max_size=60), st.integers(min_value=0, max_value=60))
def test_every_end_and_every_word_of_a_person_is_a_row(parents: list[int], at: int) -> None:
    """Whatever the shape; the place where one is stands last."""
    nodes = [node(said("n0", "start"))]
    for number, parent in enumerate(parents, 1):
        entry: SessionEntry = said(f"n{number}", "x") if number % 2 else answer(f"n{number}", "y")
        nodes.append(node(entry))
        nodes[parent % number].children.append(nodes[-1])
    above = {child.entry.id: one.entry.id for one in nodes for child in one.children}
    branch = [nodes[at % len(nodes)].entry.id]
    while branch[0] in above:
        branch.insert(0, above[branch[0]])
    rows = tree_rows([nodes[0]], branch)

    ids = [row.entry_id for row in rows]
    expected = {one.entry.id for one in nodes if not one.children or one.entry.id == branch[-1] or int(one.entry.id[1:]) % 2}
    assert set(ids) - {"n0"} == expected - {"n0"}
    assert len(ids) == len(set(ids))
    assert [row.entry_id for row in rows if row.here] == [branch[-1]]


async def test_a_long_tree_shows_its_end(chat: Chat) -> None:
    """The rest is counted; as many buttons as fit go to named places, other branches, and what was said last."""
    chain = node(said("u99", "99"))
    for number in range(98, -1, -1):
        chain = node(said(f"u{number}", str(number)), chain, label="named" if number == 5 else None)
    chat.conversation.shown = NotedTree(roots=[chain], branch=[f"u{number}" for number in range(100)])
    text = await chat.says("/tree")

    assert "...and 60 earlier places" in text
    assert "u99  99  ◀ here" in text
    assert chat.buttons["named"] == "/tree u5"
    assert list(chat.buttons)[1:3] == ["98", "97"]
    assert len(chat.buttons) == 8


async def test_going_to_a_place(chat: Chat) -> None:
    """By id or name; with notes, and what they are to look at; and back again."""
    chat.conversation.arrival = NotedPlace(at="rome", said="", left="a2")
    assert await chat.says("/tree u1") == "Here we go on after:\n> rome"
    assert chat.buttons == {"Back to where we were": "/tree a2"}
    await chat.says("/tree the fork")
    await chat.says("/tree u1 summary prices and dates")
    assert chat.conversation.deeds == [("go", "u1 False"), ("go", "the fork False"), ("go", "u1 True prices and dates")]


async def test_taking_back_says_what_can_be_said_again(chat: Chat) -> None:
    """With nothing in it acting as markup."""
    chat.conversation.arrival = NotedPlace(at="", said="go *south*", left="a2")
    assert await chat.says("/undo") == (
        "Taken back. We go on from the beginning.\n\nThere you had said:\n> go \\*south\\*\n\nSay it again, or something else."
    )
    await chat.says("/fork u3")
    assert chat.conversation.deeds == [("undo", ""), ("fork", "u3")]


@pytest.mark.parametrize(("typed", "form"), [("/export", "html"), ("/export MD", "md"), ("/export jsonl", "jsonl")])
async def test_the_session_goes_out_as_a_file(chat: Chat, typed: str, form: str) -> None:
    """For people unless said otherwise."""
    await chat.says(typed)
    assert chat.conversation.files == [f"session.{form}"]
    assert "none of html, md, jsonl" in await chat.says("/export pdf")


async def test_an_answer_to_what_a_guest_said_again_is_a_guests(chat: Chat) -> None:
    """What tools may do depends on who asked for the run."""
    registry = chat.services.registry
    found = registry.parse("/retry")
    assert found is not None
    assert chat.conversation.deeds == []
    with pytest.raises(AssertionError, match="answers exactly once"):  # the answer is the run's
        await chat.says("/retry", by=GUEST)
    assert chat.conversation.deeds == [("retry", "False")]
