"""Where in a text the terms stand that a breakdown names. Pure functions of texts; nothing is scored here.

Letters in shapes: n occurrences.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from engine.document import Span
from engine.scoring.breakdown import TermPart
from engine.words.segmenter import Terms, WordSegmenter
from engine.words.titles import repeats


def term_places(
    found: Terms, terms: Iterable[TermPart], segmenter: WordSegmenter, title: Span | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Spread the contribution of each term over its occurrences in a text, by how often each counts.

    Args:
        found: the terms of the text.
        terms: of the breakdown of a hit, all of which the text holds.
        segmenter: of the index.
        title: where the title of the text stands.

    Returns:
        (n, 2) spans and (n,) contributions.
    """
    words: dict[int, float] = {}
    pairs: dict[int, float] = {}
    for part in terms:
        named = segmenter.segment(part.term)
        into, one = (pairs, named.pairs) if len(named.pairs) else (words, named.words)
        into[int(one[0])] = part.contribution
    kinds = (found.words, found.word_spans, words), (found.pairs, found.pair_spans, pairs)
    shares = [_shares(own, repeats(spans, title), by_term) for own, spans, by_term in kinds]
    return np.concatenate([found.word_spans, found.pair_spans]), np.concatenate(shares)


def _shares(
    terms: NDArray[np.uint32], times: NDArray[np.int64], contributions: dict[int, float]
) -> NDArray[np.float64]:
    distinct, place = np.unique(terms, return_inverse=True)
    counts = np.bincount(place, times, minlength=len(distinct))
    shares = np.array([contributions.get(term, 0.0) for term in distinct.tolist()]) / counts
    return shares[place] * times
