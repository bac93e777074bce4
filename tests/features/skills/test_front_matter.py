"""Front matter."""

import pytest

from features.skills.front_matter import BrokenFrontMatter, split_front_matter


@pytest.mark.parametrize(
    ("text", "facts", "body"),
    [
        (
            "---\nname: \"skill-name\"\ndescription: 'A skill'\nfoo-bar: value\n---\n\nBody text",
            {"name": "skill-name", "description": "A skill", "foo-bar": "value"},
            "Body text",
        ),
        ("---\r\nname: test\r\n---\r\nLine one\r\nLine two", {"name": "test"}, "Line one\nLine two"),
        ("---\ntext: |\n  Line one\n  Line two\n---\nBody", {"text": "Line one\nLine two\n"}, "Body"),
        ("No front matter", {}, "No front matter"),
        ("  kept as it is \n", {}, "  kept as it is \n"),
        ("---\nname: test\nBody without an end", {}, "---\nname: test\nBody without an end"),
        ("---\n# only a comment\n---\nBody", {}, "Body"),
        ("---\n---\nBody", {}, "Body"),
        ("---\nkey: value\n---\n\nBody\n", {"key": "value"}, "Body"),
        ("---\nkey: value\n---", {"key": "value"}, ""),
        ("\ufeff---\nkey: value\n---\nBody", {"key": "value"}, "Body"),
        ("----\nkey: value\n----\nBody", {}, "----\nkey: value\n----\nBody"),
    ],
)
def test_it_is_read_as_in_pi(text: str, facts: dict[str, object], body: str) -> None:
    """People bring their skills along."""
    assert split_front_matter(text) == (facts, body)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("foo: [bar", "at line 3, column 1"),
        ("a: b: c", "at line 2, column 5"),
        ("- a\n- b", "no list of keys"),
        ("just words", "no list of keys"),
        ("a: \x01", "no valid YAML"),
        ("[" * 50_000, "no valid YAML"),
        ("a: !!python/object/apply:os.system ['true']", "no valid YAML"),
        ("d: 2026-99-99", "no valid YAML"),
        ("x: " + "y" * 100_000, "longer than 64 KB"),
    ],
)
def test_what_is_broken_says_where(source: str, said: str) -> None:
    """Whoever wrote it has to find it; and nothing in it is ever carried out."""
    with pytest.raises(BrokenFrontMatter, match=said):
        split_front_matter(f"---\n{source}\n---\nBody")


def test_references_cannot_fill_the_memory() -> None:
    """Nine levels of ten references each are nothing as long as nobody writes them out."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 10)]

    facts, _ = split_front_matter("---\n" + "\n".join(lines) + "\nname: fine\n---\n")
    assert facts["name"] == "fine"
