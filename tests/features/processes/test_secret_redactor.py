import base64
import json
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.contracts.errors import OperatorMustAct
from features.processes import SecretRedactor

SECRET = 'pa"ss/w\\ördé+<key> 42'
SECRETS = st.text(st.sampled_from("ab/é"), min_size=8, max_size=14).filter(lambda value: len(value.strip()) >= 8)
TEXTS = st.text(st.sampled_from("ab/é%x\ud800"), max_size=60)


def redactor_of(*secrets: str) -> SecretRedactor:
    redactor = SecretRedactor()
    for number, secret in enumerate(secrets):
        redactor.add(secret, name=f"secret {number}")
    return redactor


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    borders = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(borders)]


@pytest.mark.parametrize(
    "spelling",
    [
        SECRET,
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        quote(SECRET, safe="").replace("%C3%B6", "%c3%b6").replace("%5C", "%5c").replace("%22", "%22").replace("%2F", "%2f")
        .replace("%C3%A9", "%c3%a9").replace("%2B", "%2b").replace("%3C", "%3c").replace("%3E", "%3e"),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(SECRET)[1:-1].replace("\\u00f6", "\\u00F6").replace("\\u00e9", "\\u00E9"),
        json.dumps(SECRET)[1:-1].replace("/", "\\/"),
        json.dumps(SECRET, ensure_ascii=False)[1:-1].replace("<", "\\u003c").replace(">", "\\u003e"),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(SECRET.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
    ],
)  # fmt: skip
def test_a_secret_is_replaced_in_every_spelling(spelling: str) -> None:
    """Programs print what they were given in whatever form they were given it."""
    assert redactor_of(SECRET).redact(f"before {spelling} after") == "before [REDACTED] after"


@pytest.mark.parametrize("before", ["", "u", "us", "use", "user:"])
def test_a_secret_inside_a_longer_base64_text_is_replaced_at_every_alignment(before: str) -> None:
    """A basic authorization header holds user and password in one encoding."""
    encoded = base64.b64encode(f"{before}{SECRET}:tail".encode()).decode()
    inner = base64.b64encode(SECRET.encode()).decode()[4:-6]

    shown = redactor_of(SECRET).redact(encoded)

    assert "[REDACTED]" in shown
    assert inner not in shown
    assert len(shown.replace("[REDACTED]", "")) <= len(encoded) - (len(SECRET.encode()) * 4 // 3 - 2)


@pytest.mark.parametrize("columns", [64, 76])
def test_a_long_secret_is_replaced_in_wrapped_base64(columns: int) -> None:
    """The base64 command breaks its lines, and keys are longer than one."""
    secret = "sk-ant-" + "0123456789abcdefXYZ" * 6
    encoded = base64.b64encode(f"{secret}\n".encode()).decode()
    wrapped = "\n".join(encoded[start : start + columns] for start in range(0, len(encoded), columns))

    shown = redactor_of(secret).redact(wrapped)

    assert shown.startswith("[REDACTED]")
    assert len(shown) < 20


def test_overlapping_secrets_leave_no_end_behind() -> None:
    """Replacing only the first would show the rest of the second."""
    redactor = redactor_of("abcdefgh", "efghijklmnop")

    assert redactor.redact("<abcdefghijklmnop>") == "<[REDACTED]>"


def test_the_longer_of_two_nested_secrets_is_replaced_whole() -> None:
    """One secret may begin with another."""
    assert redactor_of("abcdefgh", "abcdefgh-long").redact("abcdefgh-long abcdefgh") == "[REDACTED] [REDACTED]"


def test_a_secret_under_eight_characters_is_refused_by_name_without_being_told() -> None:
    """Short values would take ordinary words out of every text; the error must not hold the value."""
    with pytest.raises(OperatorMustAct, match=r"channels\.telegram\.token has 7 characters") as refused:
        SecretRedactor().add("  hunter2\n", name="channels.telegram.token")

    assert "hunter2" not in str(refused.value)


def test_a_secret_added_later_holds_from_then_on_also_in_a_running_stream() -> None:
    """Tokens are refreshed while the host runs."""
    redactor = redactor_of("first-secret")
    stream = redactor.stream()
    shown = stream.feed("a first-secret b ")
    redactor.add("second-secret", name="two")
    shown += stream.feed("second-se") + stream.feed("cret c")

    assert shown + stream.finish() == "a [REDACTED] b [REDACTED] c"
    assert redactor.contains_secret("x second-secret")
    assert not redactor.contains_secret("x second-secre")


def test_without_secrets_texts_pass_as_they_are() -> None:
    """Nothing is known, nothing is searched, nothing is held back."""
    redactor = SecretRedactor()
    stream = redactor.stream()

    assert redactor.redact("text") == "text"
    assert not redactor.contains_secret("text")
    assert stream.feed("te") + stream.feed("xt") == "text"
    assert stream.finish() == ""


def test_a_stream_holds_back_only_what_could_begin_a_secret() -> None:
    """An answer must not stutter because a secret is long."""
    stream = redactor_of("secret-token").stream()

    assert stream.feed("my sec") == "my "
    assert stream.feed("ond") == "second"
    assert stream.feed(" word") == " word"


def test_a_lone_surrogate_does_not_stop_redaction() -> None:
    """Models and file names produce them; the search library refuses them."""
    assert redactor_of("secret-token").redact("\ud83d é secret-token \ude00") == "\ud83d é [REDACTED] \ude00"


def test_a_text_of_nothing_but_overlapping_matches_is_one_span() -> None:
    """A match at every character, over several windows of the search."""
    assert redactor_of("aaaaaaaa").redact("x" + "a" * 200_000 + "y") == "x[REDACTED]y"


@given(
    st.lists(SECRETS, min_size=1, max_size=4), st.lists(st.one_of(TEXTS, SECRETS), max_size=6), st.lists(st.integers(0, 400), max_size=8)
)
def test_pieces_joined_are_the_redacted_whole_however_the_text_is_cut(secrets: list[str], parts: list[str], cuts: list[int]) -> None:
    """What the person sees live is what is stored."""
    redactor = redactor_of(*secrets)
    text = "".join(parts)
    stream = redactor.stream()
    shown = [stream.feed(piece) for piece in pieces_of(text, cuts)]

    assert "".join(shown) + stream.finish() == redactor.redact(text)


@given(st.data())
def test_no_character_of_a_secret_is_ever_shown(data: st.DataObject) -> None:
    """Not in the end, and not for a moment in between."""
    secret = data.draw(st.text(st.sampled_from("ABC"), min_size=8, max_size=12))
    parts = data.draw(st.lists(st.one_of(st.just(secret), st.text(st.sampled_from("xyz "), max_size=5)), max_size=8))
    text = "".join(parts)
    stream = redactor_of(secret).stream()
    shown = ""
    for piece in pieces_of(text, data.draw(st.lists(st.integers(0, 200), max_size=8))):
        shown += stream.feed(piece)

        assert not set("ABC") & set(shown.replace("[REDACTED]", ""))
    assert not set("ABC") & set((shown + stream.finish()).replace("[REDACTED]", ""))
