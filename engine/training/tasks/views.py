"""Documents reduced to some of their spans. Draws nothing."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from engine.text.document import Document
from engine.text.segmentation import sentence_starts
from engine.text.spans import Section, Span

_WORD = re.compile(r"\S+")


def sentences(document: Document) -> list[Span]:
    """Sentences that hold a word, each with the white space after it, in order; none runs over a section's end."""
    spans = []
    for section in document.sections:
        text = document.text[section.start : section.stop]
        borders = [section.start + start for start in sentence_starts(text)] + [section.stop]
        spans += [Span(start, stop) for start, stop in pairwise(borders)]
    return [span for span in spans if n_words(document, span)]


def words(document: Document) -> list[Span]:
    """Words, as white space divides them, each with the space after it; the first with what is before it too."""
    starts = [match.start() for match in _WORD.finditer(document.text)]
    if not starts:
        return []
    return [Span(start, stop) for start, stop in pairwise([0, *starts[1:], len(document.text)])]


def n_words(document: Document, span: Span) -> int:
    """Number of words that begin in a span; used for tokens where there is no tokenizer."""
    return len(_WORD.findall(document.text, span.start, span.stop))


def keep(document: Document, spans: Sequence[Span]) -> Document:
    """Reduce a document to some spans.

    Each section keeps its heading and the kept part of its text; a section without text is
    dropped. Pages are dropped, since they point into the whole text.

    Args:
        document: any.
        spans: in ascending order, not overlapping; all text outside of them is cut out.
    """
    text: list[str] = []
    kept: list[Section] = []
    size = 0
    starts, stops = [span.start for span in spans], [span.stop for span in spans]
    for section in document.sections:
        touching = spans[bisect_right(stops, section.start) : bisect_left(starts, section.stop)]
        inside = [document.text[max(span.start, section.start) : min(span.stop, section.stop)] for span in touching]
        if inside:
            length = sum(map(len, inside))
            kept.append(replace(section, start=size, stop=size + length))
            text += inside
            size += length
    return replace(document, text="".join(text), sections=tuple(kept), pages=())


def one_section(document: Document) -> Document:
    """The same text as one section without a heading; heading lines stay in the text."""
    return replace(document, sections=(Section("", (), 0, len(document.text)),))
