"""The result of a tool that lists things: cut to its limits, with notices in one bracket."""

from features.contracts.tools import ToolResult, text_result
from features.tools.truncation import size_text, truncate_head

__all__ = ["SEARCH_LIMIT_S", "listing"]

SEARCH_LIMIT_S = 20.0
"""A search gives what it has found after so long."""


def listing(lines: list[str], *, empty: str, notices: list[str], max_bytes: int, is_partial: bool) -> ToolResult:
    """``lines`` as a result; ``empty`` when there are none."""
    cut = truncate_head("\n".join(lines), max_lines=max(len(lines), 1), max_bytes=max_bytes)
    notices = list(notices)
    if cut.truncated:
        notices.append(f"{size_text(max_bytes)} limit reached")
    if is_partial:
        notices.append(f"the search was stopped after {SEARCH_LIMIT_S:g} s and is not complete; name a smaller path")
    text = cut.content if lines else empty
    if notices:
        text += f"\n\n[{'. '.join(notices)}]"
    return text_result(text, details=cut.details() if cut.truncated else None)
