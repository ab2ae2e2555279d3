"""Grows indexes of given sizes from a real one, and measures building and searching them.

Each step runs in a process of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import click
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.isolation import percentiles, run_fresh
from benchmarks.measurement import Measurement, measurement
from benchmarks.prepare import check_vectors
from benchmarks.program import log, program, read_numbers
from benchmarks.runs import Case, Run
from benchmarks.speed.grown import COPY_MARK, Source, grow, publish
from benchmarks.speed.search import WARM_UP, document_recall
from benchmarks.speed.timed import forget_pages
from benchmarks.tables.pivot import case_tables
from engine.index import Index
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.partitioned import Snapshot
from engine.store.snapshot import IndexSnapshot
from indexer.cli.reading import parse_bytes
from indexer.generation.resources import folder_bytes

DEFAULT_CHUNKS = (1_000_000,)
_QUERY_CHUNKS, _K = 40, 10  # about the chunks of a query; targets to return
QUICK_GROWTH, QUICK_QUERIES = (2, 4, 8), 5
_NOTE = (
    "Queries are real and synthetic documents of the index, each left out of its own hits. p50, p99: of a search with "
    "ten hits and their breakdown, without encoding. Recall: of the exact best targets. Open, first answer: without "
    "page cache. Memory: private memory of the process that searches."
)


@dataclass(frozen=True)
class Trial:
    """How each size is built and searched."""

    index: Path
    source: str  # with checksum
    folder: Path  # of the grown index
    seed: int
    memory_bytes: int | None  # budget of the process that publishes
    cap_bytes: int | None  # private memory that each process may use
    n_queries: int  # of each kind
    threads: int


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
    return {kind: members for kind, members in drawn.items() if members}


def exact_answers(folder: Path, n_queries: int, n_chunks: int, seed: int, k: int) -> dict[str, Any]:
    """Queries by kind, and the exact best targets of each, all found in few passes over the index."""
    with Index.open(folder) as index:
        by_kind = draw_names(index.snapshot, n_queries, n_chunks, seed)
        names = [name for members in by_kind.values() for name in members]
        queries = [(name, index.stored_query(name)) for name in names]
        rankings = Searcher(index.snapshot).exact_top_positions(queries, k=k)
        doc_ids = index.snapshot.doc_ids()
        targets = {name: [doc_ids[row] for row in ranking] for name, ranking in zip(names, rankings, strict=True)}
    return {"names": by_kind, "targets": targets}


def latency(folder: Path, names: dict[str, list[str]], k: int) -> dict[str, Any]:
    """Seconds of opening and of the very first answer, then milliseconds and targets of each warm query, by kind."""
    started = time.perf_counter()
    with Index.open(folder) as index:
        opened = time.perf_counter()
        everyone = [name for members in names.values() for name in members]
        index.search(everyone[0], Request(k=k))
        first = time.perf_counter()
        for name in everyone[:WARM_UP]:
            index.search(name, Request(k=k))
        kinds: dict[str, Any] = {}
        for kind, members in names.items():
            times, targets = [], {}
            for name in members:
                before = time.perf_counter()
                hits = index.search(name, Request(k=k)).hits
                times.append(1000 * (time.perf_counter() - before))
                targets[name] = [hit.doc_id for hit in hits]
            kinds[kind] = {"ms": times, "targets": targets}
    return {"open_seconds": opened - started, "first_seconds": first - opened, "kinds": kinds}


def throughput(folder: Path, names: Sequence[str], k: int, workers: int) -> dict[str, Any]:
    """Many queries at once: each worker is a thread with an open index of its own, and multiplies on one thread."""
    shares = [names[first::workers] for first in range(min(workers, len(names)))]
    ready = threading.Barrier(len(shares))

    def work(share: Sequence[str]) -> tuple[float, float]:
        threadpool_limits(1)  # OpenMP keeps the number for each calling thread
        with Index.open(folder) as index:
            index.search(share[0], Request(k=k))
            ready.wait()
            started = time.perf_counter()
            for name in share:
                index.search(name, Request(k=k))
            return started, time.perf_counter()

    with ThreadPoolExecutor(len(shares)) as pool:
        started, ended = zip(*pool.map(work, shares), strict=True)
    return {"queries_per_second": len(names) / (max(ended) - min(started))}


def measure(trial: Trial, n_chunks: int) -> list[Case]:
    """Grow, publish and search one size; a case for each kind of query."""
    folder, cap, mib = trial.folder, trial.cap_bytes, 1 << 20
    log(f"{n_chunks:,} chunks: growing")
    grown, _ = run_fresh(grow, trial.index, folder, n_chunks, trial.seed, cap_bytes=cap)
    log("publishing")
    published, publishing = run_fresh(publish, folder, trial.memory_bytes, cap_bytes=cap)
    log("searching")
    exact, _ = run_fresh(exact_answers, folder, trial.n_queries, _QUERY_CHUNKS, trial.seed, _K)
    forget_pages(folder)
    timed, searching = run_fresh(latency, folder, exact["names"], _K, cap_bytes=cap, threads=trial.threads)
    batch, _ = run_fresh(throughput, folder, list(exact["targets"]), _K, trial.threads, cap_bytes=cap)
    with IndexSnapshot(folder) as snapshot:
        row = snapshot.generation_row
        assert row is not None
        labels = {"factory": row.factory, "nprobe": str(row.nprobe or "")}
        sizes = {"documents": snapshot.n_documents, "chunks": snapshot.n_chunks}
    costs = {
        "open, s": round(timed["open_seconds"], 3),
        "first answer, s": round(timed["first_seconds"], 3),
        "queries/s": round(batch["queries_per_second"], 1),
        "memory searching, MiB": round(searching.peak_anonymous),
        "memory publishing, MiB": round(publishing.peak_anonymous),
        "disk, MiB": round(folder_bytes(folder) / mib),
        "grow, s": round(grown["seconds"], 1),
        "publish, s": round(published["seconds"], 1),
    }
    return [
        Case(
            id=f"{sizes['chunks']:,} chunks, {kind} queries",
            labels=labels,
            values={**sizes, **_of_queries(timed["kinds"][kind], exact["targets"]), **costs},
        )
        for kind in exact["names"]
    ]


def _of_queries(kind: dict[str, Any], targets: dict[str, list[str]]) -> dict[str, float]:
    shares = document_recall(list(kind["targets"].values()), [targets[name] for name in kind["targets"]])
    times = percentiles(kind["ms"])
    return {
        "queries": len(shares),
        "p50, ms": round(median(kind["ms"]), 1),
        "p99, ms": round(times.p99_ms, 1),
        "recall": round(fmean(shares), 4),
        "lowest recall": round(min(shares), 4),
    }


_CORES = os.cpu_count() or 1
_COUNT = click.IntRange(1)


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--chunks", callback=read_numbers, help=f"Sizes, separated by commas.  [default: {DEFAULT_CHUNKS[0]}]")
@click.option("--memory", "memory_bytes", type=parse_bytes, metavar="SIZE", help="Memory budget of publishing.")
@click.option("--cap", "cap_bytes", type=parse_bytes, metavar="SIZE", help="Cap of the private memory of a process.")
@click.option("--queries", "n_queries", type=_COUNT, help="Queries of each kind.  [default: 100]")
@click.option("--threads", default=_CORES, type=_COUNT, help="Threads of a search, and workers of a batch.")
@measurement(
    seed="Seed of growth and queries.", quick="Grown a little", work="Folder for grown indexes; kept and resumed."
)
def main(
    run: Measurement,
    path: Path,
    chunks: tuple[int, ...],
    memory_bytes: int | None,
    cap_bytes: int | None,
    n_queries: int | None,
    threads: int,
) -> None:
    """Grow INDEX to one or more sizes, in one folder from small to large, and measure each.

    \b
    Example:
        python -m benchmarks study growth papers.lm --chunks 250000,500000,1000000
        python -m benchmarks study growth papers.lm --chunks 1000000 --memory 6GiB --cap 6GiB
    """
    check_vectors(path)
    with IndexSnapshot(path) as snapshot:
        source = Source(snapshot, run.seed)
        name, n_there = f"{path.stem.partition('@')[0]}@{source.checksum}", int(source.n_chunks.sum())
    sizes = chunks or (tuple(n_there * times for times in QUICK_GROWTH) if run.is_quick else DEFAULT_CHUNKS)
    n_queries = n_queries or (QUICK_QUERIES if run.is_quick else 100)
    with run.folder() if run.is_quick else nullcontext(run.work) as work:
        work.mkdir(parents=True, exist_ok=True)
        folder = work / f"grown-{name}-seed{run.seed}.lm"
        trial = Trial(path, name, folder, run.seed, memory_bytes, cap_bytes, n_queries, threads)
        cases = [case for n_chunks in sorted(sizes) for case in measure(trial, n_chunks)]
    details = {"note": _NOTE}
    run.publish(
        [Run(task="scale", dataset=name, system="grown index", cases=cases, details=details, origin=run.origin)],
        case_tables,
    )
