"""Joins the fragments of a printed line: text around superscripts, changes of type. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.readers.pdf_lines import Line

_SOFT_HYPHEN = "\u00ad"
_MAX_GAP = 1.0  # times the type size; the space between columns is wider, or pdfium does not cross it
_MAX_OVERLAP = 0.3  # times the type size
_MAX_SHIFT = 0.55  # of the baseline of a superscript, times the type size
_WORD_GAP = 0.15  # times the type size; a smaller gap is not a space
_MAX_CHARS = 1_000
_CLOSING = ",.;:)]"


def rejoined(lines: Iterable[Line]) -> list[Line]:
    """Join neighbouring lines that share a baseline, with at most the space of a word between them.

    A joined line spans its fragments, and has the baseline and type of the longest.
    """
    joined: list[Line] = []
    longest = 0  # characters of the fragment that gave the last line its type
    for line in lines:
        before = joined[-1] if joined else None
        if before is None or not _continues(before, line):
            joined.append(line)
            longest = len(line.text)
            continue
        gap = line.left - before.right
        is_apart = gap >= _WORD_GAP * max(before.size, line.size) and line.text[0] not in _CLOSING
        text = f"{before.text} {line.text}" if is_apart else before.text + line.text
        of_type = line if len(line.text) > longest else before
        longest = max(longest, len(line.text))
        joined[-1] = replace(
            of_type, text=text, left=before.left, right=line.right, text_left=before.text_left, trailing=line.trailing
        )
    return joined


def _continues(before: Line, line: Line) -> bool:
    size = max(before.size, line.size)
    return (
        before.page == line.page
        and abs(before.y - line.y) < _MAX_SHIFT * size
        and -_MAX_OVERLAP * size <= line.left - before.right <= _MAX_GAP * size
        and before.text[-1] != _SOFT_HYPHEN
        and len(before.text) < _MAX_CHARS
    )
