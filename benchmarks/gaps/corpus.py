"""A corpus whose scores can be recomputed with other chunk vectors: stored vectors, and all other components.

Nothing is encoded, so a change of the chunk vectors costs products of matrices.

Letters in shapes: N documents, C chunks of all of them, R documents of the reference, B chunks of these, I query
chunks, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Qrels
from engine.encoders.encoder import Vectors
from engine.index import Index
from engine.scoring.evidence import Scoring, chunk_component, margin, reference_threshold, thresholds
from engine.scoring.similarity import best_chunks, cosines
from engine.search.query import Prepared
from engine.store.reference import SAMPLE_DOCUMENTS
from engine.words.likelihood import scores

VectorMap: TypeAlias = Callable[[Vectors], Vectors]  # (n, D) unit rows to (n, D) unit rows
SCORING = Scoring()
CHUNK_WEIGHT = SCORING.weights()["chunks"]
RESCORED = 200  # documents ranked highest without chunks, whose chunks are compared


@dataclass(frozen=True)
class Case:
    """A query, and what every component but that of chunks adds to the score of each document."""

    query_id: str
    position: int  # of the query among the documents
    chunks: Vectors  # (I, D)
    weights: NDArray[np.float64]  # (I,) w_i
    reference: NDArray[np.int64]  # documents of the reference by number, the query left out
    words: NDArray[np.float64]  # (N,) what words and pairs of words add
    rest: NDArray[np.float64]  # (N,) what all components but that of chunks add


@dataclass(frozen=True)
class Corpus:
    """The chunk vectors of a corpus, and its queries."""

    name: str
    doc_ids: Sequence[str]
    chunks: Vectors  # (C, D), one document after another
    starts: NDArray[np.int64]  # (N,)
    reference: Vectors  # (B, D) chunk vectors as the reference holds them
    reference_starts: NDArray[np.int64]  # (R,)
    exceeding: int  # documents of the reference above a threshold
    qrels: Mapping[str, Qrels]  # by split
    cases: Mapping[str, Sequence[Case]] = field(repr=False)  # by split

    def rows(self, position: int) -> slice:
        """The chunks of a document."""
        return _stretch(self.starts, position, len(self.chunks))

    def reference_rows(self, number: int) -> slice:
        """The chunks of a document of the reference."""
        return _stretch(self.reference_starts, number, len(self.reference))


def _stretch(starts: NDArray[np.int64], at: int, n_rows: int) -> slice:
    return slice(int(starts[at]), int(starts[at + 1]) if at + 1 < len(starts) else n_rows)


@dataclass(frozen=True)
class Mapped:
    """The chunk vectors of a corpus and of its reference, mapped."""

    chunks: Vectors  # (C, D)
    reference: Vectors  # (B, D)
    vector_map: VectorMap


def mapped_corpus(corpus: Corpus, vector_map: VectorMap) -> Mapped:
    """Map all chunk vectors of a corpus."""
    return Mapped(vector_map(corpus.chunks), vector_map(corpus.reference), vector_map)


def read_corpus(name: str, index: Index, qrels: Mapping[str, Qrels]) -> Corpus:
    """Read the vectors of an index, and prepare queries.

    Args:
        name: of the corpus.
        index: with vectors of all documents.
        qrels: of the queries, by split; each query is a document of the index.

    Raises:
        QueryError: a query is not in the index.
    """
    snapshot, pinned = index.snapshot, index.snapshot.reference
    everything = np.arange(snapshot.n_documents)
    chunks, starts = snapshot.chunk_vectors(everything)
    full = max(1, min(pinned.n_corpus, SAMPLE_DOCUMENTS))
    exceeding = max(1, round(SCORING.exceeding * pinned.n_documents / full))
    add = _Addends(index)
    cases = {split: [add.case(query_id) for query_id in judged] for split, judged in qrels.items()}
    return Corpus(name, snapshot.doc_ids(), chunks, starts, pinned.vectors, pinned.starts, exceeding, qrels, cases)


class _Addends:
    """What the components of an index add to scores."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._searcher = index.searcher(SCORING)
        everything = np.arange(index.n_documents)
        self._tables = index.snapshot.words(everything)
        self._documents = index.snapshot.document_rows(everything)

    def case(self, query_id: str) -> Case:
        query = self._index.stored_query(query_id)
        prepared = self._searcher.prepare(query)
        others = np.flatnonzero(self._index.snapshot.reference.hashes != query.key)
        position = self._index.position(query_id)
        words = self._words(prepared)
        whole = margin(cosines(self._documents, prepared.vectors.document), prepared.limits.document, SCORING.power)
        rest = words + prepared.weights["document"] * whole**SCORING.root
        chunks, weights = prepared.vectors.chunks, prepared.chunk_weights
        return Case(query_id, position, chunks, weights, others, words, rest)

    def _words(self, prepared: Prepared) -> NDArray[np.float64]:
        assert prepared.words is not None and prepared.pairs is not None
        words, pairs = scores(prepared.words, self._tables.words), scores(prepared.pairs, self._tables.pairs)
        weights = prepared.weights
        return weights["words"] * words**SCORING.root + weights["pairs"] * pairs**SCORING.root


def joint_scores(corpus: Corpus, case: Case, mapped: Mapped) -> NDArray[np.float64]:
    """The scores (N,) of all documents, with mapped chunk vectors in query, documents and reference.

    Chunks add nothing to documents that are not among the first `RESCORED` without them.

    Args:
        corpus: of the query.
        case: the query.
        mapped: the vectors of the corpus.
    """
    queries = mapped.vector_map(case.chunks)
    in_reference = best_chunks(queries, mapped.reference, corpus.reference_starts)
    theta = reference_threshold(in_reference[:, case.reference], corpus.exceeding)
    positions = np.argsort(-case.rest, kind="stable")[:RESCORED]
    rows = [corpus.rows(at) for at in positions.tolist()]
    starts = np.cumsum([0, *(one.stop - one.start for one in rows[:-1])])
    best = best_chunks(queries, np.concatenate([mapped.chunks[one] for one in rows]), starts)
    components = chunk_component(best, thresholds(theta, 0.0, case.weights, SCORING), SCORING)
    values = case.rest.copy()
    values[positions] += CHUNK_WEIGHT * components**SCORING.root
    return values


def best_documents(corpus: Corpus, case: Case, values: NDArray[np.float64], depth: int) -> list[str]:
    """The names of the documents with the highest values above 0, the query left out; equal ones by name."""
    order = sorted(np.flatnonzero(values > 0).tolist(), key=lambda at: (-values[at], corpus.doc_ids[at]))
    return [corpus.doc_ids[at] for at in order if at != case.position][:depth]
