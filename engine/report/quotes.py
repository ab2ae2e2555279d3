"""The two sentences that show why a section pair matches, and the words that carry the match. Strings and offsets.

The sentences are chosen together: the pair with the most shared weight over the root of its length,

    sum of what the terms that both have add to the section pair / sqrt(number of words of both)

Of terms beyond the `N_TERMS` strongest of the pair, it is only known that they add no more. Terms without a content
word count nothing here: words of grammar alone choose no sentence. Pairs of a content word and a word of grammar
count half.
Sentences that share none of the words listed first are worth seven tenths, so that a quote shows what the list says.
A stock sentence of the query is worth a tenth, so that it is quoted only where little else matches. Set phrases of
patents within other sentences, as "the present invention", count nothing here, and their words are neither marked nor
listed.
All views quote with `Quotes`. A quote is text of the document, up to white space.

Letters in shapes: n occurrences of terms, S sentences, T terms.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from engine.result import Hit, shown_spans
from engine.scoring.parts import N_TERMS, SectionPair, TermPart, term_columns
from engine.text.cleaning import regex
from engine.text.document import Document
from engine.text.segmentation import Span
from engine.words.languages import other_language
from engine.words.places import Sentences, TermPlaces
from engine.words.wording import (
    StockSentence,
    content_of,
    content_words,
    has_number,
    is_listed,
    is_telling,
)

LEAST_MARKED = 0.1  # of the strongest term of the hit: a term that adds less is not marked
MOST_CHARACTERS = 1_000  # of a quote; a longer sentence is shown around its marks
_FEWEST_WORDS = 8  # a shorter sentence is compared as if it had as many
_FEWEST_CHARACTERS = 40  # of a quote without shared words, where there is a longer sentence
_OF_STOCK = 0.1  # what a stock sentence is worth
_OF_UNLISTED = 0.7  # what two sentences are worth that share none of the first listed terms
_N_LEADING = 5  # of the listed terms, those that a table or a chart shows
_OF_HALF_GRAMMAR = 0.5  # what a pair of a content word and a word of grammar is worth, as "both texts"
_SIGNS = regex(r"(?:(?:#{1,6}|[>*+\-•–—|]+|`{3,}\w*)\s+)+")
_BLANK_LINE = regex(r"\n[ \t]*\n")
_LETTERS = regex("[\u30a1-\u30fa\u30fc]+|[\uac00-\ud7a3]+")  # katakana, Hangul: of one word, unlike those of Han
_LONGEST_WORD = 20  # characters, of such words
_LEAD = 24  # characters before the first mark of a line that is cut


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence on one line."""

    span: Span  # in the text of the document
    text: str  # of the span, with each run of white space as one blank
    marks: tuple[Span, ...]  # offsets in `text`, rising and apart

    def marked(self, before: str = "*", after: str = "*") -> str:
        """The line with its marks between two signs."""
        return "".join(f"{before}{text}{after}" if is_marked else text for text, is_marked in self.runs())

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
    """A line in at most `most` characters, and its marks: where most marked text fits, between words."""
    if len(text) <= most:
        return text, tuple(marks)
    room = max(1, most - 2)
    fits = [
        [mark for mark in marks if first.start <= mark.start and mark.stop - first.start <= room] for first in marks
    ]
    best = max(fits, key=lambda own: sum(mark.stop - mark.start for mark in own), default=[])
    start, first, last = 0, best[0].start if best else 0, best[-1].stop if best else 0
    if last > room:
        earliest = max(0, min(first - _LEAD, len(text) - room), last - room)
        blank = text.find(" ", max(0, earliest - 1), first)
        start = blank + 1 if blank >= 0 else first
    stop = start + room
    if stop < len(text):
        blank = text.rfind(" ", max(start + 1, last), stop + 1)
        stop = blank if blank > 0 else max(stop, last)
    lead, trail = "…" if start else "", "…" if stop < len(text) else ""
    shift = len(lead) - start
    inside = [mark for mark in marks if start <= mark.start and mark.stop <= stop]
    moved = tuple(Span(mark.start + shift, mark.stop + shift) for mark in inside)
    return lead + text[start:stop].rstrip() + trail, moved


class Quotes:
    """The quotes of one hit."""

    def __init__(self, query: Document, hit: Hit, language: str | None, stock: Sequence[StockSentence] = ()) -> None:
        """Prepare the terms of a hit.

        Args:
            language: of the words of the index; a target in another one has the function words of its own.
        """
        own = None if language is None else other_language(hit.document.text, language)
        self._query, self._hit, self._language = query, hit, own or language or "none"
        self._stock, self._stock_starts = stock, [sentence.span.start for sentence in stock]
        terms = term_columns(hit.breakdown.terms)
        order = np.argsort(terms.keys)
        keys, self._weights = terms.keys[order], terms.contributions[order]
        self._terms = dict(zip(keys.tolist(), range(len(keys)), strict=True))
        self._is_strong = self._weights >= LEAST_MARKED * float(self._weights.max(initial=0.0))
        self._sides = tuple(_Side(places, keys) for places in hit.places)
        self._listed: dict[tuple[int, int], list[TermPart]] = {}

    def of(self, pair: SectionPair) -> tuple[Quote, Quote]:
        """A sentence of the query and one of the target, of their best passages or, if words add more, sections."""
        spans = shown_spans(pair, self._query, self._hit.document)
        sections = self._sections(pair)
        parts = [section.within(span) for section, span in zip(sections, spans, strict=True)]
        worth = np.ones(len(parts[0].sizes))
        if self._stock:
            worth[[at for at in range(len(worth)) if self.stock_of(parts[0].span(at))]] = _OF_STOCK
        leading = np.zeros(len(self._weights), bool)
        leading[[self._terms[term.key] for term in self.listed_in(pair)[:_N_LEADING]]] = True
        common, *chosen = _best_pair(parts[0], parts[1], self._weights_in(pair), leading, worth)
        is_marked = np.zeros(len(self._weights), bool)
        is_marked[common] = self._are_marked(pair)[common]
        mine, theirs = (
            self._quote(section.text, part, at, is_marked)
            for section, part, at in zip(sections, parts, chosen, strict=True)
        )
        return mine, theirs

    def stock_of(self, span: Span) -> StockSentence | None:
        """The stock sentence in the middle of a span of the query; None where there is none."""
        middle = (span.start + span.stop) // 2
        at = bisect_right(self._stock_starts, middle) - 1
        return self._stock[at] if at >= 0 and middle < self._stock[at].span.stop else None

    def marks(self, pair: SectionPair) -> tuple[list[int], list[int]]:
        """The words of the two sections that carry the match: starts and stops in turn, in the texts, rising."""
        sections = self._sections(pair)
        is_common = np.ones(len(self._weights), bool)
        for section in sections:
            is_common &= section.has
        is_common &= self._are_marked(pair)
        mine, theirs = (
            [*chain.from_iterable(self._marks(part.text, part.spans[is_common[part.terms]]))] for part in sections
        )
        return mine, theirs

    def places(self, pair: SectionPair, keys: Sequence[int]) -> tuple[list[list[int]], list[list[int]]]:
        """All places of some terms in the two sections: for each starts and stops in turn, in reading order."""
        terms = [self._terms.get(key, -1) for key in keys]
        mine, theirs = (section.places_of(terms) for section in self._sections(pair))
        return mine, theirs

    def listed_in(self, pair: SectionPair) -> list[TermPart]:
        """The listed terms of a section pair."""
        sections = pair.query_section, pair.target_section
        if sections not in self._listed:
            self._listed[sections] = self.listed(pair.terms)
        return self._listed[sections]

    def listed(self, terms: Iterable[TermPart]) -> list[TermPart]:
        """The strongest terms that show by themselves why two texts match, at most `N_TERMS`.

        Of a word and a pair with it, one is listed: the pair if it adds at least half as much. Terms with a bare
        number, as of a drawing or a citation, are last, and only with a word that no other has.
        """
        telling = (
            term for term in terms if not any(side.is_hollow[self._terms.get(term.key, -1)] for side in self._sides)
        )
        readable = (self._whole(term) for term in telling if is_listed(term.term, self._language))
        with_words = [(term, content_words(term.term, self._language)) for term in islice(readable, 2 * N_TERMS)]
        chosen: list[TermPart] = []
        seen: set[str | int] = set()
        pairs = [(both, 2 * pair.contribution) for pair, both in with_words if len(both) > 1]
        for term, words in sorted(with_words, key=lambda entry: has_number(entry[0].term)):
            if words & seen:
                continue
            if not any(words < both and least >= term.contribution and not both & seen for both, least in pairs):
                chosen.append(term)
                seen |= words
        return chosen[:N_TERMS]

    def _whole(self, term: TermPart) -> TermPart:
        """The words of a term, "文字" for "な文字を", or the word of katakana or Hangul around it: "ポンプ"."""
        if not term.term.isalpha():  # words with blanks or signs between them
            return term
        core = content_of(term.term, self._language) or Span(0, len(term.term))
        if not _LETTERS.fullmatch(term.term, core.start, core.stop) or term.key not in self._terms:
            return replace(term, term=term.term[core.start : core.stop])
        text, place = self._hit.document.text, self._sides[1].first_place(self._terms[term.key]) + core.start
        word = next(
            (word for word in _LETTERS.finditer(text, max(0, place - _LONGEST_WORD)) if word.end() > place), None
        )
        return term if word is None else replace(term, term=word[0])

    def _sections(self, pair: SectionPair) -> tuple[_Section, _Section]:
        mine, theirs = self._sides
        return mine.section(pair.query_section), theirs.section(pair.target_section)

    def _weights_in(self, pair: SectionPair) -> NDArray[np.float64]:
        """(T,) What terms add to a section pair: others than its strongest at most as much as the last of these."""
        weights = np.minimum(self._weights, pair.terms[-1].contribution if len(pair.terms) >= N_TERMS else 0.0)
        for term in pair.terms:
            weights[self._terms[term.key]] = term.contribution
        mine, theirs = self._sections(pair)
        terms, places = np.unique(mine.terms, return_index=True)
        for term, (start, stop) in zip(terms.tolist(), mine.spans[places].tolist(), strict=True):
            name = mine.text[start:stop]
            if theirs.has[term] and not is_telling(name, self._language):
                weights[term] *= 0.0 if content_of(name, self._language) is None else _OF_HALF_GRAMMAR
        return weights

    def _are_marked(self, pair: SectionPair) -> NDArray[np.bool_]:
        """(T,) The terms that are marked: the strongest of the section pair, and of the hit."""
        are_marked = self._is_strong.copy()
        are_marked[[self._terms[term.key] for term in pair.terms]] = True
        return are_marked

    def _quote(self, text: str, side: _Sentences, at: int, is_marked: NDArray[np.bool_]) -> Quote:
        marks = self._marks(text, side.places[(side.owners == at) & is_marked[side.terms]])
        return _on_one_line(text, _without_signs(text, _shortened(text, side.span(at), marks)), marks)

    def _marks(self, text: str, places: NDArray[np.int32]) -> list[list[int]]:
        """Places (n, 2), rising, that touch, overlap or nest as one mark each, with content words at its ends."""
        joined: list[list[int]] = []
        for start, stop in places.tolist():
            if not joined or start > joined[-1][1]:
                joined.append([start, stop])
            elif stop > joined[-1][1]:
                joined[-1][1] = stop
        marks = []
        for start, stop in joined:
            content = content_of(text[start:stop], self._language)
            if content is not None:
                marks.append([start + content.start, start + content.stop])
        return marks


class _Side:
    """The terms of one side that the other side has too."""

    def __init__(self, places: TermPlaces, keys: NDArray[np.int64]) -> None:
        self._places, self._n_terms = places, len(keys)
        self._terms, self._spans = places.in_order(keys)
        self._starts = np.ascontiguousarray(self._spans[:, 0])
        self._sections: dict[int, _Section] = {}

    @cached_property
    def is_hollow(self) -> NDArray[np.bool_]:
        """(T + 1,) The terms in hollow phrases or across paragraphs alone; the last stands for no term."""
        blank_lines = np.array([line.start() for line in _BLANK_LINE.finditer(self._places.document.text)], np.int64)
        first, last = blank_lines.searchsorted(self._spans.T)
        is_hollow = np.zeros(self._n_terms + 1, bool)
        is_hollow[self._terms] = True
        is_hollow[self._terms[(first == last) & ~_are_inside(self._spans, self._places.hollow_phrases)]] = False
        return is_hollow

    def first_place(self, term: int) -> int:
        """The first character of a term that occurs."""
        return int(self._starts[np.argmax(self._terms == term)])

    def section(self, number: int) -> _Section:
        if number not in self._sections:
            place = self._places.document.sections[number]
            own = slice(*self._starts.searchsorted((place.start, place.stop)).tolist())
            self._sections[number] = _Section(
                self._places, number, self._terms[own], self._spans[own], self._starts[own], self._n_terms
            )
        return self._sections[number]


class _Section:
    def __init__(
        self,
        places: TermPlaces,
        number: int,
        terms: NDArray[np.int64],
        spans: NDArray[np.int32],
        starts: NDArray[np.int32],
        n_terms: int,
    ) -> None:
        self.text = places.document.text
        self.terms, self.spans, self.starts = terms, spans, starts  # (n,) among the terms of the hit; (n, 2); (n,)
        self._places, self._number, self._n_terms = places, number, n_terms

    @cached_property
    def has(self) -> NDArray[np.bool_]:
        """(T,) the terms that are in the section."""
        has = np.zeros(self._n_terms, bool)
        has[self.terms] = True
        return has

    def places_of(self, terms: Sequence[int]) -> list[list[int]]:
        own, edges = self._by_term
        bounds = own.searchsorted([terms, [term + 1 for term in terms]]) * 2
        return [edges[first:last] for first, last in bounds.T.tolist()]

    @cached_property
    def _by_term(self) -> tuple[NDArray[np.int64], list[int]]:
        """The terms, rising, and the start and stop of each."""
        order = np.argsort(self.terms, kind="stable")
        return self.terms[order], self.spans[order].ravel().tolist()

    @cached_property
    def sentences(self) -> _Sentences:
        sentences = self._places.sentences(self._number)
        edges = sentences.edges[0], sentences.edges[-1]
        own = np.arange(*self.starts.searchsorted(edges))
        own = own[~_are_inside(self.spans[own], self._places.hollow_phrases)]
        owners = sentences.starts.searchsorted(self.starts[own], side="right") - 1
        return _Sentences(sentences, 0, self.terms[own], self.spans[own], owners, sentences.n_words)

    def within(self, span: Span) -> _Sentences:
        """The sentences that are in a stretch of the text."""
        whole = self.sentences
        if span.start <= whole.span(0).start and whole.span(len(whole.sizes) - 1).stop <= span.stop:
            return whole
        first, last = _inside(whole.section, span)
        own = slice(*whole.owners.searchsorted((first, last)).tolist())
        owners = whole.owners[own] - first
        return _Sentences(whole.section, first, whole.terms[own], whole.places[own], owners, whole.sizes[first:last])


@dataclass(frozen=True, slots=True)
class _Sentences:
    """Sentences of one side, and the shared terms in them."""

    section: Sentences
    first: int  # of all sentences of the section
    terms: NDArray[np.int64]  # (n,) places among the terms of the hit
    places: NDArray[np.int32]  # (n, 2)
    owners: NDArray[np.int64]  # (n,) sentences, rising
    sizes: NDArray[np.int64]  # (S,) words; at least one sentence

    def span(self, number: int) -> Span:
        return self.section.span(self.first + number)


def _are_inside(spans: NDArray[np.int32], phrases: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n,) Whether each of some spans (n, 2) is in one of some phrases (m, 2), rising."""
    stops = np.concatenate([[0], phrases[:, 1]])[phrases[:, 0].searchsorted(spans[:, 0], side="right")]
    return np.asarray(stops >= spans[:, 1])


def _best_pair(
    mine: _Sentences,
    theirs: _Sentences,
    weights: NDArray[np.float64],
    leading: NDArray[np.bool_],
    worth: NDArray[np.float64],
) -> tuple[NDArray[np.int64], int, int]:
    """The terms that the two best sentences have in common, and the places of these sentences."""
    columns = np.zeros(len(weights), np.int64)  # bit 0: in mine; bit 1: in theirs; then the number among common terms
    columns[mine.terms] = 1
    columns[theirs.terms] |= 2
    terms = np.flatnonzero(columns == 3)
    if not weights[terms].any():
        lengths = [
            np.minimum(np.diff(side.section.edges), _FEWEST_CHARACTERS)[side.first :][: len(side.sizes)]
            for side in (mine, theirs)
        ]
        return terms[:0], int(np.argmax(lengths[0] * worth)), int(np.argmax(lengths[1]))
    columns[:] = -1
    columns[terms] = np.arange(len(terms))
    has = [_incidence(side, columns, len(terms)) for side in (mine, theirs)]
    words = [np.maximum(side.sizes, _FEWEST_WORDS) for side in (mine, theirs)]
    values = (has[0] * worth[:, None] * weights[terms]) @ has[1].T / np.sqrt(words[0][:, None] + words[1])
    first_listed = leading[terms]
    values[~(has[0][:, first_listed] @ has[1][:, first_listed].T).astype(bool)] *= _OF_UNLISTED
    first, second = divmod(int(np.argmax(values)), len(theirs.sizes))
    return terms[(has[0][first] * has[1][second]) > 0], first, second


def _incidence(side: _Sentences, columns: NDArray[np.int64], n_terms: int) -> NDArray[np.float64]:
    """(S, T) 1 where a sentence has a term; `columns` numbers the common terms, others are -1."""
    at = columns[side.terms]
    has = np.zeros((len(side.sizes), n_terms + 1))
    has[side.owners, at] = 1.0
    return has[:, :n_terms]


def _inside(sentences: Sentences, within: Span) -> tuple[int, int]:
    """The first and the end of the sentences that are mostly inside a span, or that touch it if none is."""
    begin = max(0, bisect_right(sentences.edges, within.start) - 1)
    touching = range(begin, min(bisect_left(sentences.edges, within.stop), len(sentences.starts)))
    spans = map(sentences.span, touching)
    shares = [
        (min(span.stop, within.stop) - max(span.start, within.start)) / max(1, span.stop - span.start) for span in spans
    ]
    for least in (0.5, 1e-9):
        inside = [at for at, share in zip(touching, shares, strict=True) if share >= least]
        if inside:
            return inside[0], inside[-1] + 1
    return 0, 1


def _shortened(text: str, sentence: Span, marks: Sequence[Sequence[int]]) -> Span:
    """A sentence, or around its first marks what fits in `MOST_CHARACTERS`, cut between words."""
    if sentence.stop - sentence.start <= MOST_CHARACTERS:
        return sentence
    start = sentence.start
    if marks and marks[0][0] - start > MOST_CHARACTERS // 2:
        lead = text[marks[0][0] - _LEAD : marks[0][0]]
        start = marks[0][0] - len(lead.split(maxsplit=1)[-1] if lead[:1].isspace() else lead.partition(" ")[2])
    stop = min(sentence.stop, start + MOST_CHARACTERS)
    fits = [mark[1] for mark in marks if mark[1] <= stop]
    while stop < sentence.stop and stop > max([start + 1, *fits]) and not text[stop].isspace():
        stop -= 1
    return Span(start, stop)


def _without_signs(text: str, span: Span) -> Span:
    """A span without signs of headings, lists, quotations and blocks of code of Markdown around it."""
    signs = _SIGNS.match(text, span.start, span.stop)
    start = signs.end() if signs and signs.end() < span.stop else span.start
    stop = start + len(text[start : span.stop].removesuffix("```").rstrip())
    return Span(start, stop) if start < stop else span


def _on_one_line(text: str, span: Span, marks: Sequence[Sequence[int]]) -> Quote:
    inside = [mark for mark in marks if span.start <= mark[0] and mark[1] <= span.stop]
    quoted = text[span.start : span.stop]
    if quoted == " ".join(quoted.split()):
        return Quote(span, quoted, tuple(Span(start - span.start, stop - span.start) for start, stop in inside))
    pieces: list[str] = []
    moved = []
    n_characters = 0
    at = span.start
    for start, stop in [*inside, (span.stop, span.stop)]:
        for stretch, is_mark in ((text[at:start], False), (text[start:stop], True)):
            if not stretch:
                continue
            line = " ".join(stretch.split())
            if stretch[0].isspace() and n_characters and not pieces[-1].endswith(" "):
                line = f" {line}"
            if stretch[-1].isspace() and line.strip():
                line += " "
            if line:
                if is_mark:
                    moved.append(Span(n_characters, n_characters + len(line)))
                pieces.append(line)
                n_characters += len(line)
        at = stop
    return Quote(span, "".join(pieces).rstrip(), tuple(moved))
