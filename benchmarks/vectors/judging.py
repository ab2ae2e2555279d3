"""Recall of what an index found, against the exact answer; the index itself is not asked.

Letters in shapes: I query chunks, K neighbours.
"""

from __future__ import annotations

import numpy as np

from benchmarks.vectors.asking import similarities
from benchmarks.vectors.collection import Collection
from benchmarks.vectors.truth import TIE, Truth
from engine.store.ann import Ids

_BLOCK_QUERIES = 1024  # chunks whose found rows are in memory at once


def chunk_recall(found: Ids, collection: Collection, truth: Truth) -> float:
    """Mean share, in [0, 1], of the exact K neighbours of a query chunk that are found.

    What is found counts by its exact similarity, whatever the index says: equal to the
    K-th best or above. Copies of one text, which have equal vectors, stand for each other.

    Args:
        found: (I, K) rows, -1 where there were fewer.
        collection: rows and queries.
        truth: of the same K.
    """
    n_near = 0
    for first in range(0, len(found), _BLOCK_QUERIES):
        asked = slice(first, first + _BLOCK_QUERIES)
        for row in found[asked].tolist():
            numbers = [number for number in row if number >= 0]
            assert len(set(numbers)) == len(numbers), "an index named a row twice"
        exact = similarities(collection, collection.queries[asked], found[asked])
        n_near += int((exact >= truth.least[asked, None] - TIE).sum())
    return n_near / found.size


def document_recall(found: list[list[int]], truth: Truth) -> float:
    """Mean share, in [0, 1], of the exact best targets of a query document that are found."""
    both = zip(found, truth.documents, strict=True)
    shares = [len(set(targets) & set(best)) / len(best) for targets, best in both if best]
    return float(np.mean(shares)) if shares else 1.0
