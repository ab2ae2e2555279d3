"""The terms of documents outside of body text, and of their titles, counted apart, so that a search can leave them out.

A title states in a few words what a document is about; in a long text these are lost among thousands. So each
occurrence of a term in the title counts several times, such that the title adds `TITLE_SHARE` of the text's
occurrences. That is a mixture of the language models of text and title (Ogilvie & Callan 2003, SIGIR), in
whole numbers, so that counts stay counts. The length of the document does not change, so the terms of a text
have the same weight with and without a title: a document without a title has no advantage over those with one.

Only a title that is in the text counts more, since only there can it be shown. The name of a file, or a title
that is stored apart from the text, changes nothing.

Occurrences are grouped by document, and by the set of kinds of the sections that they touch: a pair of words can
begin in one section and end in the next. Occurrences in the title form groups of their own, in which each counts once,
since an occurrence in the title counts the more often the longer the text is. Occurrences that
a search leaves out are subtracted from the counts of the whole document, without rounding. A pair of words never joins
across a section that is left out.

Letters in shapes: N documents, A sections of one, S sections of all, G groups, n occurrences in one text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Document
from engine.text.segmentation import Span
from engine.words.segmenter import Terms

TITLE_SHARE = 0.15  # share of all occurrences in a text that its title adds to the counts
FRONT_CHARS = 4_000  # first characters of a text, which are searched for its title
_MOST_WORDS = 100  # of a title; a longer one is a paragraph
_WORD = re.compile(r"\w+")
_SIGNS = r"(?:[^\w\n]|_)*"
_LINE_END = re.compile(f"{_SIGNS}$", re.MULTILINE)


def title_span(document: Document) -> Span | None:
    """The span of the title near the beginning of the text, as lines of its own; None if it is not there.

    Case, punctuation and line breaks may differ; "Title:" or "Subject:" may precede the title.
    """
    words = _WORD.findall(document.title)
    if not 0 < len(words) <= _MOST_WORDS:
        return None
    if document.text.startswith(document.title) and _LINE_END.match(document.text, len(document.title)):
        first = document.title.index(words[0])  # most readers begin the text with the title
        return Span(first, document.title.rindex(words[-1]) + len(words[-1]))
    title = r"[\W_]+".join(map(re.escape, words))
    line = rf"^(?:{_SIGNS}(?:title|subject) *:)?{_SIGNS}({title}){_SIGNS}$"
    found = re.search(line, document.text[:FRONT_CHARS], re.IGNORECASE | re.MULTILINE)
    return None if found is None else Span(*found.span(1))


def in_title(spans: NDArray[np.int64], title: Span) -> NDArray[np.bool_]:
    """Which of some spans (n, 2) are in the title, (n,)."""
    return (spans[:, 0] >= title.start) & (spans[:, 1] <= title.stop)


def repeats(spans: NDArray[np.int64], title: Span | None) -> NDArray[np.int64]:
    """How often each occurrence of a term counts (n,): once, or more often inside the title."""
    counts = np.ones(len(spans), np.int64)
    if title is not None:
        is_inside = in_title(spans, title)
        n_inside = max(1, int(np.count_nonzero(is_inside)))
        counts[is_inside] += round(TITLE_SHARE * len(spans) / n_inside)
    return counts


def section_starts(document: Document) -> NDArray[np.int64]:
    """(A,) offsets of the sections of a document, rising; [0] for one without sections."""
    return np.array([section.start for section in document.sections] or [0], np.int64)


IN_TITLE = 16  # added to the kinds of a group of occurrences in the title


class _Counts(Protocol):
    """Term counts in any form."""

    def of(self, documents: NDArray[np.int64], /) -> Self: ...


CountsT = TypeVar("CountsT", bound=_Counts)
OtherT = TypeVar("OtherT", bound=_Counts)


@dataclass(frozen=True, slots=True)
class Sections:
    """The places of the sections of one text, and the bits of each: those of its kind, or another mark."""

    starts: NDArray[np.int64]  # (A,) offsets, rising; they cover the text
    bits: NDArray[np.uint8]  # (A,)

    def touched(self, spans: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The bits (n,) of all sections that each of some spans (n, 2) touches."""
        if not self.bits.any():
            return np.zeros(len(spans), np.uint8)
        first = np.maximum(np.searchsorted(self.starts, spans[:, 0], side="right") - 1, 0)
        last = np.maximum(np.searchsorted(self.starts, spans[:, 1] - 1, side="right") - 1, first)
        found: NDArray[np.uint8] = self.bits[first] | self.bits[last]
        for place in np.flatnonzero(last > first + 1).tolist():
            found[place] = np.bitwise_or.reduce(self.bits[first[place] : last[place] + 1])
        return found

    def kept(self, found: Terms, left_out: int) -> Terms:
        """The terms of a text that touch no section with any of the bits `left_out`."""
        words = (self.touched(found.word_spans) & left_out) == 0
        pairs = (self.touched(found.pair_spans) & left_out) == 0
        return Terms(found.words[words], found.word_spans[words], found.pairs[pairs], found.pair_spans[pairs])


@dataclass(frozen=True, slots=True)
class Apart(Generic[CountsT]):
    """The kinds of the sections of documents, and the counts of the terms that are counted apart."""

    kinds: NDArray[np.uint8]  # (S,) bits of the kind of each section, see `engine.text.section_kinds`
    section_starts: NDArray[np.int64]  # (N + 1,) first section of each document, and S
    groups: NDArray[np.uint8]  # (G,) bits of the kinds that the occurrences of a group touch, and `IN_TITLE`
    group_starts: NDArray[np.int64]  # (N + 1,) first group of each document, and G
    counts: CountsT  # of G groups, as if each were a document; an occurrence in a title counts once

    @property
    def n_documents(self) -> int:
        """N."""
        return len(self.section_starts) - 1

    def of(self, documents: NDArray[np.int64]) -> Apart[CountsT]:
        """The kinds and counts of some documents, in the order given."""
        return gathered([(self, documents)], lambda parts: parts[0][0].of(parts[0][1]))

    def holding(self, counts: OtherT) -> Apart[OtherT]:
        """The same kinds and groups, with the counts in another form."""
        return Apart(self.kinds, self.section_starts, self.groups, self.group_starts, counts)


def gathered(
    parts: Sequence[tuple[Apart[CountsT], NDArray[np.int64]]],
    gather: Callable[[Sequence[tuple[CountsT, NDArray[np.int64]]]], CountsT],
) -> Apart[CountsT]:
    """The kinds and counts of documents of several tables, one table after another."""
    sections = [ranges(starts[at], np.diff(starts)[at]) for starts, at in ((p.section_starts, at) for p, at in parts)]
    groups = [ranges(starts[at], np.diff(starts)[at]) for starts, at in ((p.group_starts, at) for p, at in parts)]
    return Apart(
        np.concatenate([part.kinds[at] for (part, _), at in zip(parts, sections, strict=True)]),
        _starts([np.diff(part.section_starts)[documents] for part, documents in parts]),
        np.concatenate([part.groups[at] for (part, _), at in zip(parts, groups, strict=True)]),
        _starts([np.diff(part.group_starts)[documents] for part, documents in parts]),
        gather([(part.counts, at) for (part, _), at in zip(parts, groups, strict=True)]),
    )


def ranges(firsts: NDArray[np.int64], sizes: NDArray[np.integer]) -> NDArray[np.int64]:
    """Concatenate `first, first + 1, ..., first + size - 1` of each pair, without a loop."""
    ends = np.cumsum(sizes, dtype=np.int64)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(firsts - ends + sizes.astype(np.int64), sizes)


def _starts(sizes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How the groups of documents change the counts in a search that skips some kinds."""

    documents: NDArray[np.int64]  # (G,) rising
    times: NDArray[np.int64]  # (G,) amount that each occurrence of a group takes off the count of its term
    lengths: NDArray[np.float64]  # (N,) |d|, remaining occurrences


def left_out(apart: Apart[Any], skip: int, lengths: NDArray[np.float64], of_groups: NDArray[np.float64]) -> LeftOut:
    """Leave sections of some kinds out of the counts of one kind of term; titles count by the remaining length.

    Lengths (N,) are occurrences of each document, `of_groups` (G,) of each group; `skip` has the bits of kinds.
    """
    n_documents = apart.n_documents
    documents = np.repeat(np.arange(n_documents), np.diff(apart.group_starts))
    is_title, is_skipped = (apart.groups & IN_TITLE) > 0, (apart.groups & skip) > 0

    def summed(groups: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.bincount(documents[groups], of_groups[groups], minlength=n_documents).astype(np.float64)

    left = lengths - summed(~is_title & is_skipped)
    before = _more_often(lengths, summed(is_title))[documents]
    after = _more_often(left, summed(is_title & ~is_skipped))[documents]
    of_titles = np.where(is_skipped, before, before - after)
    return LeftOut(documents, np.where(is_title, of_titles, is_skipped).astype(np.int64), left)


def _more_often(lengths: NDArray[np.float64], in_titles: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many additional times an occurrence in the title counts (N,), as in `engine.words.apart.repeats`."""
    return np.rint(TITLE_SHARE * lengths / np.maximum(in_titles, 1))
