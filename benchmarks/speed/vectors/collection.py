"""Vectors of documents and of query documents, drawn by a law or from an index; and the exact answers.

The answers come from products with all rows, and from nothing that is measured. Documents are ranked by lists
alone, since there is no reference: for query chunk i, s_i(t) is its best match inside document t,
theta_i the s_i of its (M+1)-th best document, and

    score(q, t) = sum_i max(0, s_i(t) - theta_i)^2

Letters in shapes: N documents, C chunks of all of them, Q query documents, I chunks of these, D width, K neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors, unit
from engine.errors import QueryError
from engine.index import Index
from engine.scoring.lists import RankedLists, merge, segment_max, top_documents

SYNTHETIC = "synthetic"
EXCEEDING = 20  # documents of a list above its threshold
LIST_LENGTH = EXCEEDING + 1
TIE = 1e-6  # similarities that differ by less are equal: their sums are added up in different orders
_BLOCK_CHUNKS = 8192  # with `_BLOCK_QUERIES`, the size of the table of similarities in memory
_BLOCK_QUERIES = 1024  # with 8192 chunks: 32 MiB
_BLOCK_DOCUMENTS = 1024


@dataclass(frozen=True)
class Collection:
    """Chunk vectors, unit rows."""

    rows: NDArray[np.float16]  # (C, D) as shards hold them, the chunks of a document beside each other
    owners: NDArray[np.int64]  # (C,) number of each chunk's document, rising from 0 to N - 1
    queries: Vectors  # (I, D) float32 of half precision, of documents that are not among the N
    query_starts: NDArray[np.int64]  # (Q,) first row of each query document

    @property
    def n_documents(self) -> int:
        """The number of documents, N."""
        return int(self.owners[-1]) + 1

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """(N + 1,) first row of each document, and one past the last row of all."""
        return np.searchsorted(self.owners, np.arange(self.n_documents + 1))

    def chunks_of(self, documents: NDArray[np.int64]) -> tuple[Vectors, NDArray[np.int64]]:
        """The rows of some documents one after another as float32, and the first of each among them."""
        rows = [self.rows[self.starts[number] : self.starts[number + 1]] for number in documents]
        starts = np.cumsum([0, *(len(own) for own in rows)])[:-1]
        return np.concatenate(rows).astype(np.float32), starts

    def query_documents(self) -> Iterator[Vectors]:
        """The chunks of one query document after another."""
        yield from np.split(self.queries, self.query_starts[1:])

    def save(self, folder: Path) -> None:
        """Write each array into a file of its name."""
        folder.mkdir(parents=True, exist_ok=True)
        for field in fields(self):
            np.save(folder / f"{field.name}.npy", getattr(self, field.name))

    @classmethod
    def load(cls, folder: Path) -> Collection:
        """Read what `save` wrote; the rows stay in their file and are mapped, as those of a shard are."""
        arrays = {field.name: np.load(folder / f"{field.name}.npy", mmap_mode="r") for field in fields(cls)}
        return cls(**{name: np.asarray(array) if name == "rows" else np.array(array) for name, array in arrays.items()})


def rows_in_memory(folder: Path) -> Vectors:
    """The (C, D) rows of a collection that was saved, as float32; no part of their file is mapped."""
    return np.asarray(np.load(folder / "rows.npy"), np.float32)


@dataclass(frozen=True)
class Law:
    """How synthetic vectors are drawn: topics, documents around them, chunks around those.

    With s_j = j^(-1/2) for the dimensions j = 1..D, a topic is N(0, diag s^2), a
    document its topic plus `document_noise` times such a draw, a chunk its document
    plus `chunk_noise` times another, scaled to unit length. The r-th topic has
    a frequency of about 1 / r. As in texts, neighbours of a chunk then lie in its own
    document, its own topic, and a few directions.
    """

    n_documents: int
    n_chunks: int  # of each document
    width: int
    n_topics: int = 3000
    document_noise: float = 0.7
    chunk_noise: float = 0.8


def synthetic(law: Law, n_queries: int, seed: int) -> Collection:
    """Draw a collection; the same for the same seed. Query documents follow the same law."""
    rng = np.random.default_rng(seed)
    spectrum = (np.arange(1, law.width + 1) ** -0.5).astype(np.float32)
    topics = rng.standard_normal((law.n_topics, law.width), np.float32) * spectrum
    rows = np.empty((law.n_documents * law.n_chunks, law.width), np.float16)
    for first in range(0, law.n_documents, _BLOCK_DOCUMENTS):
        stop = min(first + _BLOCK_DOCUMENTS, law.n_documents)
        rows[first * law.n_chunks : stop * law.n_chunks] = _drawn(law, topics, spectrum, stop - first, rng)
    return Collection(
        rows=rows,
        owners=np.repeat(np.arange(law.n_documents), law.n_chunks),
        queries=_drawn(law, topics, spectrum, n_queries, rng).astype(np.float32),
        query_starts=np.arange(n_queries) * law.n_chunks,
    )


def _drawn(law: Law, topics: Vectors, spectrum: Vectors, n: int, rng: np.random.Generator) -> NDArray[np.float16]:
    """(n * n_chunks, D) chunk vectors of n documents."""
    shares = 1 / np.arange(1, law.n_topics + 1)
    topic = rng.choice(law.n_topics, n, p=shares / shares.sum())
    documents = topics[topic] + law.document_noise * spectrum * rng.standard_normal((n, law.width), np.float32)
    noise = rng.standard_normal((n, law.n_chunks, law.width), np.float32)
    chunks = documents[:, None] + law.chunk_noise * spectrum * noise  # (n, n_chunks, D)
    return unit(chunks.reshape(-1, law.width)).astype(np.float16)


def of_index(path: Path, n_queries: int, seed: int, n_documents: int | None = None) -> Collection:
    """The chunk vectors of an index: `n_queries` random documents are queries, the rest is found, or some of it."""
    with Index.open(path) as index:
        snapshot = index.snapshot
        order = np.random.default_rng(seed).permutation(snapshot.n_documents)
        if len(order) <= n_queries:
            raise QueryError(
                f"index {path.name} holds {len(order)} documents, and {n_queries} are to be queries; "
                "ask with fewer: --queries N"
            )
        asked = np.sort(order[:n_queries])
        kept = np.sort(order[n_queries:][:n_documents])
        queries, query_starts = snapshot.chunk_vectors(asked)
        lengths = snapshot.roster.n_chunks[kept]
        stops = np.cumsum(lengths)
        rows = np.empty((int(stops[-1]), queries.shape[1]), np.float16)
        for first in range(0, len(kept), _BLOCK_DOCUMENTS):
            block, _ = snapshot.chunk_vectors(kept[first : first + _BLOCK_DOCUMENTS])
            start = int(stops[first] - lengths[first])
            rows[start : start + len(block)] = block
        return Collection(rows, np.repeat(np.arange(len(kept)), lengths), queries, query_starts)


@dataclass(frozen=True)
class Truth:
    """The results of exact search."""

    least: Vectors  # (I,) similarity of the K-th neighbour of each query chunk
    documents: list[list[int]]  # of each query document the best targets, best first


def exact(collection: Collection, k: int) -> Truth:
    """Scan the collection, a block of targets against a block of query chunks at a time; `k` neighbours and targets."""
    k, n_queries = min(k, len(collection.rows)), len(collection.queries)
    nearest = np.full((n_queries, k), -np.inf, np.float32)
    documents = np.full((n_queries, LIST_LENGTH), -1, np.int64)
    similarities = np.full((n_queries, LIST_LENGTH), -np.inf, np.float32)
    for positions in _document_blocks(collection):
        rows, starts = collection.chunks_of(positions)
        for first in range(0, n_queries, _BLOCK_QUERIES):
            asked = slice(first, first + _BLOCK_QUERIES)
            table = collection.queries[asked] @ rows.T  # (I of the block, chunks of the block)
            nearest[asked] = _largest(np.concatenate([nearest[asked], _largest(table, k)], axis=1), k)
            so_far = RankedLists(documents[asked], similarities[asked])
            found = top_documents(segment_max(table, starts), positions, LIST_LENGTH)
            merged = merge(so_far, found, LIST_LENGTH)
            documents[asked], similarities[asked] = merged.documents, merged.similarities
    edges = [*collection.query_starts.tolist(), n_queries]
    own_lists = (RankedLists(documents[a:b], similarities[a:b]) for a, b in pairwise(edges))
    ranked = [rank_by_lists(lists, collection.n_documents, k).tolist() for lists in own_lists]
    return Truth(nearest.min(axis=1), ranked)


def _document_blocks(collection: Collection) -> list[NDArray[np.int64]]:
    """Runs of documents of about `_BLOCK_CHUNKS` chunks; a longer document is a run of its own."""
    block = (collection.starts[1:] - 1) // _BLOCK_CHUNKS
    return np.split(np.arange(collection.n_documents), np.flatnonzero(np.diff(block)) + 1)


def _largest(values: Vectors, k: int) -> Vectors:
    """(I, K) the largest of each row, in any order; all where there are no more."""
    n = values.shape[1]
    return values if n <= k else np.partition(values, n - k, axis=1)[:, n - k :]


def rank_by_lists(lists: RankedLists, n_documents: int, k: int) -> NDArray[np.int64]:
    """Rank documents by the excess of their matches over the thresholds of the lists of one query document.

    Returns:
        (n,) numbers of at most `k` documents with a score above 0, best first, ties by number.
    """
    shares = squared_excess(lists.similarities, list_thresholds(lists, n_documents))
    counts = (lists.documents >= 0) & (shares > 0)
    documents, at = np.unique(lists.documents[counts], return_inverse=True)
    scores = np.bincount(at, shares[counts], minlength=len(documents))
    return documents[np.lexsort((documents, -scores))][:k]


def list_thresholds(lists: RankedLists, n_documents: int) -> Vectors:
    """theta (I,) in [0, 1]: similarity of the last document of each list, 0 where there are M documents or fewer."""
    if n_documents <= EXCEEDING:
        return np.zeros(len(lists.similarities), np.float32)
    found = np.where(np.isfinite(lists.similarities), lists.similarities, np.inf)[:, :LIST_LENGTH].min(axis=1)
    return np.clip(np.where(np.isfinite(found), found, 0), 0, 1).astype(np.float32)


def squared_excess(similarities: Vectors, theta: Vectors) -> NDArray[np.float64]:
    """max(0, s_i(t) - theta_i)^2 (I, N); an excess of at most `TIE` counts as 0."""
    above = np.minimum(similarities, 1).astype(np.float64) - theta[:, None]
    return np.asarray(np.where(above > TIE, above, 0) ** 2)
