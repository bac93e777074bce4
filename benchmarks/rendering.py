"""Markdown to Telegram and to Slack, rendered and split: megabytes per second on one core, and whether twice the text takes twice the time.

``python -m benchmarks.rendering``
"""

import gc
import time
from collections.abc import Callable

from benchmarks.measure import report
from channels.markup import render, split
from channels.slack.mrkdwn import mrkdwn_parts

LIMIT_MB_PER_S = 1.0  # of what models write; the shapes that hold nothing but one construct are here for their growth
CHARS = 400_000

SHAPES = {
    "prose": "The quick brown fox jumps over the lazy dog, and nobody knows why it does so every single day.\n\n",
    "emphasis": "A **bold** word, an *italic* one, `code`, and [a link](https://example.org/a_(b)) in one line of text.\n\n",
    "lists": "- first\n  - nested **bold**\n    1. deeper `code`\n- second\n\n",
    "tables": "| name | value |\n|---|---:|\n| one | 1 |\n| two | 2 |\n\n",
    "code": "```python\ndef f(x):\n    return x * 2  # *no* emphasis\n```\n\n",
    "cjk": "這是一個**測試**，用來測量渲染的速度。すべての文字は三バイトです。\n\n",
    "right to left": "זהו **מבחן** של הטקסט. هذا نص للاختبار.\n\n",
    "asterisks": "*" * 70 + "\n\n",
    "brackets": "[" * 40 + "a" + "]" * 30 + "\n\n",
    "one line": "word ",
    "open emphasis": "*a _b **c ",
    "backticks": "`a ``b ```c ",
}
SHAPES = {
    "an answer": "# Title\n\n"
    + "".join(SHAPES[each] for each in ("prose", "prose", "emphasis", "lists", "prose", "code", "code", "tables", "prose")),
    **SHAPES,
}


def seconds(work: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    work(text)
    return time.process_time() - began


def main() -> None:
    gc.set_threshold(20_000, 20, 50)  # as the host sets it
    for target, work in (("Telegram", lambda text: split(render(text))), ("Slack", lambda text: mrkdwn_parts(render(text)))):
        for name, piece in SHAPES.items():
            half = piece * (CHARS // 2 // len(piece))
            whole = half + half
            work(half[:2000])
            first, second = seconds(work, half), seconds(work, whole)
            speed = len(whole.encode()) / 1e6 / second
            ratio = f"{speed / LIMIT_MB_PER_S:.1f}x of {LIMIT_MB_PER_S:g} MB/s; twice the text took {second / first:.1f}x"
            report(f"{target}, {name}", f"{speed:.2f} MB/s", ratio)


if __name__ == "__main__":
    main()
