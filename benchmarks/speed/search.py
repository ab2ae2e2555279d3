"""Measures searches of one index, by the lists and exact, on the CPU and on a GPU: recall, scores and latency."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import numpy as np

from benchmarks.isolation import limited_threads, percentiles, run_fresh
from benchmarks.program import Measurement, measurement, program
from benchmarks.runs import Case, Run
from benchmarks.tables.pivot import case_tables
from engine.environment import check_device, is_gpu
from engine.errors import EngineError, QueryError
from engine.index import Index
from engine.search.request import Request
from indexer.origin import Origin

_K, _THREADS = 10, 1  # targets to return; of FAISS and matrix products on the CPU
WARM_UP = 10  # queries that are searched with, and not counted, before a measurement
WAYS = {"lists": False, "exact": True}  # whether every document is scored
_NOTE = (
    "Queries are documents of the index, each left out of its own hits, one after another, warm. Recall: share of the "
    "first k hits of an exact search on the CPU. Largest difference: of the score of a document that both found. Open: "
    "with the copy onto the GPU and its test."
)


def sampled_queries(doc_ids: Sequence[str], n: int, seed: int) -> list[str]:
    """At most `n` documents without repetition, the same for the same seed."""
    order = np.random.default_rng(seed).permutation(len(doc_ids))[:n]
    return [doc_ids[row] for row in order]


def document_recall(found: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> list[float]:
    """The share of each query's exact targets that was found, in [0, 1]; 1 where there are none."""
    return [len(set(a) & set(b)) / len(b) if b else 1.0 for a, b in zip(found, truth, strict=True)]


def search_all(path: str, device: str, queries: Sequence[str], k: int, threads: int, width: int) -> dict[str, Any]:
    """Search every query one at a time, after a warm-up: milliseconds, and the score of each hit, by way and query."""
    with limited_threads(threads, width=width):
        started = time.perf_counter()
        with Index.open(Path(path), device=device) as index:
            open_seconds = time.perf_counter() - started
            acceleration = index.acceleration
            summary = acceleration.summary if acceleration else ""
            if is_gpu(device) and (acceleration is None or not acceleration.is_on_gpu):
                raise EngineError(f"{device} cannot be measured; {summary}")
            times_ms: dict[str, list[float]] = {}
            scores: dict[str, list[dict[str, float]]] = {}
            for way, exact in WAYS.items():
                for query in queries[:WARM_UP]:
                    index.search(query, Request(k=k, exact=exact))
                times_ms[way], scores[way] = [], []
                for query in queries:
                    started = time.perf_counter()
                    hits = index.search(query, Request(k=k, exact=exact)).hits
                    times_ms[way].append(1000 * (time.perf_counter() - started))
                    scores[way].append({hit.doc_id: float(hit.score) for hit in hits})
    return {"open": open_seconds, "summary": summary, "times_ms": times_ms, "scores": scores}


def measure(path: Path, name: str, *, device: str, n_queries: int, k: int, threads: int, origin: Origin) -> Run:
    """Search sampled documents of an index on the CPU, and on a GPU if `device` is one; each in its own process."""
    with Index.open(path) as index:
        doc_ids, vectors = index.document_vectors()
        row = index.snapshot.parts[0].generation_row
        sizes = {"documents": index.n_documents, "chunks": index.n_chunks}
    if not doc_ids:
        raise QueryError(f"index {name} holds 0 documents, at least 1 is needed; build it first")
    queries = sampled_queries(doc_ids, n_queries, origin.seed)
    places = {"CPU": "cpu", **({"GPU": device} if device != "cpu" else {})}
    answers = {
        place: run_fresh(search_all, str(path), used, queries, k, threads, vectors.shape[1])[0]
        for place, used in places.items()
    }
    truth = answers["CPU"]["scores"]["exact"]
    machine = ", ".join(filter(None, (f"{origin.machine.cores} cores", origin.machine.gpu)))
    fixed = {**sizes, "nprobe": row.nprobe if row else 0, "queries": len(queries), "k": k}
    cases = [
        Case(
            id=f"{name}, {place}, {way}",
            labels={"machine": machine, "lists": row.factory if row else ""},
            values={**fixed, **_compared(answer["times_ms"][way], answer["scores"][way], truth), "open, s": opened},
        )
        for place, answer in answers.items()
        for opened in [round(answer["open"], 2)]
        for way in WAYS
    ]
    variant = "" if device == "cpu" else device.replace(":", "")
    details = {"note": _NOTE, "held": answers[list(places)[-1]]["summary"]}
    return Run(
        task="search", dataset=name, system="search", variant=variant, details=details, origin=origin, cases=cases
    )


def _compared(
    times_ms: Sequence[float], found: Sequence[dict[str, float]], truth: Sequence[dict[str, float]]
) -> dict[str, float]:
    shares = document_recall([list(scores) for scores in found], [list(scores) for scores in truth])
    differences = [
        abs(scores[doc_id] - exact[doc_id])
        for scores, exact in zip(found, truth, strict=True)
        for doc_id in scores.keys() & exact.keys()
    ]
    times = percentiles(times_ms)
    return {
        **{f"{name}, ms": getattr(times, f"{name}_ms") for name in ("p50", "p95", "p99")},
        "recall": round(fmean(shares), 4),
        "lowest recall": round(min(shares), 4),
        "largest difference": float(f"{max(differences, default=0.0):.1e}"),
    }


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--device", default="cpu", help="Also search on a GPU: cuda for all, or cuda:N.")
@click.option("--queries", "n_queries", default=200, type=click.IntRange(1), help="Documents to search with.")
@measurement()
def main(run: Measurement, path: Path, device: str, n_queries: int) -> None:
    """Search INDEX with documents of its own by its lists and exactly, and on a GPU.

    \b
    Example:
        python -m benchmarks study search papers.lm --queries 200
        python -m benchmarks study search papers.lm --device cuda
    """
    check_device(device)
    name = path.stem.partition("@")[0]
    found = measure(path, name, device=device, n_queries=n_queries, k=_K, threads=_THREADS, origin=run.origin)
    run.publish([found], case_tables)
