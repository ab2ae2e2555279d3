"""Measures search on a GPU against search on the CPU, of the same index: hits, scores and latency."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.isolation import run_fresh
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.measuring.timing import Percentiles, limited_threads, percentiles
from benchmarks.program import program
from benchmarks.record_file import Recorded
from benchmarks.speed.recall import WARM_UP, document_recall, sampled_queries
from engine.devices import check_device, is_gpu
from engine.errors import EngineError, QueryError
from engine.index import Index
from engine.search.request import Request
from indexer.origin import Origin

# Where vectors are searched, and whether every document is scored.
WAYS = {
    "cpu lists": ("cpu", False),
    "cpu exact": ("cpu", True),
    "gpu lists": ("gpu", False),
    "gpu exact": ("gpu", True),
}


@dataclass(frozen=True)
class Searched:
    """One way to search the same queries, compared with the exact search on the CPU."""

    times: Percentiles
    recall: float  # mean share of the exact top k found, in [0, 1]
    lowest_recall: float  # of the worst query
    largest_difference: float  # of the score of a document that both found


@dataclass(frozen=True)
class GpuSearchRecord(Recorded, kind="gpu_search", file="gpu-search-{index}"):
    """The same queries on the CPU and on a GPU."""

    index: str
    factory: str  # FAISS factory string of the lists on the CPU; "" where the index has no generation yet
    n_documents: int
    n_chunks: int
    k: int
    n_queries: int
    threads: int
    device: str
    summary: str  # what the GPU holds, and how its self-test ended
    cpu_open_seconds: float
    gpu_open_seconds: float  # with the copy onto the GPU, and the self-test
    ways: dict[str, Searched]  # by the names of `WAYS`
    origin: Origin


@dataclass(frozen=True)
class _Answers:
    """The answers of one process, as JSON can hold them."""

    open_seconds: float
    summary: str
    times_ms: dict[str, list[float]]  # by "lists" or "exact", of each query
    scores: dict[str, list[dict[str, float]]]  # by "lists" or "exact", of each query: score by document


def _search(path: str, device: str, queries: Sequence[str], k: int, threads: int, width: int) -> dict[str, object]:
    """Search every query one at a time, after a warm-up; the fields of `_Answers`."""
    with limited_threads(threads, width=width):
        started = time.perf_counter()
        with Index.open(Path(path), device=device) as index:
            open_seconds = time.perf_counter() - started
            acceleration = index.acceleration
            summary = acceleration.summary if acceleration else ""
            if is_gpu(device) and (acceleration is None or acceleration.replica is None):
                raise EngineError(f"{device} cannot be measured; {summary}")
            times: dict[str, list[float]] = {}
            scores: dict[str, list[dict[str, float]]] = {}
            for name, exact in (("lists", False), ("exact", True)):
                for query in queries[:WARM_UP]:
                    index.search(query, Request(k=k, exact=exact))
                times[name], scores[name] = [], []
                for query in queries:
                    started = time.perf_counter()
                    hits = index.search(query, Request(k=k, exact=exact)).hits
                    times[name].append(round(1000 * (time.perf_counter() - started), 3))
                    scores[name].append({hit.doc_id: float(hit.score) for hit in hits})
    return asdict(_Answers(round(open_seconds, 2), summary, times, scores))


def measure(
    path: Path, name: str, *, device: str, n_queries: int, k: int, threads: int, origin: Origin
) -> GpuSearchRecord:
    """Search sampled documents of an index on the CPU and on a GPU, each in a process of its own.

    Raises:
        EngineError: the GPU cannot be used; the message says why.
        QueryError: the index is empty.
    """
    with Index.open(path) as index:
        doc_ids, vectors = index.document_vectors()
        row = index.snapshot.generation_row
        sizes = index.n_documents, index.n_chunks
    if not doc_ids:
        raise QueryError(f"index {name} holds 0 documents, at least 1 is needed; build it first")
    queries = sampled_queries(doc_ids, n_queries, origin.seed)
    found = {}
    for place, used in (("cpu", "cpu"), ("gpu", device)):
        answer, _ = run_fresh(_search, str(path), used, queries, k, threads, vectors.shape[1])
        found[place] = _Answers(**answer)
    truth = found["cpu"].scores["exact"]
    ways = {}
    for way, (place, exact) in WAYS.items():
        kind = "exact" if exact else "lists"
        ways[way] = _compared(found[place].times_ms[kind], found[place].scores[kind], truth)
    return GpuSearchRecord(
        index=name,
        factory=row.factory if row else "",
        n_documents=sizes[0],
        n_chunks=sizes[1],
        k=k,
        n_queries=len(queries),
        threads=threads,
        device=device,
        summary=found["gpu"].summary,
        cpu_open_seconds=found["cpu"].open_seconds,
        gpu_open_seconds=found["gpu"].open_seconds,
        ways=ways,
        origin=origin,
    )


def _compared(
    times_ms: Sequence[float], found: Sequence[dict[str, float]], truth: Sequence[dict[str, float]]
) -> Searched:
    shares = document_recall([list(one) for one in found], [list(one) for one in truth])
    differences = [
        abs(one[doc_id] - exact[doc_id])
        for one, exact in zip(found, truth, strict=True)
        for doc_id in one.keys() & exact.keys()
    ]
    return Searched(
        times=percentiles(times_ms),
        recall=round(float(np.mean(shares)), 4),
        lowest_recall=round(min(shares), 4),
        largest_difference=float(f"{max(differences, default=0.0):.1e}"),
    )


def gpu_search_table(records: Sequence[GpuSearchRecord]) -> str:
    """For each index a row for each way to search, and what the GPU held."""
    times = "p50 / p95 / p99, ms"
    head = ["Index", "Documents", "Chunks", "Search", times, "CPU lists : this", "Recall", "Largest difference"]
    rows = []
    for record in records:
        base = record.ways["cpu lists"].times.p50_ms
        for way, searched in record.ways.items():
            cost = searched.times
            rows.append(
                [
                    *(record.index, f"{record.n_documents:,}", f"{record.n_chunks:,}"),
                    way.replace("cpu", "CPU").replace("gpu", "GPU"),
                    f"{cost.p50_ms:.1f} / {cost.p95_ms:.1f} / {cost.p99_ms:.1f}",
                    f"{base / cost.p50_ms:.2f}",
                    f"{searched.recall:.3f} at {record.k}",
                    f"{searched.largest_difference:.0e}",
                ]
            )
    held = [
        f"- {record.index}: {record.summary}. Opened in {record.gpu_open_seconds:.1f} s, for the CPU in "
        f"{record.cpu_open_seconds:.1f} s."
        for record in records
    ]
    return "\n".join([*markdown(head, rows), "", *held, "", *origins(records)])


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--device", default="cuda", help="cuda for all GPUs, or cuda:N.")
@click.option("--queries", "n_queries", default=200, type=click.IntRange(1), help="Documents to search with.")
@click.option("-k", "--top", "k", default=10, type=click.IntRange(1), help="Targets to return.")
@click.option("--threads", default=1, type=click.IntRange(1), help="Threads of FAISS and matrix products on the CPU.")
@measurement()
def main(run: Measurement, path: Path, device: str, n_queries: int, k: int, threads: int) -> None:
    """Search INDEX with documents of its own on the CPU and on a GPU, and write a record.

    \b
    Example:
        python -m benchmarks study gpu_search papers.lm --queries 200 -k 10
    """
    if not is_gpu(device):
        raise QueryError(f"device {device!r} is no GPU; name cuda or cuda:N")
    check_device(device)
    name = path.stem.partition("@")[0]
    record = measure(path, name, device=device, n_queries=n_queries, k=k, threads=threads, origin=run.origin)
    run.publish([record], gpu_search_table)
