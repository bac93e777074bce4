"""A session as a page of its own: no script, nothing loaded from anywhere."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from features.contracts.sessions import SessionHeader, TreeNode
from features.sessions.readable import Part, Passage, passage

__all__ = ["html_page"]

_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
article { border-left: 3px solid #8884; margin: 1rem 0; padding: 0 0 0 1rem }
article.person { border-color: #37c }
header, .note { color: #777; font-size: .85rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .5rem; font-size: .85rem }
.said { white-space: pre-wrap; overflow-wrap: anywhere }
.failed { border-left: 3px solid #c33 }
.label { background: #fc35; border-radius: .3rem; padding: 0 .4rem }
img { max-width: 100% }
"""


def html_page(title: str, header: SessionHeader, roots: Sequence[TreeNode], branch: Sequence[str], labels: Mapping[str, str]) -> str:
    """The whole tree: the present branch open, others folded where they leave it.

    Args:
        branch: the ids of the present branch.
    """
    written = "".join(_tree(roots, frozenset(branch), labels))
    about = f"Session {escape(header.id)}, begun {escape(header.timestamp[:16].replace('T', ' '))} UTC"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title><style>{_STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1><p class=note>{about}</p>\n{written}</body></html>\n"
    )


def _tree(roots: Sequence[TreeNode], branch: frozenset[str], labels: Mapping[str, str]) -> Iterator[str]:
    """Depth first without recursion: a conversation is as deep as it is long. The present branch comes last, behind those that left it."""
    stack: list[TreeNode | str] = []

    def follow(children: Sequence[TreeNode]) -> None:
        ranked = sorted(children, key=lambda child: child.entry.id in branch)
        for place, child in reversed(list(enumerate(ranked))):
            if place == len(ranked) - 1:  # goes on where its parent stands
                stack.append(child)
            else:
                stack.extend(("</details>\n", child, "<details><summary>Another branch</summary>\n"))

    follow(roots)
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            yield top
            continue
        found = passage(top.entry, labels)
        if found is not None:
            yield _passage(found)
        follow(top.children)


def _passage(one: Passage) -> str:
    label = f" <span class=label>{escape(one.label)}</span>" if one.label else ""
    kind = " class=person" if one.who == "person" else ""
    head = f"<header>{escape(one.note or one.who)} <time>{escape(one.when)}</time>{label}</header>"
    return f'<article{kind} id="{escape(one.entry_id)}">{head}{"".join(map(_part, one.parts))}</article>\n'


def _part(part: Part) -> str:
    text = escape(part.text)
    match part.kind:
        case "text":
            return f"<div class=said>{text}</div>"
        case "thinking":
            return f"<details><summary>Thought</summary><div class=said>{text}</div></details>"
        case "call":
            return f"<details><summary>Calls {escape(part.about)}</summary><pre>{text}</pre></details>"
        case "image":
            if part.about in _PICTURES and _BASE64.fullmatch(part.text):
                return f'<img alt="picture" src="data:{part.about};base64,{"".join(part.text.split())}">'
            return "<p class=note>(a picture that cannot be shown)</p>"
        case "failure":
            return f"<pre class=failed>{text}</pre>"
        case _:
            return f"<details><summary>Result of {escape(part.about)}</summary><pre>{text}</pre></details>"
