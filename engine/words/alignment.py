"""Where the words of a score occur: the terms of a text by section. Pure functions of texts.

Counts are those of the score: an occurrence in a title counts several times, and adds to the section that contains
the title. Where the sections of a query have weights, an occurrence counts as often as the weight of its section.
`engine.words.mixture` distributes contributions by these shares.

Letters in shapes: T shared terms, A sections of the text, n occurrences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Document
from engine.text.spans import Span
from engine.words.mixture import SectionShares
from engine.words.segmenter import Terms
from engine.words.titles import repeats


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The occurrences of one kind of term in one text."""

    terms: NDArray[np.uint32]  # (n,) in reading order
    spans: NDArray[np.int64]  # (n, 2)
    sections: NDArray[np.int64]  # (n,) of the first character
    repeats: NDArray[np.int64]  # (n,) how often each counts


def occurrences(found: Terms, kind: str, section_starts: NDArray[np.int64], title: Span | None = None) -> Occurrences:
    """The words or the pairs of a segmented text, with their sections.

    Args:
        found: the text's terms.
        kind: `words` or `pairs`.
        section_starts: (A,) offsets, rising.
        title: span of the title, whose terms count more often; None if the text does not contain it.
    """
    terms, spans = (found.words, found.word_spans) if kind == "words" else (found.pairs, found.pair_spans)
    sections = np.maximum(np.searchsorted(section_starts, spans[:, 0], side="right") - 1, 0)
    return Occurrences(terms, spans, sections, repeats(spans, title))


def section_starts(document: Document) -> NDArray[np.int64]:
    """(A,) offsets of the sections of a document, rising; [0] for one without sections."""
    return np.array([section.start for section in document.sections] or [0], np.int64)


def mean_weights(found: Occurrences, terms: NDArray[np.uint32], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean weight (T,) of the places where each term occurs; a place counts as often as its occurrence.

    Args:
        found: all occurrences of the terms, and of no other term.
        terms: (T,) rising.
        weights: (A,) of the sections.
    """
    at = np.searchsorted(terms, found.terms)
    summed = np.bincount(at, weights[found.sections] * found.repeats, minlength=len(terms))
    return np.asarray(summed / np.bincount(at, found.repeats, minlength=len(terms)))


def section_shares(
    found: Occurrences, terms: NDArray[np.uint32], weights: NDArray[np.float64] | None = None
) -> SectionShares:
    """The share of the occurrences of each term that is in each section.

    Args:
        found: terms of one text.
        terms: (T,) that count, rising.
        weights: (A,) of the sections, by which occurrences count; 1 by default.
    """
    at = np.minimum(np.searchsorted(terms, found.terms), max(0, len(terms) - 1))
    stands = terms[at] == found.terms if len(terms) else np.zeros(len(found.terms), bool)
    n_sections = int(found.sections.max(initial=0)) + 1
    keys, of_key = np.unique(at[stands] * n_sections + found.sections[stands], return_inverse=True)
    counts = np.bincount(of_key, found.repeats[stands], minlength=len(keys))
    place, sections = keys // n_sections, keys % n_sections
    counted = counts if weights is None else counts * weights[sections]
    return SectionShares(place, sections, counted / np.bincount(place, counted, minlength=len(terms))[place])
