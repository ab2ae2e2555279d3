"""Builds and searches one index type in a process of its own; measures recall, time, memory and size.

Memory is that of the type alone: its process maps the rows from their file, and does not hold the truth. Results are
compared with the truth in the process that started it.

Letters in shapes: I query chunks, K neighbours, D width.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring.isolation import forget_peak, peak_rss_mib, rss_mib, run_forked
from benchmarks.measuring.timing import Percentiles, limited_threads, percentiles
from benchmarks.speed.records import AnnBuild, AnnPoint, Found
from benchmarks.speed.vectors.collection import (
    LIST_LENGTH,
    TIE,
    Collection,
    Truth,
    list_thresholds,
    rank_by_lists,
    rows_in_memory,
    squared_excess,
)
from benchmarks.speed.vectors.index_types import Candidate, Conditions, Library, VectorIndex, make_index
from engine.encoders.encoder import Vectors
from engine.scoring.lists import RankedLists, merge
from engine.scoring.similarity import best_chunks
from engine.search.candidates import FIRST_DEPTH
from engine.search.document_lists import LAST_DEPTH, document_lists
from engine.store.ann import Ids

RESCORED = 64  # least number of documents rescored exactly; twice the number requested, if that is more
WARM_UP = 10  # queries that are searched with, and not counted, before a measurement
DOCUMENT_CHUNKS = 40  # of the document whose latency is measured
MOST_TIMED = 500  # single query chunks
_BLOCK_QUERIES = 64  # chunks whose found rows are in memory at once: 12 MiB at a depth of 128
_DISTRIBUTIONS = {Library.HNSWLIB: ("hnswlib",), Library.USEARCH: ("usearch",)}
_FAISS_DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cuvs")


def measure_in_process(
    candidate: Candidate, folder: Path, collection: Collection, truth: Truth, conditions: Conditions
) -> AnnBuild:
    """Measure one index type over a collection that was saved in a folder and loaded from there."""
    place = folder / "".join(letter if letter.isalnum() else "_" for letter in candidate.name)
    advice = "leave its library out: --libraries"
    built = run_forked(measure, candidate, folder, conditions, place, name=candidate.name, place=place, advice=advice)
    return AnnBuild(
        library=candidate.library,
        version=version_of(candidate.library),
        factory=candidate.factory,
        is_rescored=built["is_rescored"],
        build_seconds=built["build_seconds"],
        bytes_per_vector=round(built["size_bytes"] / len(collection.rows), 1),
        stored_bytes_per_vector=2 * collection.rows.shape[1] if built["is_rescored"] else 0,
        build_peak_mib=built["build_peak_mib"],
        search_peak_mib=built["search_peak_mib"],
        points=[_point(one, collection, truth) for one in built["settings"]],
    )


def _point(one: dict[str, Any], collection: Collection, truth: Truth) -> AnnPoint:
    chunk = Found(round(chunk_recall(np.array(one["chunks"]), collection, truth), 4), Percentiles(**one["chunk"]))
    document = None
    if one["documents"] is not None:
        document = Found(round(document_recall(one["documents"], truth), 4), Percentiles(**one["document"]))
    return AnnPoint(one["setting"], chunk, document, one["deepest"])


def version_of(library: Library) -> str:
    """The version of the installed distribution; that of FAISS for longmatch."""
    for distribution in _DISTRIBUTIONS.get(library, _FAISS_DISTRIBUTIONS):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return ""


def measure(candidate: Candidate, folder: Path, conditions: Conditions, place: Path, written: Path) -> None:
    """Build a type, time its searches, then search with every query; in the process of its own."""
    collection = Collection.load(folder)
    width = collection.rows.shape[1]
    index = make_index(candidate, conditions)
    with limited_threads(conditions.build_threads, width=width):
        before = rss_mib()
        seconds, size_bytes, build_peak = build_and_write(index, rows_in_memory(folder), place)
    with limited_threads(conditions.threads, width=width):
        search_peak, settings = search_all(index, candidate, collection, conditions.k)
    built = {
        "is_rescored": index.is_rescored,
        "build_seconds": round(seconds, 3),
        "size_bytes": size_bytes,
        "build_peak_mib": round(build_peak, 1),
        "search_peak_mib": round(search_peak - before, 1),
        "settings": settings,
    }
    written.write_text(json.dumps(built), "utf-8")


def build_and_write(index: VectorIndex, rows: Vectors, place: Path) -> tuple[float, int, float]:
    """Seconds of building, bytes of the file, and peak resident memory beyond the rows given, in MiB."""
    forget_peak()
    before = rss_mib()
    started = time.perf_counter()
    index.build(rows)
    seconds = time.perf_counter() - started
    index.write(place)
    size_bytes = place.stat().st_size
    place.unlink()
    return seconds, size_bytes, peak_rss_mib() - before


def search_all(
    index: VectorIndex, candidate: Candidate, collection: Collection, k: int
) -> tuple[float, list[dict[str, Any]]]:
    """Peak resident memory of a timed search, and times and results of every setting.

    All settings are timed before the first one answers all queries, so that its memory is not part of any search.
    """
    timed = {}
    for setting in candidate.settings:
        index.set(setting)
        timed[setting] = time_searches(index, collection, k)
    settings = []
    for setting, one in timed.items():
        index.set(setting)
        found = asdict(answer(index, collection, k))
        found["chunks"] = found["chunks"].tolist()
        settings.append({"setting": setting, **found, **asdict(one)})
    return max(one.peak_mib for one in timed.values()), settings


@dataclass(frozen=True)
class Timed:
    """The time and memory of searches with one setting."""

    chunk: Percentiles  # of single query chunks, spread over all
    document: Percentiles | None  # of `DOCUMENT_CHUNKS` chunks, vectors to ranking; None where not `takes_documents`
    peak_mib: float  # peak resident memory of this process meanwhile; memory that was freed before does not count


def time_searches(index: VectorIndex, collection: Collection, k: int) -> Timed:
    """Search with single chunks, then with documents; short documents are repeated, long ones cut."""
    forget_peak()
    picked = np.linspace(0, len(collection.queries) - 1, min(MOST_TIMED, len(collection.queries))).astype(int)
    single = [collection.queries[[row]] for row in picked]
    chunk = _latency(single, lambda query: nearest(index, collection, query, k))
    if not takes_documents(index):
        return Timed(chunk, None, peak_rss_mib())
    documents = [np.resize(chunks, (DOCUMENT_CHUNKS, chunks.shape[1])) for chunks in collection.query_documents()]
    searched = CollectionIndex(index, collection)
    document = _latency(documents, lambda chunks: ranked(searched, chunks, k))
    return Timed(chunk, document, peak_rss_mib())


def _latency(queries: Sequence[Vectors], search: Callable[[Vectors], object]) -> Percentiles:
    for query in queries[:WARM_UP]:
        search(query)
    times_ms = []
    for query in queries:
        started = time.perf_counter()
        search(query)
        times_ms.append(1000 * (time.perf_counter() - started))
    return percentiles(times_ms)


@dataclass(frozen=True)
class Answers:
    """The results of an index with one setting."""

    chunks: Ids  # (I, K) rows found for each query chunk of all documents; -1 where there were fewer
    documents: list[list[int]] | None  # of each query document the targets, best first; None where not searched
    deepest: int  # most neighbours requested for a chunk of a document; 0 without document queries


def answer(index: VectorIndex, collection: Collection, k: int) -> Answers:
    """Search with every chunk, and with every document where `takes_documents`; nothing is timed."""
    blocks = [
        nearest(index, collection, collection.queries[first : first + _BLOCK_QUERIES], k)[0]
        for first in range(0, len(collection.queries), _BLOCK_QUERIES)
    ]
    k = min(k, len(collection.rows))
    chunks = np.concatenate([np.pad(rows, ((0, 0), (0, k - rows.shape[1])), constant_values=-1) for rows in blocks])
    if not takes_documents(index):
        return Answers(chunks, None, 0)
    searched = CollectionIndex(index, collection)
    documents = [ranked(searched, queries, k).tolist() for queries in collection.query_documents()]
    return Answers(chunks, documents, searched.deepest)


def takes_documents(index: VectorIndex) -> bool:
    """Whether an index is searched with documents under its present setting.

    A document query requests `FIRST_DEPTH` neighbours of each chunk. A graph with a narrower search would be
    searched at that width, and so be measured with another setting than its own.
    """
    return index.search_width is None or index.search_width >= FIRST_DEPTH


def nearest(index: VectorIndex, collection: Collection, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
    """The nearest rows of query chunks; where the index is rescored, the best of those that our search requests first.

    Returns:
        (I, K) rows and similarities, best first; row -1 where there were fewer.
    """
    if not index.is_rescored:
        return index.search(queries, k)
    rows, _ = index.search(queries, max(k, FIRST_DEPTH))
    found = similarities(collection, queries, rows)
    order = np.argsort(-found, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(found, order, axis=1)


class CollectionIndex:
    """An index over a collection, as the engine's `ChunkIndex`; chunks are named by their rows."""

    first_depth = FIRST_DEPTH

    def __init__(self, index: VectorIndex, collection: Collection) -> None:
        self.collection = collection
        self.deepest = 0  # most chunks that were requested so far
        self.last_depth = min(len(collection.rows), LAST_DEPTH)
        self.is_coded = index.is_rescored
        self.is_bounded = index.search_width is None  # a graph finds more where more is requested
        self._index = index

    def search(self, queries: Vectors, depth: int) -> tuple[Ids, Vectors]:
        """As `ChunkIndex.search`."""
        self.deepest = max(self.deepest, depth)
        return self._index.search(queries, depth)

    def documents(self, ids: Ids) -> NDArray[np.int64]:
        """As `ChunkIndex.documents`; every document is allowed."""
        return np.where(ids >= 0, self.collection.owners[ids], -1)

    def vectors(self, ids: Ids, documents: NDArray[np.int64]) -> Vectors:
        """As `ChunkIndex.vectors`."""
        return self.collection.rows[ids].astype(np.float32)


def ranked(index: CollectionIndex, queries: Vectors, k: int) -> NDArray[np.int64]:
    """The best `k` targets of a query document, best first.

    The engine makes lists of documents from the chunks found. Where the index is rescored, the best
    targets by these lists are scored again by all of their chunks, against thresholds of lists in
    which these targets have their exact similarities.
    """
    collection = index.collection
    lists = document_lists(index, queries, LIST_LENGTH, collection.n_documents)
    if not index.is_coded:
        return rank_by_lists(lists, collection.n_documents, k)
    documents = rank_by_lists(lists, collection.n_documents, max(RESCORED, 2 * k))
    if not len(documents):
        return documents
    best = best_chunks(queries, *collection.chunks_of(documents))  # (I, documents)
    is_known = np.isin(lists.documents, documents)
    others = RankedLists(lists.documents, np.where(is_known, -np.inf, lists.similarities).astype(np.float32))
    known = RankedLists(np.broadcast_to(documents, best.shape), best)
    theta = list_thresholds(merge(others, known, LIST_LENGTH), collection.n_documents)
    scores = squared_excess(best, theta).sum(axis=0)
    return documents[np.lexsort((documents, -scores))][:k]


def similarities(collection: Collection, queries: Vectors, rows: Ids) -> Vectors:
    """(I, K) exact cosines with the rows found, which are read as they are stored; -inf where there is none."""
    at, column = np.nonzero(rows >= 0)
    exact = np.full(rows.shape, -np.inf, np.float32)
    exact[at, column] = np.einsum("nd,nd->n", queries[at], collection.rows[rows[at, column]].astype(np.float32))
    return exact


def chunk_recall(found: Ids, collection: Collection, truth: Truth) -> float:
    """Mean share, in [0, 1], of the exact K neighbours of a query chunk that are among the (I, K) rows found.

    A row counts if its exact similarity, whatever the index reports, is at least that of
    the K-th best. So copies of one text, which have equal vectors, count for each other.
    """
    n_near = 0
    for first in range(0, len(found), _BLOCK_QUERIES):
        block = slice(first, first + _BLOCK_QUERIES)
        for row in found[block].tolist():
            numbers = [number for number in row if number >= 0]
            assert len(set(numbers)) == len(numbers), "an index named a row twice"
        exact = similarities(collection, collection.queries[block], found[block])
        n_near += int((exact >= truth.least[block, None] - TIE).sum())
    return n_near / found.size


def document_recall(found: list[list[int]], truth: Truth) -> float:
    """Mean share, in [0, 1], of the exact best targets of a query document that are found."""
    both = zip(found, truth.documents, strict=True)
    shares = [len(set(targets) & set(best)) / len(best) for targets, best in both if best]
    return float(np.mean(shares)) if shares else 1.0
