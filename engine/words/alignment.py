"""Where the words of a score occur: the terms that two texts share, by section of both. Pure functions of texts.

A term t that adds x to a score adds to the pair of section i of the query and section j of the
target

    x  tf_qi(t) / tf_q(t)  tf_dj(t) / tf_d(t)

so that the shares of all pairs of sections sum to x. Where the sections of the query have weights,
tf_qi(t) counts as often as the weight of section i, in the sum tf_q(t) too. Counts are those of the
score: an occurrence in a title counts several times, and adds to the section that contains the title.

Letters in shapes: T shared terms, A query sections, B target sections.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Document
from engine.text.spans import Span
from engine.words.segmenter import Terms
from engine.words.titles import repeats
from engine.work import step

_ENTRY_BYTES, _PAIR_BYTES = 80, 16  # of memory, for a term in a pair of sections, and for the pair


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


@dataclass(frozen=True, slots=True)
class SectionTerms:
    """The contributions of shared terms to each pair of sections."""

    query_sections: NDArray[np.int64]  # (n,)
    target_sections: NDArray[np.int64]  # (n,)
    terms: NDArray[np.int64]  # (n,) places among the shared terms
    contributions: NDArray[np.float64]  # (n,)


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


def align(
    query: Occurrences,
    target: Occurrences,
    terms: NDArray[np.uint32],
    contributions: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
) -> SectionTerms:
    """Distribute the contributions of terms over pairs of sections.

    Args:
        query: terms of the query's text.
        target: terms of the target's text.
        terms: (T,) that both have, rising.
        contributions: (T,) of each.
        weights: (A,) of the sections of the query; 1 by default.
    """
    mine, theirs = _by_section(query, terms, weights), _by_section(target, terms)
    # For each term, each section of the query that has it is paired with each section of the target that has it.
    n_theirs = np.bincount(theirs.terms, minlength=len(terms))
    first = np.cumsum(n_theirs) - n_theirs
    counts = n_theirs[mine.terms]
    ends = np.cumsum(counts)
    n_pairs = (int(mine.sections.max(initial=0)) + 1) * (int(theirs.sections.max(initial=0)) + 1)
    step(_ENTRY_BYTES * int(counts.sum()) + _PAIR_BYTES * n_pairs)
    left = np.repeat(np.arange(len(mine.terms)), counts)
    right = np.arange(len(left)) - np.repeat(ends - counts, counts) + first[mine.terms][left]
    term = mine.terms[left]
    return SectionTerms(
        mine.sections[left],
        theirs.sections[right],
        term,
        contributions[term] * mine.shares[left] * theirs.shares[right],
    )


@dataclass(frozen=True, slots=True)
class _Shares:
    terms: NDArray[np.int64]  # (n,) places among the shared terms, rising
    sections: NDArray[np.int64]  # (n,)
    shares: NDArray[np.float64]  # (n,) share of the term's occurrences that is in the section


def _by_section(found: Occurrences, terms: NDArray[np.uint32], weights: NDArray[np.float64] | None = None) -> _Shares:
    at = np.minimum(np.searchsorted(terms, found.terms), max(0, len(terms) - 1))
    stands = terms[at] == found.terms if len(terms) else np.zeros(len(found.terms), bool)
    n_sections = int(found.sections.max(initial=0)) + 1
    keys, of_key = np.unique(at[stands] * n_sections + found.sections[stands], return_inverse=True)
    counts = np.bincount(of_key, found.repeats[stands], minlength=len(keys))
    place, sections = keys // n_sections, keys % n_sections
    counted = counts if weights is None else counts * weights[sections]
    return _Shares(place, sections, counted / np.bincount(place, counted, minlength=len(terms))[place])
