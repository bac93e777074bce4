"""What would be replaced, and what stays."""

from features.compaction.preparation import FileOperations, prepare
from features.compaction.transcript import transcript
from features.contracts.messages import BashExecutionMessage, ImageBlock, Message, TextBlock, ThinkingBlock, UserMessage, message_text
from tests.features.compaction.builders import assistant, branch, call, compaction, result, user
from tests.features.compaction.pi_session import pi_session


def said(messages: list[Message]) -> list[str]:
    return [message_text(message) for message in messages]  # type: ignore[arg-type]


def test_the_figures_of_a_real_session() -> None:
    """Its third compaction: 306 messages that are new, and the 77 that the second one had kept."""
    prepared = prepare(pi_session(), keep_tokens=20_000)

    assert prepared is not None
    assert (len(prepared.history), len(prepared.turn_prefix), prepared.tokens_before) == (306 + 77, 7, 180_820)
    assert (prepared.first_kept_entry_id, len(prepared.previous_summary or "")) == ("946", 3649)
    assert (len(prepared.files.read), len(prepared.files.modified)) == (2, 12)


def test_what_a_compaction_kept_is_summed_up_by_the_next() -> None:
    """It stands in no summary yet; left out it would be gone for good."""
    prepared = prepare(
        branch(user("one"), user("kept"), compaction("first", "1"), user("new"), user("x" * 400), assistant("x" * 400)), keep_tokens=150
    )

    assert prepared is not None
    assert said(prepared.history) == ["kept", "new"]
    assert prepared.previous_summary == "first"
    assert prepared.first_kept_entry_id == "4"


def test_a_split_turn_is_summed_up_by_itself() -> None:
    prepared = prepare(branch(user("one"), assistant("a"), user("go"), assistant("b"), assistant("x" * 400)), keep_tokens=50)

    assert prepared is not None
    assert (said(prepared.history), said(prepared.turn_prefix)) == (["one", "a"], ["go", "b"])


def test_there_is_nothing_to_do() -> None:
    """Nothing was said, all of it is recent, or it was summed up a moment ago."""
    long = branch(user("x" * 400), assistant("x" * 400), user("x" * 400))

    assert prepare([], keep_tokens=10) is None
    assert prepare(branch(user("one"), assistant("a")), keep_tokens=1000) is None
    assert prepare([*long, *branch(*([user()] * 3), compaction("s", "2"))[3:]], keep_tokens=10) is None


def test_files_are_remembered_over_compactions() -> None:
    """What was changed is not listed as read; what an extension noted is its own."""
    noted = {"readFiles": ["old.py"], "modifiedFiles": ["x.py"]}
    calls = assistant(call("1", "read", path="b"), call("2", "read", path="a"), call("3", "write", path="b"), call("4", "edit", path="c"))
    tail = (user("x" * 400), assistant("x" * 400))
    ours = prepare(branch(user(), compaction("s", "0", noted), calls, *tail), keep_tokens=150)
    theirs = prepare(branch(user(), compaction("s", "0", noted, from_hook=True), calls, *tail), keep_tokens=150)

    assert ours is not None
    assert theirs is not None
    assert ours.files == FileOperations(read=("a", "old.py"), modified=("b", "c", "x.py"))
    assert theirs.files == FileOperations(read=("a",), modified=("b", "c"))


def test_a_conversation_as_text() -> None:
    """Pictures and empty results are left out, and so are attempts that failed."""
    pictures = UserMessage(content=[TextBlock(text="a"), ImageBlock(data="AAAA", mime_type="image/png"), TextBlock(text="b")], timestamp=0)
    answer = assistant("t1", ThinkingBlock(thinking="th"), call("c", "read", path="x", n=1), "t2")

    assert transcript([pictures, answer, result("c", ""), assistant("half", stop="error", error="no")]) == (
        '[User]: ab\n\n[Assistant thinking]: th\n\n[Assistant]: t1\nt2\n\n[Assistant tool calls]: read(path="x", n=1)'
    )


def test_long_results_are_cut_and_nothing_else_is() -> None:
    text = transcript([result("c", "x" * 5000), result("d", "short"), user("u" * 5000), assistant("a" * 5000)])

    assert f"[Tool result]: {'x' * 2000}\n\n[... 3000 more characters truncated]\n\n[Tool result]: short" in text
    assert "u" * 5000 in text
    assert "a" * 5000 in text


def test_a_command_that_a_person_kept_to_themselves_stays_theirs() -> None:
    run = BashExecutionMessage(command="ls", output="out", cancelled=False, truncated=False, timestamp=0)
    hidden = BashExecutionMessage(command="env", output="x", cancelled=False, truncated=False, timestamp=0, exclude_from_context=True)

    assert transcript([run, hidden]) == "[User]: ran `ls`\nout"
