"""Text with passages and words marked, as runs of plain values for a template. Offsets and strings only.

Marks can overlap: windows of chunks do, and a section can take part in several matches. Runs do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from engine.text.spans import Span


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of a text that belongs to a match."""

    span: Span
    match: int  # number of the match; if marks overlap, the lowest number determines the colour
    is_word: bool = False  # a word that both texts have; else a passage


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text with the same matches throughout."""

    matches: tuple[int, ...]  # numbers of the matches whose passages cover the run, rising
    pieces: tuple[tuple[str, bool], ...]  # text, and whether it is a marked word


def marked_runs(text: str, span: Span, marks: Iterable[Mark]) -> list[Run]:
    """Cut a stretch of a text where marks begin and end.

    Args:
        text: the whole text.
        span: the stretch; its runs joined are `text[span.start : span.stop]`.
        marks: of the text, in any order; parts outside the stretch are left out.
    """
    clipped = [
        (max(mark.span.start, span.start), min(mark.span.stop, span.stop), mark)
        for mark in marks
        if mark.span.start < span.stop and mark.span.stop > span.start
    ]
    edges = sorted({span.start, span.stop, *(edge for start, stop, _ in clipped for edge in (start, stop))})
    events: dict[int, list[tuple[bool, Mark]]] = {}
    for start, stop, mark in clipped:
        events.setdefault(start, []).append((True, mark))
        events.setdefault(stop, []).append((False, mark))
    runs: list[tuple[tuple[int, ...], list[tuple[str, bool]]]] = []
    passages: dict[int, int] = {}
    n_words = 0
    for start, stop in pairwise(edges):
        for begins, mark in events.get(start, ()):
            if mark.is_word:
                n_words += 1 if begins else -1
            else:
                passages[mark.match] = passages.get(mark.match, 0) + (1 if begins else -1)
        matches = tuple(sorted(match for match, count in passages.items() if count))
        if not runs or runs[-1][0] != matches:
            runs.append((matches, []))
        runs[-1][1].append((text[start:stop], n_words > 0))
    return [Run(matches, tuple(pieces)) for matches, pieces in runs]


def excerpts(section: Span, focuses: Sequence[Span], margin: int) -> list[Span]:
    """The excerpts of a long section that are shown: the focuses with a margin around each, joined where they meet.

    Args:
        section: span of the section, which the excerpts do not leave.
        focuses: spans to show, in any order.
        margin: characters before and after each focus.
    """
    shown: list[Span] = []
    for focus in sorted(focuses, key=lambda one: one.start):
        start, stop = max(section.start, focus.start - margin), min(section.stop, focus.stop + margin)
        if shown and start <= shown[-1].stop:
            shown[-1] = Span(shown[-1].start, max(stop, shown[-1].stop))
        else:
            shown.append(Span(start, stop))
    return shown
