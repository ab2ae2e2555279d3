"""The two sentences that show why a section pair matches, and the words that carry the match. Strings and offsets.

The sentences are chosen together: the pair with the most shared weight over the root of its length,

    sum of the contributions of the terms that both have / sqrt(number of words of both)

All views quote with `Quotes`. A quote is text of the document, up to white space.

Letters in shapes: n occurrences of terms, S sentences, T terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.result import Hit, shown_spans
from engine.scoring.breakdown import SectionPair, TermPart, term_columns
from engine.text.document import Document
from engine.text.spans import Span
from engine.words.function_words import content_of
from engine.words.places import TermPlaces

LEAST_MARKED = 0.1  # of the strongest term of the hit: a term that adds less is not marked
MOST_CHARACTERS = 1_000  # of a quote; a longer sentence is shown around its marks
_FEWEST_WORDS = 8  # a shorter sentence is compared as if it had as many
_LEAD = 24  # characters before the first mark of a line that is cut


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence on one line."""

    span: Span  # in the text of the document
    text: str  # of the span, with each run of white space as one blank
    marks: tuple[Span, ...]  # offsets in `text`, rising and apart

    def marked(self, before: str = "*", after: str = "*") -> str:
        """The line with its marks between two signs."""
        return self.joined(lambda text: text, before, after)

    def joined(self, escape: Callable[[str], str], before: str, after: str) -> str:
        """The line with its marks between two signs, and every stretch of text escaped, for markup."""
        return "".join(
            f"{before}{escape(text)}{after}" if is_marked else escape(text) for text, is_marked in self.runs()
        )

    def runs(self) -> list[tuple[str, bool]]:
        """The stretches of the line, and whether each is marked."""
        return marked_runs(self.text, self.marks)


def marked_runs(text: str, marks: Sequence[Span]) -> list[tuple[str, bool]]:
    """The stretches of a line, and whether each is marked."""
    runs, at = [], 0
    for mark in marks:
        runs += [(text[at : mark.start], False), (text[mark.start : mark.stop], True)]
        at = mark.stop
    return [(stretch, is_marked) for stretch, is_marked in [*runs, (text[at:], False)] if stretch]


def window(text: str, marks: Sequence[Span], most: int) -> tuple[str, tuple[Span, ...]]:
    """A line in at most `most` characters, and its marks: where most marked text fits, between words.

    Args:
        text: the line.
        marks: of the line, rising.
        most: characters, with "…" where text is left out.
    """
    if len(text) <= most:
        return text, tuple(marks)
    room = max(1, most - 2)
    fits = [
        [mark for mark in marks if first.start <= mark.start and mark.stop - first.start <= room] for first in marks
    ]
    best = max(fits, key=lambda own: sum(mark.stop - mark.start for mark in own), default=[])
    start, first, last = 0, best[0].start if best else 0, best[-1].stop if best else 0
    if last > room:
        earliest = max(0, first - _LEAD, last - room)
        blank = text.find(" ", max(0, earliest - 1), first)
        start = blank + 1 if blank >= 0 else first
    stop = start + room
    if stop < len(text):
        blank = text.rfind(" ", max(start + 1, last), stop + 1)
        stop = blank if blank > 0 else max(stop, last)
    lead, trail = "…" if start else "", "…" if stop < len(text) else ""
    shift = len(lead) - start
    kept = tuple(Span(one.start + shift, one.stop + shift) for one in marks if start <= one.start and one.stop <= stop)
    return lead + text[start:stop].rstrip() + trail, kept


class Quotes:
    """The quotes of one hit."""

    def __init__(self, query: Document, hit: Hit, language: str | None) -> None:
        """Prepare the terms of a hit.

        Args:
            query: the document that was searched with.
            hit: of the search.
            language: of the words; None without words.
        """
        self._query, self._hit, self._language = query, hit, language or "none"
        terms = term_columns(hit.breakdown.terms)
        order = np.argsort(terms.keys)
        self._keys, self._weights = terms.keys[order], terms.contributions[order]
        self._is_strong = self._weights >= LEAST_MARKED * float(self._weights.max(initial=0.0))
        self._sides = [self._shared(query.text, hit.places[0]), self._shared(hit.document.text, hit.places[1])]

    def of(self, pair: SectionPair) -> tuple[Quote, Quote]:
        """A sentence of the query and one of the target, of their best passages or, if words add more, sections."""
        numbers = pair.query_section, pair.target_section
        spans = shown_spans(pair, self._query, self._hit.document)
        sides = [side.sentences(number, span) for side, number, span in zip(self._sides, numbers, spans, strict=True)]
        common, *chosen = _best_pair(sides[0], sides[1], self._weights)
        is_marked = self._is_marked(common)
        mine, theirs = (
            self._quote(side.text, sentences, at, is_marked)
            for side, sentences, at in zip(self._sides, sides, chosen, strict=True)
        )
        return mine, theirs

    def marks(self, pair: SectionPair) -> tuple[list[Span], list[Span]]:
        """The words of the two sections that carry the match: places in the texts, rising and apart."""
        documents = self._query, self._hit.document
        sections = documents[0].sections[pair.query_section], documents[1].sections[pair.target_section]
        own = [side.within(section.start, section.stop) for side, section in zip(self._sides, sections, strict=True)]
        is_marked = self._is_marked(np.intersect1d(own[0][0], own[1][0]))
        mine, theirs = (
            self._marks(side.text, spans[is_marked[terms]])
            for side, (terms, spans) in zip(self._sides, own, strict=True)
        )
        return mine, theirs

    def listed(self, terms: Iterable[TermPart]) -> Iterator[TermPart]:
        """The terms with a content word."""
        return (term for term in terms if content_of(term.term, self._language) is not None)

    def _is_marked(self, terms: NDArray[np.int64]) -> NDArray[np.bool_]:
        is_marked = np.zeros(len(self._keys) + 1, bool)
        is_marked[terms] = self._is_strong[terms]
        return is_marked

    def _shared(self, text: str, places: TermPlaces) -> _Shared:
        keys, spans = places.in_order
        at = np.minimum(np.searchsorted(self._keys, keys), max(0, len(self._keys) - 1))
        is_shared = self._keys[at] == keys if len(self._keys) else np.zeros(len(keys), bool)
        spans = spans[is_shared]
        return _Shared(text, places, at[is_shared], spans, np.ascontiguousarray(spans[:, 0]))

    def _quote(self, text: str, side: _Sentences, at: int, is_marked: NDArray[np.bool_]) -> Quote:
        marks = self._marks(text, side.places[(side.owners == at) & is_marked[side.terms]])
        return _on_one_line(text, _shortened(text, side.spans[at], marks), marks)

    def _marks(self, text: str, places: NDArray[np.int64]) -> list[Span]:
        """Places (n, 2) that touch, overlap or nest as one mark each, with content words at its ends."""
        marks = []
        for mark in _merged([Span(start, stop) for start, stop in sorted(places.tolist())]):
            content = content_of(text[mark.start : mark.stop], self._language)
            if content is not None:
                marks.append(Span(mark.start + content.start, mark.start + content.stop))
        return marks


@dataclass(frozen=True, slots=True)
class _Shared:
    """The terms of one side that the other side has too, in reading order."""

    text: str
    places: TermPlaces
    terms: NDArray[np.int64]  # (n,) places among the terms of the hit
    spans: NDArray[np.int64]  # (n, 2)
    starts: NDArray[np.int64]  # (n,)

    def within(self, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Terms and spans that begin in a stretch of the text."""
        first, last = np.searchsorted(self.starts, (start, stop)).tolist()
        return self.terms[first:last], self.spans[first:last]

    def sentences(self, section: int, within: Span) -> _Sentences:
        """The sentences of a section that are in a stretch of the text."""
        sentences = _inside(self.places.sentences(section), within)
        starts = np.array([sentence.start for sentence in sentences])
        terms, spans = self.within(sentences[0].start, sentences[-1].stop)
        owners = np.searchsorted(starts, spans[:, 0], side="right") - 1
        edges = np.searchsorted(self.places.terms.word_spans[:, 0], [*starts, sentences[-1].stop])
        return _Sentences(sentences, terms, spans, owners, np.diff(edges))


@dataclass(frozen=True, slots=True)
class _Sentences:
    """Sentences of one side, and the shared terms in them."""

    spans: Sequence[Span]  # S, at least 1
    terms: NDArray[np.int64]  # (n,) places among the terms of the hit
    places: NDArray[np.int64]  # (n, 2)
    owners: NDArray[np.int64]  # (n,) sentences
    sizes: NDArray[np.int64]  # (S,) words


def _best_pair(
    mine: _Sentences, theirs: _Sentences, weights: NDArray[np.float64]
) -> tuple[NDArray[np.int64], int, int]:
    """The terms that the two best sentences have in common, and the places of these sentences."""
    terms = np.intersect1d(mine.terms, theirs.terms)
    if not len(terms):
        first, second = (int(np.argmax(side.sizes >= _FEWEST_WORDS)) for side in (mine, theirs))
        return terms, first, second
    has = [_incidence(side, terms) for side in (mine, theirs)]
    words = [np.maximum(side.sizes, _FEWEST_WORDS) for side in (mine, theirs)]
    values = (has[0] * weights[terms]) @ has[1].T / np.sqrt(words[0][:, None] + words[1])
    first, second = divmod(int(np.argmax(values)), len(theirs.spans))
    return terms[(has[0][first] * has[1][second]) > 0], first, second


def _incidence(side: _Sentences, terms: NDArray[np.int64]) -> NDArray[np.float64]:
    """(S, T) 1 where a sentence has a term."""
    at = np.minimum(np.searchsorted(terms, side.terms), len(terms) - 1)
    is_common = terms[at] == side.terms
    found = np.zeros((len(side.spans), len(terms)))
    found[side.owners[is_common], at[is_common]] = 1.0
    return found


def _inside(sentences: Sequence[Span], within: Span) -> Sequence[Span]:
    """The sentences that are mostly inside a span, or those that touch it if none is; at least one."""
    shares = [
        (min(one.stop, within.stop) - max(one.start, within.start)) / max(1, one.stop - one.start) for one in sentences
    ]
    for least in (0.5, 1e-9):
        inside = [one for one, share in zip(sentences, shares, strict=True) if share >= least]
        if inside:
            return inside
    return sentences[:1]


def _merged(spans: Sequence[Span]) -> list[Span]:
    """Spans that touch or overlap as one."""
    merged: list[Span] = []
    for span in spans:
        if merged and span.start <= merged[-1].stop:
            merged[-1] = Span(merged[-1].start, max(merged[-1].stop, span.stop))
        else:
            merged.append(span)
    return merged


def _shortened(text: str, sentence: Span, marks: Sequence[Span]) -> Span:
    """A sentence, or around its first marks what fits in `MOST_CHARACTERS`, cut between words."""
    if sentence.stop - sentence.start <= MOST_CHARACTERS:
        return sentence
    start = sentence.start
    if marks and marks[0].start - start > MOST_CHARACTERS // 2:
        lead = text[marks[0].start - _LEAD : marks[0].start]
        start = marks[0].start - len(lead.split(maxsplit=1)[-1] if lead[:1].isspace() else lead.partition(" ")[2])
    stop = min(sentence.stop, start + MOST_CHARACTERS)
    fits = [mark.stop for mark in marks if mark.stop <= stop]
    while stop < sentence.stop and stop > max([start + 1, *fits]) and not text[stop].isspace():
        stop -= 1
    return Span(start, stop)


def _on_one_line(text: str, span: Span, marks: Sequence[Span]) -> Quote:
    pieces: list[str] = []
    moved = []
    n_characters = 0
    at = span.start
    inside = [mark for mark in marks if span.start <= mark.start and mark.stop <= span.stop]
    for mark in [*inside, Span(span.stop, span.stop)]:
        for stretch, is_mark in ((text[at : mark.start], False), (text[mark.start : mark.stop], True)):
            line = " ".join(stretch.split())
            if stretch[:1].isspace() and n_characters and not pieces[-1].endswith(" "):
                line = f" {line}"
            if line.strip() and stretch[-1:].isspace():
                line += " "
            if is_mark and line:
                moved.append(Span(n_characters, n_characters + len(line)))
            if line:
                pieces.append(line)
                n_characters += len(line)
        at = mark.stop
    return Quote(span, "".join(pieces).rstrip(), tuple(moved))
