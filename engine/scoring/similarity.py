"""Best chunks of documents, from vectors. Pure array functions: no files, no models.

Letters in shapes: I query chunks, R targets, J their chunks one after another, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.scoring.lists import RankedLists, segment_max, top_documents

QUERY_BLOCK = 256  # query chunks multiplied at once

Multiply = Callable[[Vectors, Vectors], Vectors]  # (I, D), (J, D) -> (I, J) inner products, wherever they are made


def products(queries: Vectors, vectors: Vectors) -> Vectors:
    """All inner products (I, J) of the rows of two arrays, by numpy; float32 stays float32."""
    found: Vectors = queries @ vectors.T
    return found


@dataclass(frozen=True, slots=True)
class Matches:
    """For each query chunk its best match inside each target; of equal ones the first in reading order."""

    similarities: Vectors  # (I, R) s_i(t)
    chunks: NDArray[np.int64]  # (I, R) number of the matching chunk in its document, from 0

    def of(self, targets: NDArray[np.int64]) -> Matches:
        """The same of some of the targets, in the order of the given columns."""
        return Matches(self.similarities[:, targets], self.chunks[:, targets])


def nearest_documents(
    queries: Vectors,
    vectors: Vectors,
    starts: NDArray[np.int64],
    positions: NDArray[np.int64],
    length: int,
    multiply: Multiply = products,
) -> RankedLists:
    """The documents whose best chunks s_i(t) = max_j <q_i, t_j> are nearest to each query chunk.

    Memory is that of `QUERY_BLOCK` query chunks, however many there are.

    Args:
        queries: (I, D).
        vectors: (J, D), those of documents whose chunks lie one after another.
        starts: (R,) first row of each document, rising; none is empty.
        positions: (R,) the documents.
        length: of a list; fewer where R is smaller.
        multiply: makes the products.
    """
    blocks = [
        top_documents(segment_max(multiply(queries[block], vectors), starts), positions, length)
        for block in _blocks(queries)
    ]
    return RankedLists(
        np.concatenate([block.documents for block in blocks]), np.concatenate([block.similarities for block in blocks])
    )


def best_matches(
    queries: Vectors, vectors: Vectors, starts: NDArray[np.int64], multiply: Multiply = products
) -> Matches:
    """The best chunk of every document, with its place; arguments as of `nearest_documents`."""
    lengths = np.diff(starts, append=len(vectors))
    number = np.arange(len(vectors)) - np.repeat(starts, lengths)  # of a chunk in its document
    best, places = [], []
    for block in _blocks(queries):
        similarities = multiply(queries[block], vectors)
        best.append(segment_max(similarities, starts))
        is_best = similarities == np.repeat(best[-1], lengths, axis=1)
        places.append(np.minimum.reduceat(np.where(is_best, number, len(vectors)), starts, axis=1))
    return Matches(np.concatenate(best), np.concatenate(places))


def join(parts: list[Matches]) -> Matches:
    """Matches in the targets of several parts, in their order."""
    return Matches(
        np.concatenate([part.similarities for part in parts], axis=1),
        np.concatenate([part.chunks for part in parts], axis=1),
    )


def _blocks(queries: Vectors) -> list[slice]:
    return [slice(first, first + QUERY_BLOCK) for first in range(0, len(queries), QUERY_BLOCK)]
