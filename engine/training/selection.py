"""Selection of the chunks of each document in a batch: documents are too long to be encoded whole at every step.

Letters in shapes: B queries, T targets, I chunks of a query, J of a target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import SegmentedDocument, Vectors
from engine.errors import TrainingError
from engine.index import Index
from engine.text.spans import Coverage

Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Queries and targets of one corpus, and how they are related."""

    queries: Sequence[SegmentedDocument]  # B
    targets: Sequence[SegmentedDocument]  # T
    positives: NDArray[np.bool_]  # (B, T) True where a target belongs to a query
    excluded: NDArray[np.bool_]  # (B, T) True where it is neither positive nor negative


class Selector(Protocol):
    """Cuts the documents of a batch down to some of their chunks."""

    def select(self, batch: PairBatch, rng: np.random.Generator) -> PairBatch:
        """The same batch, each document with some of its chunks, at least one."""


def keep_chunks(segmented: SegmentedDocument, positions: Sequence[int] | Positions) -> SegmentedDocument:
    """A document reduced to some of its chunks, in reading order; its coverage counts their tokens as read."""
    kept = sorted({int(position) for position in positions})
    chunks = tuple(segmented.chunks[position] for position in kept)
    read = sum(chunk.n_tokens for chunk in chunks)
    return replace(
        segmented,
        chunks=chunks,
        token_ids=tuple(segmented.token_ids[position] for position in kept),
        coverage=Coverage(read, segmented.coverage.tokens_total),
    )


def spread_chunks(segmented: SegmentedDocument, most: int) -> SegmentedDocument:
    """At most `most` chunks, evenly spread from the first to the last."""
    n = len(segmented.chunks)
    if n <= most:
        return segmented
    return keep_chunks(segmented, np.linspace(0, n - 1, most).round().astype(np.int64))


def _check(query_chunks: int, target_chunks: int) -> None:
    if min(query_chunks, target_chunks) < 1:
        raise TrainingError(f"{query_chunks} chunks of a query and {target_chunks} of a target must each be at least 1")


class RandomRuns:
    """Selects a run of neighbouring chunks with a random start."""

    def __init__(self, query_chunks: int, target_chunks: int) -> None:
        """Set the maximum number of chunks of a query, and of a target.

        Raises:
            TrainingError: a maximum is below 1.
        """
        _check(query_chunks, target_chunks)
        self._query_chunks = query_chunks
        self._target_chunks = target_chunks

    def select(self, batch: PairBatch, rng: np.random.Generator) -> PairBatch:
        """As `Selector.select`."""
        return replace(
            batch,
            queries=[_run(document, self._query_chunks, rng) for document in batch.queries],
            targets=[_run(document, self._target_chunks, rng) for document in batch.targets],
        )


def _run(segmented: SegmentedDocument, most: int, rng: np.random.Generator) -> SegmentedDocument:
    n = len(segmented.chunks)
    first = int(rng.integers(0, max(n - most, 0) + 1))
    return keep_chunks(segmented, range(first, min(first + most, n)))


class EvidenceChunks:
    """Selects the chunks that decide the ranking, by the stored vectors of an index of the corpus.

    A query chunk is likely to be drawn if its best match in the positive, or in a hard
    negative, is far above its threshold. Of a target, the best matches of the drawn query
    chunks are kept. With e_i(t) as in `engine.scoring.evidence`, and theta taken from the
    batch, query chunk i is drawn with weight

        e_i(t+) + max_t e_i(t) / 2 + floor

    without replacement (Gumbel top-k). The floor gives every chunk a chance. Stored
    vectors only choose the chunks; the loss uses newly computed vectors.
    """

    FLOOR = 1e-4

    def __init__(self, index: Index, query_chunks: int, target_chunks: int, *, crowd: int) -> None:
        """Choose by stored vectors.

        Args:
            index: of the corpus; its chunks must be those of the encoder in training.
            query_chunks: maximum number of chunks of a query.
            target_chunks: maximum number of chunks of a target.
            crowd: M, at least 1; theta is the similarity of the (M+1)-th best target of the batch.

        Raises:
            TrainingError: a maximum is below 1.
        """
        _check(query_chunks, target_chunks)
        self._index = index
        self._query_chunks = query_chunks
        self._target_chunks = target_chunks
        self._crowd = crowd

    def select(self, batch: PairBatch, rng: np.random.Generator) -> PairBatch:
        """As `Selector.select`.

        Raises:
            TrainingError: the index has other chunks than the documents of the batch.
            QueryError: the index lacks a document of the batch.
        """
        targets = [self._vectors(document) for document in batch.targets]
        stacked = np.concatenate(targets)
        starts = np.cumsum([0, *map(len, targets)])
        wanted: list[set[int]] = [set() for _ in targets]
        queries = []
        for row, document in enumerate(batch.queries):
            products = self._vectors(document) @ stacked.T  # (I, all J)
            evidence = self._evidence(products, starts, batch.positives[row], batch.excluded[row])
            chosen = self._draw(evidence, batch.positives[row], rng)
            queries.append(keep_chunks(document, chosen))
            self._want(wanted, products[chosen], evidence[chosen], starts, batch.positives[row])
        kept = [
            keep_chunks(document, _filled(wanted[column], len(document.chunks), self._target_chunks, rng))
            for column, document in enumerate(batch.targets)
        ]
        return replace(batch, queries=queries, targets=kept)

    def _vectors(self, segmented: SegmentedDocument) -> Vectors:
        doc_id = segmented.document.doc_id
        vectors = self._index.chunk_vectors(doc_id)
        if len(vectors) != len(segmented.chunks):
            raise TrainingError(
                f"{self._index.snapshot.folder} holds {len(vectors)} chunks of {doc_id}, the encoder in training cuts "
                f"{len(segmented.chunks)}; index the corpus with the encoder that training starts from"
            )
        return vectors

    def _evidence(
        self, products: Vectors, starts: NDArray[np.int64], positives: NDArray[np.bool_], excluded: NDArray[np.bool_]
    ) -> Vectors:
        """(I, T) squared margin of the best match in each target above theta; 0 where excluded."""
        best = np.maximum.reduceat(products, starts[:-1], axis=1)
        crowd = np.where(positives | excluded, -1.0, best)
        place = min(self._crowd, crowd.shape[1] - 1)
        theta = -np.partition(-crowd, place, axis=1)[:, place]
        above = np.clip(best - np.clip(theta, 0, 1)[:, None], 0, None) ** 2
        return np.asarray(np.where(excluded, 0, above), np.float32)

    def _draw(self, evidence: Vectors, positives: NDArray[np.bool_], rng: np.random.Generator) -> Positions:
        weight = evidence[:, positives].max(1, initial=0) + evidence.max(1) / 2 + self.FLOOR
        keys = np.log(weight) + rng.gumbel(size=len(weight))
        return np.sort(np.argsort(-keys)[: self._query_chunks])

    def _want(
        self,
        wanted: list[set[int]],
        products: Vectors,
        evidence: Vectors,
        starts: NDArray[np.int64],
        positives: NDArray[np.bool_],
    ) -> None:
        """Add the best matches to `wanted`: of every target that has evidence, and of the positives in any case."""
        for column, found in enumerate(wanted):
            rows = np.arange(len(products)) if positives[column] else np.flatnonzero(evidence[:, column] > 0)
            if len(rows) and (positives[column] or len(found) < self._target_chunks):
                found.update(products[rows, starts[column] : starts[column + 1]].argmax(1).tolist())


def _filled(wanted: set[int], n: int, most: int, rng: np.random.Generator) -> list[int]:
    """At most `most` of the wanted chunks; if fewer than half of `most`, random chunks are added up to half."""
    chosen = [int(position) for position in rng.permutation(sorted(wanted))[:most]]
    fewest = min(n, max(1, most // 2))
    others = (int(position) for position in rng.permutation(n) if position not in wanted)
    while len(chosen) < fewest:
        chosen.append(next(others))
    return chosen
