"""The terms and sentences of one text and where they stand, from a single segmentation of the text. Scores nothing.

Counts are those of the score: an occurrence in a title counts several times, and adds to the section that contains
the title. Where the sections of a query have weights, an occurrence counts as often as the weight of its section.
`engine.words.mixture` distributes contributions by these counts.

Letters in shapes: N occurrences of words, then of pairs; D distinct keys, T wanted keys, A sections of the text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Document
from engine.text.section_kinds import SectionKind, section_kinds
from engine.text.segmentation import Span, sentence_starts
from engine.words.apart import Sections, ranges, repeats, section_starts
from engine.words.counts import MOST_COUNT, TermTable
from engine.words.mixture import TermShares
from engine.words.segmenter import Terms, segmenter_of
from engine.words.wording import hollow_phrases

_PHRASE = re.compile(r"(?<=[\u0e00-\u0eff])\s+(?=[\u0e00-\u0eff])")
_CLAUSE = re.compile(r";\s+")  # of claims and statutes
_INITIALS = re.compile(r"\b(?:[^\W\d_]\.){2,4}\s\Z")  # "filed by Shri K.A. Swami" is one sentence
_MOST_INITIALS = 9  # characters
_LONG_SENTENCE, _LEAST_PHRASE = 400, 30  # characters
PAIR = 1 << 32  # added to the hash of a pair of words, since words and pairs are hashed separately
_PLACE_BITS = 30  # of a number that sorts occurrences by key, and those of one key by place


@dataclass(frozen=True, slots=True)
class Sentences:
    """The sentences of a section, at least one."""

    text: str  # of the document
    edges: Sequence[int]  # (S + 1,) their starts, and the end of the section
    starts: NDArray[np.int64]  # (S,)
    n_words: NDArray[np.int64]  # (S,)

    def span(self, number: int) -> Span:
        """A sentence without the white space at its end."""
        start, stop = self.edges[number : number + 2]
        return Span(start, start + len(self.text[start:stop].rstrip()))


class TermPlaces:
    """The terms of a document: where each occurs, and how often in each section."""

    def __init__(self, document: Document, terms: Terms, kept: NDArray[np.int64] | None = None) -> None:
        """Keep the terms of a segmented document; sections that take no part in a score have no terms.

        Args:
            kept: (N,) rising numbers of the occurrences that are found by key, words before pairs; all by default.
        """
        self.document = document
        self.terms = terms
        self._kept = slice(None) if kept is None else kept
        self._sentences: dict[int, Sentences] = {}
        self._counts: dict[Span | None, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = {}

    @cached_property
    def hollow_phrases(self) -> NDArray[np.int64]:
        """The spans (n, 2) of the set phrases that say nothing, see `engine.words.wording`."""
        return hollow_phrases(self.document.text)

    def sentences(self, section: int) -> Sentences:
        """The sentences of a section without its heading."""
        if section not in self._sentences:
            place = self.document.sections[section]
            start = after_heading(self.document, Span(place.start, place.stop), section)
            text = self.document.text[start : place.stop]
            starts = phrase_starts(text, sentence_starts(text))
            edges = np.array([*starts, len(text)]) + start
            n_words = np.diff(self.word_starts.searchsorted(edges))
            self._sentences[section] = Sentences(self.document.text, edges.tolist(), edges[:-1], n_words)
        return self._sentences[section]

    def occurrences(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The places of terms: (n,) 0 to T-1 rising, and (n,) numbers of occurrences, in reading order for each term.

        Args:
            keys: (T,) of which some may not occur; hashes, plus `PAIR` for pairs of words.
        """
        distinct, starts, order = self._by_key
        terms, at = _ranges(distinct, starts, keys)
        return terms, order[at]

    def in_order(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Terms (n,), 0 to T-1, and spans (n, 2) of all their occurrences, in reading order."""
        distinct, numbers, spans = self._in_reading_order
        places = np.minimum(distinct.searchsorted(keys), len(distinct) - 1)
        is_found = distinct[places] == keys
        term_of = np.full(len(distinct), -1)
        term_of[places[is_found]] = np.flatnonzero(is_found)
        terms = term_of[numbers]
        at = np.flatnonzero(terms >= 0)
        return terms[at], spans.take(at, axis=0)

    def shares(
        self, keys: NDArray[np.int64], title: Span | None, weights: NDArray[np.float64] | None = None
    ) -> TermShares:
        """The share of the occurrences of each term that is in each section.

        Args:
            keys: (T,) rising.
            title: span of the title, whose terms count more often; None if the text does not contain it.
            weights: (A,) of the sections, by which occurrences count; 1 by default.
        """
        starts, sections, counts = self._by_section(title)
        terms, rows = _ranges(self._by_key[0], starts, keys)
        own = sections[rows]
        counted = counts[rows] if weights is None else counts[rows] * weights[own]
        shares = counted / np.bincount(terms, counted, minlength=len(keys))[terms]
        return TermShares(terms, own, shares)

    def mean_weights(
        self, keys: NDArray[np.int64], title: Span | None, weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The mean weight (T,) of the places where each term occurs; the arguments are those of `shares`."""
        terms, at = self.occurrences(keys)
        counts = self._repeats(title)[at]
        summed = np.bincount(terms, weights[self._sections[at]] * counts, minlength=len(keys))
        return np.asarray(summed / np.bincount(terms, counts, minlength=len(keys)))

    def tables(self, title: Span | None) -> tuple[TermTable, TermTable]:
        """The counts of words and of pairs."""
        distinct = self._by_key[0]
        starts, _, of_sections = self._by_section(title)
        summed = np.add.reduceat(of_sections, starts[:-1]) if len(distinct) else starts[:0]
        counts = np.minimum(summed, MOST_COUNT).astype(np.uint16)
        n_words = int(np.searchsorted(distinct, PAIR))
        terms = distinct.astype(np.uint32)  # without `PAIR`
        words, pairs = (
            TermTable(terms[at], counts[at], np.array([0, len(terms[at])]), np.array([n], np.uint32))
            for at, n in ((slice(n_words), len(self.terms.words)), (slice(n_words, None), len(self.terms.pairs)))
        )
        return words, pairs

    def first_spans(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """The first place (T, 2) of each term, all of which occur."""
        distinct, starts, order = self._by_key
        return np.asarray(self._spans[order[starts[np.searchsorted(distinct, keys)]]])

    @cached_property
    def word_starts(self) -> NDArray[np.int64]:
        """The first character of each word, rising."""
        return np.ascontiguousarray(self.terms.word_spans[:, 0])

    def _by_section(self, title: Span | None) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The counts of each key by section: where each key starts (D + 1,), and the sections and counts (n,)."""
        if title not in self._counts:
            _, starts, order = self._by_key
            sections = self._sections[order]
            is_first = _is_new(sections)
            is_first[starts[:-1]] = True
            rows = np.flatnonzero(is_first)
            counts = np.add.reduceat(self._repeats(title)[order], rows) if len(rows) else rows
            self._counts[title] = rows.searchsorted(starts), sections[rows].astype(np.int64), counts
        return self._counts[title]

    def _repeats(self, title: Span | None) -> NDArray[np.int64]:
        """(N,) how often each occurrence counts."""
        counts = repeats(self.terms.word_spans, title), repeats(self.terms.pair_spans, title)
        return np.concatenate(counts)[self._kept]

    @cached_property
    def _spans(self) -> NDArray[np.int32]:
        """(N, 2)."""
        spans = self.terms.word_spans, self.terms.pair_spans
        return np.concatenate(spans, dtype=np.int32, casting="same_kind")[self._kept]

    @cached_property
    def _sections(self) -> NDArray[np.int32]:
        """(N,) section of the first character."""
        sections = np.searchsorted(section_starts(self.document), self._spans[:, 0], side="right") - 1
        return np.maximum(sections, 0, dtype=np.int32)

    @cached_property
    def _in_reading_order(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """The keys (D,) rising, and of all occurrences (N,) in reading order the number of the key and the span."""
        distinct, starts, order = self._by_key
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.repeat(np.arange(len(distinct)), np.diff(starts))
        reading = np.argsort(self._spans[:, 0], kind="stable")
        return distinct, numbers[reading], self._spans.take(reading, axis=0)

    @cached_property
    def _by_key(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """The keys (D,) rising, where each starts (D + 1,) in the third array, and all occurrences (N,) by key."""
        keys = np.concatenate([self.terms.words.astype(np.int64), self.terms.pairs.astype(np.int64) + PAIR])[self._kept]
        values = np.sort(keys << _PLACE_BITS | np.arange(len(keys)))
        keys = values >> _PLACE_BITS
        starts = np.flatnonzero(_is_new(keys))
        return keys[starts], np.append(starts, len(keys)), (values & ((1 << _PLACE_BITS) - 1)).astype(np.int32)


def _is_new(values: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which of some values (n,) differ from the one before."""
    is_new = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    return is_new


def _ranges(
    distinct: NDArray[np.int64], starts: NDArray[np.int64], keys: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of keys (T,), some not among the distinct ones (D,), the number and the place of each entry, key by key."""
    if not len(distinct):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    at = np.minimum(np.searchsorted(distinct, keys), len(distinct) - 1)
    sizes = np.where(distinct[at] == keys, starts[at + 1] - starts[at], 0)
    return np.repeat(np.arange(len(keys)), sizes), ranges(starts[at], sizes)


def phrase_starts(text: str, starts: list[int]) -> list[int]:
    """Starts of sentences, of clauses of long ones, and of phrases of Thai and Lao, whose sentences end in a blank."""
    phrases: list[int] = []
    is_ascii = text.isascii()
    starts = [at for at in starts if not _INITIALS.search(text, max(0, at - _MOST_INITIALS), at)]
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        phrases.append(start)
        is_long = stop - start > _LONG_SENTENCE
        if is_ascii and not is_long:
            continue
        borders = [_CLAUSE] * is_long + [_PHRASE] * (not is_ascii)
        for at in sorted(border.end() for pattern in borders for border in pattern.finditer(text, start, stop)):
            if at - phrases[-1] >= _LEAST_PHRASE and at < stop:
                phrases.append(at)
    return phrases


def after_heading(document: Document, span: Span, section: int) -> int:
    """Where the text of a span begins: after a line with the title of the document, and the heading of its section."""
    text, after = document.text, span.start
    for name, ends in ((document.title, "\n"), (document.sections[section].heading, "")):
        at = text.find(name, after, span.stop) if name else -1
        if at >= 0 and not any(map(str.isalpha, text[after:at])) and text.startswith(ends, at + len(name)):
            after = at + len(name)
            after += text.startswith("`", after)
            while after < span.stop and text[after] in " #=-~*:\n":
                after += 1
    return after if after < span.stop else span.start


def nowhere(document: Document) -> TermPlaces:
    """The places of no terms, of a document that was compared by vectors alone."""
    return TermPlaces(document, segmenter_of("none").segment(""))


class QueryText:
    """The text of a query that takes part in a search, segmented when its terms are first needed."""

    def __init__(
        self,
        document: Document,
        language: str | None,
        text: str | None = None,
        left_out: NDArray[np.bool_] | None = None,
        kinds: tuple[SectionKind, ...] | None = None,
    ) -> None:
        """Keep a text.

        Args:
            text: with blanks in place of common sentences; by default the whole text.
            left_out: (A,) sections that take no part; by default all do.
        """
        self.document = document
        self.language = language
        self.left_out = left_out
        if kinds is not None:
            vars(self)["kinds"] = kinds
        self._text = document.text if text is None else text

    def __getstate__(self) -> dict[str, Any]:
        """Without the values that can be computed again, which a partition on another machine does not need."""
        return {name: value for name, value in vars(self).items() if not hasattr(type(self), name)}

    @cached_property
    def kinds(self) -> tuple[SectionKind, ...]:
        """The kind of each section."""
        return section_kinds(self.document)

    @cached_property
    def terms(self) -> Terms:
        """The terms of the text."""
        terms = segmenter_of(self.language or "none").segment(self._text)
        if self.left_out is None or not self.left_out.any():
            return terms
        return Sections(section_starts(self.document), self.left_out.astype(np.uint8)).kept(terms, 1)

    @cached_property
    def places(self) -> TermPlaces:
        """Where the terms stand."""
        return TermPlaces(self.document, self.terms)
