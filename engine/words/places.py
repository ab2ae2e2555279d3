"""The terms and sentences of one text and where they stand, from a single segmentation of the text. Scores nothing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Document
from engine.text.section_kinds import SectionKind, section_kinds
from engine.text.segmentation import sentence_starts
from engine.text.spans import Span
from engine.words.alignment import section_starts
from engine.words.apart import Sections
from engine.words.segmenter import Terms, segmenter_of

PAIR = 1 << 32  # added to the hash of a pair of words, since words and pairs are hashed separately
_SECTION = 33  # bits of a key, which the number of a section follows


class TermPlaces:
    """The terms of a document by section."""

    def __init__(self, document: Document, terms: Terms) -> None:
        """Keep the terms of a segmented document; sections that take no part in a score have no terms."""
        self.document = document
        self.terms = terms
        self._sentences: dict[int, Sequence[Span]] = {}

    def spans(self, key: int, section: int) -> list[list[int]]:
        """All places of a term in a section, each [start, end] in the text, in reading order.

        Args:
            key: hash of the term, plus `PAIR` for a pair of words.
            section: index of the section.
        """
        keys, spans = self._sorted
        name = section << _SECTION | key
        first = bisect_left(keys, name)
        found: list[list[int]] = spans[first : bisect_right(keys, name, first)].tolist()
        return found

    def sentences(self, section: int) -> Sequence[Span]:
        """The sentences of a section without its heading; at least one."""
        if section not in self._sentences:
            place = self.document.sections[section]
            start = after_heading(self.document, Span(place.start, place.stop), section)
            text = self.document.text[start : place.stop]
            starts = sentence_starts(text)
            spans = zip(starts, [*starts[1:], len(text)], strict=True)
            self._sentences[section] = [
                Span(start + first, start + first + len(text[first:last].rstrip())) for first, last in spans
            ]
        return self._sentences[section]

    @cached_property
    def in_order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Keys (n,) and spans (n, 2) of words and pairs together, in reading order."""
        spans = np.concatenate([self.terms.word_spans, self.terms.pair_spans])
        order = np.argsort(spans[:, 0], kind="stable")
        return self.keys[order], spans[order]

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """(n,) of all occurrences of words, then of all occurrences of pairs; each kind in reading order."""
        return np.concatenate([self.terms.words.astype(np.int64), self.terms.pairs.astype(np.int64) + PAIR])

    @cached_property
    def _sorted(self) -> tuple[list[int], NDArray[np.int64]]:
        """The keys with their sections (n,), rising, and the spans (n, 2) in that order."""
        spans = np.concatenate([self.terms.word_spans, self.terms.pair_spans])
        sections = np.maximum(np.searchsorted(section_starts(self.document), spans[:, 0], side="right") - 1, 0)
        keys = sections << _SECTION | self.keys
        order = np.argsort(keys, kind="stable")
        return keys[order].tolist(), spans[order]


def after_heading(document: Document, span: Span, section: int) -> int:
    """Where the text of a span begins: after the heading of its section, if the span begins with the heading."""
    heading = document.sections[section].heading
    at = document.text.find(heading, span.start, span.stop) if heading else -1
    is_first = at >= 0 and not any(character.isalpha() for character in document.text[span.start : at])
    after = at + len(heading)
    while is_first and after < span.stop and document.text[after] in " #=-~*:\n":
        after += 1
    return after if is_first and after < span.stop else span.start


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
            document: the query.
            language: of its words; None without words.
            text: with blanks in place of common sentences; by default the whole text.
            left_out: (A,) sections that take no part; by default all do.
            kinds: of the sections; by default computed when they are first needed.
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
