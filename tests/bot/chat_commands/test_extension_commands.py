"""``/extensions`` and ``/reload``."""

import pytest

from features.extensions import LoadedExtension, LoadedExtensions
from tests.bot.chat_commands.conftest import GUEST, Chat

DIGEST = "0123456789abcdef" * 4


def extension(name: str, state: str, **more: object) -> LoadedExtension:
    return LoadedExtension(name=name, origin=f"/ext/{name}.py", state=state, **more)  # type: ignore[arg-type]


@pytest.fixture
def shown(chat: Chat) -> Chat:
    chat.conversation.extended = [
        extension("gate", "active"),
        extension("todo", "active", reason="its new version fails, so the one before is at work: syntax error"),
        extension("off", "disabled"),
        extension("here_off", "disabled", reason="in this chat"),
        extension("mine", "untrusted", own=True, digest=DIGEST),
        extension("caged", "untrusted", own=True, digest=DIGEST, reason="without a sandbox it may not"),
        extension("bad", "failed", reason="importing it fails: ValueError: *x*"),
    ]
    chat.desk.known = {DIGEST[:12]: "mine"}
    return chat


async def test_each_is_shown_with_its_state_origin_and_reason(shown: Chat) -> None:
    """An owner sees all that there is to decide."""
    answer = await shown.says("/extensions")

    assert answer.splitlines() == [
        "- `gate` active", "  /ext/gate.py",
        "- `todo` active (its new version fails, so the one before is at work: syntax error)", "  /ext/todo.py",
        "- `off` disabled for the whole host, by its configuration", "  /ext/off.py",
        "- `here_off` disabled in this chat", "  /ext/here\\_off.py",
        "- `mine` untrusted: waits for an owner", "  /ext/mine.py, content `0123456789ab`",
        "- `caged` untrusted: without a sandbox it may not", "  /ext/caged.py, content `0123456789ab`",
        "- `bad` failed: importing it fails: ValueError: \\*x\\*", "  /ext/bad.py",
    ]  # fmt: skip
    assert shown.buttons == {
        "Disable gate": "/extensions disable gate",
        "Disable todo": "/extensions disable todo",
        "Enable here_off": "/extensions enable here_off",
        "Trust mine": "/extensions trust 0123456789ab",
        "Load again": "/extensions reload",
    }


async def test_others_see_no_paths_and_no_buttons(shown: Chat) -> None:
    """They may know what is at work, not where the host lives."""
    answer = await shown.says("/extensions", GUEST)

    assert "/ext/" not in answer
    assert "- `gate` active\n  the host's" in answer
    assert "- `mine` untrusted: waits for an owner\n  this chat's own" in answer
    assert not shown.buttons


async def test_owners_alone_decide(shown: Chat) -> None:
    """Typed or pressed, it is the same."""
    for command in ("/extensions trust 0123456789ab", "/extensions disable gate", "/extensions enable here_off", "/extensions reload"):
        assert await shown.says(command, GUEST) == "Only an owner may do that."
    assert "owners only" in await shown.says("/reload", GUEST)

    assert not shown.desk.deeds


async def test_what_an_owner_decides_is_done_and_shown(shown: Chat) -> None:
    """With the list as it is then."""
    for command in ("/extensions trust 0123456789ab", "/extensions disable gate", "/extensions enable here_off", "/reload"):
        assert "- `gate` active" in await shown.says(command)

    place = "telegram:1"
    assert shown.desk.deeds == [
        ("trust", place, DIGEST[:12], "telegram:1"), ("disable", place, "gate", "telegram:1"), ("enable", place, "here_off"), ("reload",),
    ]  # fmt: skip
    assert (await shown.says("/extensions trust 0123456789ab")).startswith("`mine` is trusted as it is now; if it changes, I ask again.")


async def test_loading_again_says_what_failed(shown: Chat) -> None:
    """And while something goes on, that it counts later."""
    shown.desk.loaded = LoadedExtensions(all=(extension("a", "active"), extension("b", "failed")))
    shown.conversation.now.running = True

    answer = await shown.says("/reload")

    assert answer.startswith("Loaded again; 1 of 2 failed. It counts here once I have finished what I am doing.\n\n")


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("/extensions relaod", "`relaod` is none of reload, trust, disable, enable. Did you mean `/extensions reload`?"),
        ("/extensions disable", "Which one? `/extensions` lists them; then `/extensions disable NAME`."),
        ("/extensions trust", "Which one? `/extensions` lists them; then `/extensions trust CONTENT`."),
        ("/extensions disable gata", "There is no extension `gata` here. Did you mean `gate`?"),
        ("/extensions disable zzzz", "There is no extension `zzzz` here. `/extensions` lists them."),
        ("/extensions enable off", "`off` is disabled by the configuration of this host: take it out of extensions.disabled."),
        ("/extensions trust ffff", "No extension here has that content any more."),
    ],
)
async def test_a_wrong_word_is_answered_with_the_right_one(shown: Chat, typed: str, answer: str) -> None:
    """And nothing is done."""
    assert await shown.says(typed) == answer
    assert not shown.desk.deeds


async def test_a_host_without_any_says_where_to_read_on(chat: Chat) -> None:
    assert await chat.says("/extensions") == "There are no extensions here. The guide for authors is docs/extensions.md."
