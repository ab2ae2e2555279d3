"""Measures approximate search against exact search of the same index: recall by document, and latency."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.measuring.timing import Percentiles, percentiles
from benchmarks.program import program
from benchmarks.record_file import Recorded
from engine.errors import QueryError
from engine.index import Index
from engine.search.request import Request
from indexer.origin import Origin

WARM_UP = 10  # queries that are searched with, and not counted, before a measurement


@dataclass(frozen=True)
class RecallRecord(Recorded, kind="recall", file="recall-{index}"):
    """Recall of approximate search against the exact ranking, and the time of both."""

    index: str
    factory: str  # FAISS factory string; "" where the index has no generation yet
    nprobe: int  # 0 where the factory has none
    n_documents: int
    n_chunks: int
    k: int
    n_queries: int
    threads: int
    recall: float  # mean share of the exact top k found, in [0, 1]
    lowest_recall: float  # of the worst query
    ann: Percentiles
    exact: Percentiles
    origin: Origin


def sampled_queries(doc_ids: Sequence[str], n: int, seed: int) -> list[str]:
    """At most `n` documents without repetition, the same for the same seed."""
    order = np.random.default_rng(seed).permutation(len(doc_ids))[:n]
    return [doc_ids[row] for row in order]


def ranked(index: Index, queries: Sequence[str], k: int, *, exact: bool) -> tuple[list[list[str]], Percentiles]:
    """Search every query, one at a time, after a warm-up; the targets of each, best first, and the latency."""
    for query in queries[:WARM_UP]:
        index.search(query, Request(k=k, exact=exact))
    rankings, times_ms = [], []
    for query in queries:
        started = time.perf_counter()
        result = index.search(query, Request(k=k, exact=exact))
        times_ms.append(1000 * (time.perf_counter() - started))
        rankings.append([hit.doc_id for hit in result.hits])
    return rankings, percentiles(times_ms)


def document_recall(found: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> list[float]:
    """The share of each query's exact targets that was found, in [0, 1]; 1 where there are none."""
    return [len(set(a) & set(b)) / len(b) if b else 1.0 for a, b in zip(found, truth, strict=True)]


def measure(
    index: Index, name: str, factory: str, nprobe: int, *, n_queries: int, k: int, threads: int, origin: Origin
) -> RecallRecord:
    """Compare approximate with exact search on sampled documents of the index."""
    doc_ids, _ = index.document_vectors()
    if not doc_ids:
        raise QueryError(f"index {name} holds 0 documents, at least 1 is needed; build it first")
    queries = sampled_queries(doc_ids, n_queries, origin.seed)
    # The limit reaches only libraries that are loaded, and FAISS is loaded by the first search.
    index.search(queries[0], Request(k=k))
    with threadpool_limits(threads):
        truth, exact = ranked(index, queries, k, exact=True)
        found, ann = ranked(index, queries, k, exact=False)
    shares = document_recall(found, truth)
    return RecallRecord(
        index=name,
        factory=factory,
        nprobe=nprobe,
        n_documents=index.n_documents,
        n_chunks=index.n_chunks,
        k=k,
        n_queries=len(queries),
        threads=threads,
        recall=round(sum(shares) / len(shares), 4),
        lowest_recall=round(min(shares), 4),
        ann=ann,
        exact=exact,
        origin=origin,
    )


def recall_table(records: Sequence[RecallRecord]) -> str:
    """A row for each index: the recall of the ANN lists, and the times of both searches."""
    times = ["ANN p50 / p95 / p99, ms", "Exact p50 / p95 / p99, ms"]
    head = ["Index", "Factory", "nprobe", "Documents", "Chunks", "Recall", "Lowest", *times]
    rows = [
        [
            record.index,
            record.factory or "none",
            str(record.nprobe or ""),
            f"{record.n_documents:,}",
            f"{record.n_chunks:,}",
            f"{record.recall:.3f} at {record.k}",
            f"{record.lowest_recall:.3f}",
            *(f"{cost.p50_ms:.1f} / {cost.p95_ms:.1f} / {cost.p99_ms:.1f}" for cost in (record.ann, record.exact)),
        ]
        for record in records
    ]
    return "\n".join([*markdown(head, rows), "", *origins(records)])


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--queries", "n_queries", default=200, type=click.IntRange(1), help="Documents to search with.")
@click.option("-k", "--top", "k", default=10, type=click.IntRange(1), help="Targets to return.")
@click.option("--threads", default=1, type=click.IntRange(1), help="Threads of FAISS and matrix products.")
@measurement()
def main(run: Measurement, path: Path, n_queries: int, k: int, threads: int) -> None:
    """Measure the ANN lists of INDEX against exact search, and write a record.

    \b
    Example:
        python -m benchmarks study recall papers.lm --queries 200 -k 10
    """
    with Index.open(path) as index:
        row = index.snapshot.generation_row
        named = path.stem.partition("@")[0], row.factory if row else "", row.nprobe if row else 0
        record = measure(index, *named, n_queries=n_queries, k=k, threads=threads, origin=run.origin)
    run.publish([record], recall_table)
