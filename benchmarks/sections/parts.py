"""The parts of one document of a hit, and the orders in which they are removed; nothing is scored here.

Letters in shapes: C chunks of the document, U its parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from engine.document import Chunk, Span
from engine.encoders.encoder import EncodedDocument, Vectors
from engine.scoring.breakdown import Breakdown

Order = NDArray[np.int64]  # a permutation of parts, first removed first


class Side(StrEnum):
    """Of which document of a hit parts are removed."""

    QUERY = "query"
    TARGET = "target"


class Unit(StrEnum):
    """What a part is."""

    CHUNK = "chunk"
    SECTION = "section"


class OrderKind(StrEnum):
    """What says which part goes first."""

    BREAKDOWN = "breakdown"  # the largest contribution to the score
    COSINE = "cosine"  # the largest plain cosine to a chunk of the other document
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one document of a hit; every array but the first is (U,)."""

    of_chunk: NDArray[np.int64]  # (C,) the part of each chunk
    n_tokens: NDArray[np.int64]
    contribution: NDArray[np.float64]  # what the breakdown says of it
    cosine: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.n_tokens)

    def chunks_of(self, parts: Order) -> NDArray[np.bool_]:
        """(C,) True for the chunks of some parts."""
        return np.isin(self.of_chunk, parts)


def parts_of(breakdown: Breakdown, side: Side, query: EncodedDocument, target: EncodedDocument, unit: Unit) -> Parts:
    """Take one document of a hit apart.

    Args:
        breakdown: of the hit.
        side: which document.
        query: with the vectors that were asked with.
        target: with its stored vectors.
        unit: chunks, or sections that have a chunk.
    """
    cosines = query.chunks @ target.chunks.T
    if side is Side.QUERY:
        return _parts(query.chunk_spans, _contributions(breakdown, side, query), cosines.max(axis=1), unit)
    return _parts(target.chunk_spans, _contributions(breakdown, side, target), cosines.max(axis=0), unit)


def _contributions(breakdown: Breakdown, side: Side, document: EncodedDocument) -> NDArray[np.float64]:
    """(C,) what the breakdown says of each chunk, found by its span; a target's chunk may be named many times."""
    number = {Span(chunk.start, chunk.stop): i for i, chunk in enumerate(document.chunk_spans)}
    contributions = np.zeros(len(document.chunk_spans))
    for pair in breakdown.pairs:
        for part in pair.parts:
            contributions[number[part.query if side is Side.QUERY else part.target]] += part.contribution
    return contributions


def _parts(chunks: tuple[Chunk, ...], contributions: NDArray[np.float64], cosines: Vectors, unit: Unit) -> Parts:
    keys = [chunk.section for chunk in chunks] if unit is Unit.SECTION else range(len(chunks))
    of_chunk = np.unique(np.array(keys, np.int64), return_inverse=True)[1]
    largest = np.full(int(of_chunk.max()) + 1, -np.inf)
    np.maximum.at(largest, of_chunk, cosines.astype(np.float64))
    tokens = np.array([chunk.n_tokens for chunk in chunks], np.int64)
    n_tokens = np.bincount(of_chunk, tokens).astype(np.int64)
    contribution = np.bincount(of_chunk, contributions).astype(np.float64)
    return Parts(of_chunk, n_tokens, contribution, largest)


def removal_orders(parts: Parts, n_random: int, rng: np.random.Generator) -> dict[OrderKind, list[Order]]:
    """The orders to compare: one of the breakdown, one of the cosine, and some at random.

    Parts of which the breakdown says nothing come after all others, at random.
    """
    shuffled = rng.permutation(len(parts))
    by_contribution = shuffled[np.argsort(-parts.contribution[shuffled], kind="stable")]
    return {
        OrderKind.BREAKDOWN: [by_contribution],
        OrderKind.COSINE: [np.argsort(-parts.cosine, kind="stable")],
        OrderKind.RANDOM: [rng.permutation(len(parts)) for _ in range(n_random)],
    }
