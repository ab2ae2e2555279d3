"""The searches of one grown index; each function runs in a process of its own, and returns plain values."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.speed.growth.folder import Real
from benchmarks.speed.growth.neighbours import neighbours
from benchmarks.speed.growth.source import COPY_MARK, Source
from benchmarks.speed.growth.stream import SAMPLED_DOCUMENTS
from engine.index import Index
from engine.result import Result
from engine.scoring.evidence import Scoring
from engine.search.candidates import FIRST_DEPTH
from engine.search.local_partition import LocalPartition
from engine.search.query import Query
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.shards import term_count_bytes
from engine.store.snapshot import Snapshot
from indexer.generation.generations import POSTINGS_FILE

BY_VECTORS = Scoring(word_weight=0, pair_weight=0)
WARM_UP = 10  # queries that are searched with, and not counted


def draw_names(snapshot: Snapshot, n_queries: int, n_chunks: int, seed: int) -> dict[str, list[str]]:
    """Documents to search with, "real" and "synthetic": drawn from those whose size is nearest to a number of chunks.

    They are drawn from four times as many, so that another seed draws others.
    """
    names = np.array(snapshot.doc_ids())
    is_made = np.char.find(names, COPY_MARK) >= 0
    rng = np.random.default_rng(seed)
    drawn = {}
    for kind, rows in (("real", np.flatnonzero(~is_made)), ("synthetic", np.flatnonzero(is_made))):
        difference = np.abs(snapshot.locations.n_chunks[rows] - n_chunks)
        nearest = rows[np.argsort(difference, kind="stable")[: 4 * n_queries]]
        drawn[kind] = names[np.sort(rng.permutation(nearest)[:n_queries])].tolist()
    return drawn


def describe(folder: Path, seed: int) -> dict[str, Any]:
    """Similarities inside and between documents of an index, see `neighbours`."""
    with Snapshot(folder) as snapshot:
        chosen = np.random.default_rng(seed).permutation(snapshot.n_documents)[:SAMPLED_DOCUMENTS]
        return asdict(neighbours(Source(snapshot).blocks, chosen, seed))


def exact_answers(folder: Path, n_queries: int, n_chunks: int, seed: int, k: int) -> dict[str, Any]:
    """Queries by kind, and the exact best targets of each, all found in few passes over the index."""
    with Index.open(folder) as index:
        snapshot = index.snapshot
        by_kind = draw_names(snapshot, n_queries, n_chunks, seed)
        names = [name for members in by_kind.values() for name in members]
        rankings = Searcher(snapshot).exact_top_positions([(name, index.stored_query(name)) for name in names], k=k)
        doc_ids = snapshot.doc_ids()
        found = [[doc_ids[row] for row in ranking] for ranking in rankings]
    return {"names": by_kind, "found": dict(zip(names, found, strict=True))}


def find(folder: Path, names: list[str]) -> dict[str, Any]:
    """Open an index, and search with documents for themselves: seconds to the first answer, and how many rank first."""
    started = time.perf_counter()
    with Index.open(folder) as index:
        searcher = index.searcher()
        answers = (searcher.search(index.stored_query(name), Request(k=1)) for name in names)
        first = next(answers)
        seconds = time.perf_counter() - started
        found = [first, *answers]
    n_found = sum(hit.doc_id == name for name, result in zip(names, found, strict=True) for hit in result.hits)
    return {"seconds": seconds, "n_found": n_found}


def encode(real: Real, n_documents: int) -> dict[str, Any]:
    """Encode some of the real documents by the encoder of their index; one document first warms up."""
    from engine.encoders.loading import load_encoder  # imports torch, which the other functions do not need

    with Snapshot(real.index) as snapshot:
        encoder = load_encoder(snapshot.meta["encoder"]["name"])
        drawn = np.random.default_rng(real.seed).permutation(snapshot.n_documents)[:n_documents]
        documents = [document for document, _ in snapshot.documents(np.sort(drawn))]
        encoder.encode_segmented([encoder.segment(document) for document in documents[:1]])
        started = time.perf_counter()
        encoded = encoder.encode_segmented([encoder.segment(document) for document in documents])
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "n_chunks": sum(len(one.chunks) for one in encoded)}


def latency(folder: Path, names: dict[str, list[str]], k: int) -> dict[str, Any]:
    """Time one query after another: the very first, then, warm and by stages, the queries of each kind.

    `names` holds the documents to search with, by kind. Only the search is timed; the time of reading the query's own
    vectors is included for the very first query alone.
    """
    started = time.perf_counter()
    with Index.open(folder) as index:
        opened = time.perf_counter()
        searcher, by_vectors = StagedSearcher(index), StagedSearcher(index, scoring=BY_VECTORS)
        everyone = [name for kind in names.values() for name in kind]
        searcher.timed_search(index.stored_query(everyone[0]), k)
        first = time.perf_counter()
        for name in everyone[:WARM_UP]:
            for one in (searcher, by_vectors):
                one.timed_search(index.stored_query(name), k)
        asked = {kind: _asked(index, searcher, by_vectors, members, k) for kind, members in names.items()}
    return {"open_seconds": opened - started, "first_seconds": first - opened, "asked": asked}


def _asked(
    index: Index, searcher: StagedSearcher, by_vectors: StagedSearcher, names: Sequence[str], k: int
) -> dict[str, Any]:
    times, vectors_alone, faiss, sizes, found = [], [], [], [], {}
    generation = index.snapshot.generation
    for name in names:
        query = index.stored_query(name)
        result, stages = searcher.timed_search(query, k)
        times.append(stages)
        sizes.append(len(query.vectors.chunks))
        found[name] = [hit.doc_id for hit in result.hits]
        _, stages = by_vectors.timed_search(query, k)
        vectors_alone.append(sum(stages.values()) - stages[THRESHOLDS])
        if generation is not None:
            started = time.perf_counter()
            generation.ann.search(query.vectors.chunks, FIRST_DEPTH)
            faiss.append(1000 * (time.perf_counter() - started))
    return {"stages_ms": times, "vectors_ms": vectors_alone, "faiss_ms": faiss, "n_chunks": sizes, "found": found}


def throughput(folder: Path, names: Sequence[str], k: int, workers: int) -> dict[str, Any]:
    """Many queries at once: each worker is a thread with an open index of its own, and multiplies on one thread."""
    shares = [names[first::workers] for first in range(min(workers, len(names)))]
    ready = threading.Barrier(len(shares))

    def work(mine: Sequence[str]) -> tuple[float, float]:
        threadpool_limits(1)  # OpenMP keeps the number for each calling thread
        with Index.open(folder) as index:
            searcher = StagedSearcher(index)
            queries = [index.stored_query(name) for name in mine]
            searcher.timed_search(queries[0], k)
            ready.wait()
            started = time.perf_counter()
            for query in queries:
                searcher.timed_search(query, k)
            return started, time.perf_counter()

    with ThreadPoolExecutor(len(shares)) as pool:
        started, ended = zip(*pool.map(work, shares), strict=True)
    return {"queries_per_second": len(names) / (max(ended) - min(started))}


def words_bytes(folder: Path) -> int:
    """Bytes of term counts, postings and the reference; without them the rest would be an index of vectors alone."""
    sizes = disk_bytes(folder)
    with Snapshot(folder) as snapshot:
        of_shards = sum(term_count_bytes(folder / row.file) for row in snapshot.shard_rows)
    return of_shards + sizes["postings"] + sizes["reference"]


def disk_bytes(folder: Path) -> dict[str, int]:
    """Bytes of an index by kind of file."""
    sizes = {"catalog": 0, "shards": 0, "ann": 0, "postings": 0, "reference": 0}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        part = "postings" if path.name == POSTINGS_FILE else path.relative_to(folder).parts[0]
        sizes[part if part in sizes else "catalog"] += path.stat().st_size
    return sizes


THRESHOLDS, LISTS, WORDS, SCORES, HITS = "thresholds", "lists", "postings", "scores", "hits"
OTHER = "other"  # the filter
STAGES = (THRESHOLDS, LISTS, WORDS, SCORES, HITS, OTHER)


class StageClock:
    """Counts each moment for the innermost stage that runs; `now` returns the time in seconds."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._now = now
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; the enclosing stage is paused."""
        self._spend()
        self._running.append(name)
        try:
            yield
        finally:
            self._spend()
            self._running.pop()

    def _spend(self) -> None:
        now = self._now()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now


def staged(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that is timed as a stage, for a class with a clock."""

    def timed(self: StagedPartition | StagedSearcher, *arguments: object, **named: object) -> object:
        with self.clock.stage(name):
            return method(self, *arguments, **named)

    return timed


class StagedPartition(LocalPartition):
    """A partition that times its own stages."""

    def __init__(self, index: Index, scoring: Scoring, clock: StageClock) -> None:
        super().__init__(index.snapshot, scoring)
        self.clock = clock

    _ranked = staged(SCORES, LocalPartition._ranked)  # calls `_estimates`
    _estimates = staged(LISTS, LocalPartition._estimates)  # calls `_estimated_words`
    _estimated_words = staged(WORDS, LocalPartition._estimated_words)
    _named = staged(SCORES, LocalPartition._named)


class StagedSearcher(Searcher):
    """A searcher that times its own stages."""

    def __init__(
        self, index: Index, now: Callable[[], float] = time.perf_counter, scoring: Scoring | None = None
    ) -> None:
        super().__init__(index.snapshot, scoring)
        self._now = now
        self._staged = StagedPartition(index, self.scoring, StageClock(now))
        self._partitions = [self._staged]

    prepare = staged(THRESHOLDS, Searcher.prepare)
    show = staged(HITS, Searcher.show)
    _hits = staged(HITS, Searcher._hits)

    @property
    def clock(self) -> StageClock:
        """The clock of the last search."""
        return self._staged.clock

    def timed_search(self, query: Query, k: int) -> tuple[Result, dict[str, float]]:
        """The targets of an indexed document, itself left out, and milliseconds by stage, which sum to the whole."""
        self._staged.clock = StageClock(self._now)
        with self.clock.stage(OTHER):
            result = self.search(query, Request(k=k, without=(query.document.doc_id,)))
        return result, {stage: 1000 * seconds for stage, seconds in self.clock.seconds.items()}
