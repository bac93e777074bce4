"""Markdown as chat platforms show it: text with marked ranges, measured and cut; each channel writes the ranges its own way.

``render`` -> ``split`` -> the channel. Any prefix of a text renders, so a text can be shown while it grows.
"""

from channels.markup.markdown import italic_line, plain, render, tail
from channels.markup.parts import split
from channels.markup.rich_text import Entity, RichText, Span, characters_at, clean, units

__all__ = ["Entity", "RichText", "Span", "characters_at", "clean", "italic_line", "plain", "render", "split", "tail", "units"]
