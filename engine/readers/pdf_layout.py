"""Joins the lines of pages into running text: whole words, paragraphs. Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from engine.readers.pdf_lines import Line

_HYPHENS = "-\u00ad\u2010"
_SENTENCE_END = re.compile(r"[.!?:][\"'\u201d\u2019)\]]*$")
_BULLET = re.compile(r"[\u2022\u25e6\u25aa\u2023\u2219*\u2013-]\s")
_ITEM = re.compile(r"\(?[a-z0-9]{1,2}[.)]\s")
_BEFORE_ITEM = ".!?:;,"
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def body_size(lines: Iterable[Line]) -> float:
    """The type size in which most characters are set."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def vocabulary(lines: Iterable[Line]) -> frozenset[str]:
    """Words of a document, hyphenated ones too, in lower case."""
    return frozenset(word.lower() for line in lines for word in _WORD.findall(line.text))


def joined(left: str, right: str, known: frozenset[str]) -> str:
    """Join a line with the next one of its paragraph.

    A hyphen at the end stays where the document writes the word with a hyphen
    elsewhere, or where it cannot be hyphenation.
    """
    if left[-1] not in _HYPHENS or not left[:-1] or not left[-2].isalpha() or not right[0].isalpha():
        return f"{left} {right}"
    head, tail = _WORD.findall(left[:-1]), _WORD.match(right)
    if not head or tail is None:
        return f"{left} {right}"
    whole, compound = f"{head[-1]}{tail.group()}".lower(), f"{head[-1]}-{tail.group()}".lower()
    if right[0].isupper() or (compound in known and whole not in known):
        return f"{left[:-1]}-{right}"
    return left[:-1] + right


def starts_paragraph(before: Line, line: Line, pitch: float, right_edge: float) -> bool:
    """Whether a line starts a paragraph after the line before it.

    Args:
        before: the line before it, in reading order.
        line: the line.
        pitch: distance of the lines inside a paragraph, in points.
        right_edge: of the full lines of its column, in points.
    """
    if line.size != before.size and abs(line.size - before.size) > 0.15 * before.size:
        return True
    is_sentence_end = _SENTENCE_END.search(before.text) is not None
    is_short = before.right < right_edge - 4 * before.size
    if _BULLET.match(line.text) or (_ITEM.match(line.text) and (is_short or before.text[-1] in _BEFORE_ITEM)):
        return True
    drop = before.y - line.y
    if line.page != before.page or drop < -pitch:
        return is_sentence_end and not line.text[0].islower()
    if drop > 1.45 * pitch:
        return True
    is_indented = line.left > before.left + 0.7 * line.size and drop > 0.5 * pitch
    is_hanging = line.left < before.left - 0.7 * line.size
    return (is_sentence_end and (is_short or is_indented)) or (is_short and is_hanging and not line.text[0].islower())


def breaks_line(before: Line, right_edge: float) -> bool:
    """Whether the line before ends early: verse, code, a table; the break is kept."""
    return before.text[-1] not in _HYPHENS and before.right < before.left + 0.6 * (right_edge - before.left)


def pitch_of(lines: Sequence[Line], size: float) -> float:
    """The usual distance of two lines of body text."""
    drops = [
        a.y - b.y
        for a, b in pairwise(lines)
        if a.page == b.page and a.size == b.size == size and 0.5 * size < a.y - b.y < 3 * size
    ]
    return median(drops) if drops else 1.2 * size
