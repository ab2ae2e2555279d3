"""Where in a text the terms stand that a breakdown names. Pure functions of texts; nothing is scored here.

Letters in shapes: n occurrences.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from engine.scoring.breakdown import TermPart
from engine.words.segmenter import Terms, WordSegmenter


def term_places(
    found: Terms, terms: Iterable[TermPart], segmenter: WordSegmenter
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Spread the contribution of each term evenly over its occurrences in a text.

    Args:
        found: the terms of the text.
        terms: of the breakdown of a hit, all of which the text holds.
        segmenter: of the index.

    Returns:
        (n, 2) spans and (n,) contributions.
    """
    words: dict[int, float] = {}
    pairs: dict[int, float] = {}
    for part in terms:
        named = segmenter.segment(part.term)
        into, one = (pairs, named.pairs) if len(named.pairs) else (words, named.words)
        into[int(one[0])] = part.contribution
    shares = [_shares(own, by_term) for own, by_term in ((found.words, words), (found.pairs, pairs))]
    return np.concatenate([found.word_spans, found.pair_spans]), np.concatenate(shares)


def _shares(terms: NDArray[np.uint32], contributions: dict[int, float]) -> NDArray[np.float64]:
    distinct, place, counts = np.unique(terms, return_inverse=True, return_counts=True)
    return (np.array([contributions.get(term, 0.0) for term in distinct.tolist()]) / counts)[place]
