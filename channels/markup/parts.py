"""Cutting a rendered text into messages, each valid by itself."""

from collections.abc import Iterator

from channels.markup.rich_text import RichText, Span, units

__all__ = ["split"]

_ENDS = ("\n\n", "\n", " ")


def split(rich: RichText, *, limit: int = 4096, max_spans: int = 100) -> list[RichText]:
    """Cut at the end of a paragraph, a line or a word where there is one in reach; nothing but whitespace is lost.

    A range that is cut goes on in the next part: code keeps its language, a link its address.

    Args:
        limit: longest part in UTF-16 units, at least 2.
        max_spans: most ranges in a part; Telegram ignores what is beyond 100.
    """
    return list(_parts(rich, limit, max_spans))


def _parts(rich: RichText, limit: int, max_spans: int) -> Iterator[RichText]:
    text, total = rich.text, len(rich.text.rstrip())
    start, upcoming = _next_start(text, 0, total, rich.spans), 0
    reaching: list[Span] = []
    while start < total:
        while upcoming < len(rich.spans) and rich.spans[upcoming].start < start + limit:
            reaching.append(rich.spans[upcoming])
            upcoming += 1
        reaching = [span for span in reaching if span.end > start]
        reach = _reach(text, start, total, limit)
        if len(reaching) > max_spans:
            reach = min(reach, max(reaching[max_spans].start, start + 1))
        end = reach if reach >= total else _cut(text, start, reach)
        if (part := _part(text, start, end, reaching)).text:  # a line of code may begin with more blanks than a part holds
            yield part
        start = _next_start(text, end, total, reaching)


def _reach(text: str, start: int, total: int, limit: int) -> int:
    """The furthest end whose part is not longer than the limit."""
    end = min(start + limit, total)
    while (excess := units(text[start:end]) - limit) > 0:
        end -= (excess + 1) // 2
    return end


def _cut(text: str, start: int, reach: int) -> int:
    """A good place to end a part that has to end by ``reach``: late first, then by how well it reads."""
    for earliest in (start + (reach - start) // 2, start + (reach - start) // 8):
        for ending in _ENDS:
            found = text.rfind(ending, earliest + 1, reach + len(ending))
            if found > start and text[start:found].strip():
                return found
    return reach


def _part(text: str, start: int, end: int, spans: list[Span]) -> RichText:
    piece = text[start:end].rstrip()
    end = start + len(piece)
    clipped = (
        Span(span.kind, max(span.start, start) - start, min(span.end, end) - start, span.value) for span in spans if span.start < end
    )
    return RichText(piece, tuple(span for span in clipped if span.start < span.end and not piece[span.start : span.end].isspace()))


def _next_start(text: str, end: int, total: int, spans: tuple[Span, ...] | list[Span]) -> int:
    """Skip the whitespace at a cut, but not the indentation of a line of code."""
    start = end
    while start < total and text[start].isspace():
        start += 1
    line = text.rfind("\n", end, start) + 1 or end
    in_code = any(span.kind == "pre" and span.start <= line < span.end for span in spans)
    return line if in_code and line < total and text[line:start].strip("\n") else start
