"""Where the terms of a score occur in the sections of one document. Offsets only; scores nothing."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Document
from engine.words.alignment import Occurrences, occurrences
from engine.words.segmenter import segmenter_of


class TermPlaces:
    """The terms of a document by section, found when they are first needed."""

    def __init__(self, document: Document, language: str | None) -> None:
        """Find terms in a document.

        Args:
            document: a query or a target.
            language: the language of its words; None without words.
        """
        self.document = document
        self._segmenter = segmenter_of(language or "none")
        self._found: dict[str, dict[int, list[list[int]]]] = {}

    def spans(self, term: str, section: int) -> list[list[int]]:
        """All places of a term in a section, each [start, end] in the text, in reading order.

        Args:
            term: a word, or two neighbouring words, in any form that has the same stems.
            section: index of the section.
        """
        if term not in self._found:
            self._found[term] = self._places(term)
        return self._found[term].get(section, [])

    def _places(self, term: str) -> dict[int, list[list[int]]]:
        """The spans of a term by section."""
        found = self._segmenter.segment(term)
        # The text of a pair also has words; the text of a word has no pair.
        kind, hashes = ("pairs", found.pairs) if len(found.pairs) else ("words", found.words)
        if not len(hashes):
            return {}
        places, terms, order = self._sorted[kind]
        first, last = np.searchsorted(terms, hashes[0], "left"), np.searchsorted(terms, hashes[0], "right")
        at = order[first:last]
        by_section: dict[int, list[list[int]]] = {}
        for section, span in zip(places.sections[at].tolist(), places.spans[at].tolist(), strict=True):
            by_section.setdefault(section, []).append(span)
        return by_section

    @cached_property
    def _sorted(self) -> dict[str, tuple[Occurrences, NDArray[np.uint32], NDArray[np.int64]]]:
        """For each kind of term its occurrences, their terms in rising order, and the order that sorts them."""
        found = self._segmenter.segment(self.document.text)
        starts = np.array([section.start for section in self.document.sections] or [0], np.int64)
        tables = {}
        for kind in ("words", "pairs"):
            places = occurrences(found, kind, starts)
            order = np.argsort(places.terms, kind="stable")
            tables[kind] = (places, places.terms[order], order)
        return tables
