"""Grows an index to a size, publishes its generation, searches it, and records the cost of each step."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.measuring.isolation import CAP_KIND, Memory, run_fresh
from benchmarks.measuring.timing import percentiles
from benchmarks.record_file import rebuild
from benchmarks.speed.growth import folder as growing
from benchmarks.speed.growth import queries
from benchmarks.speed.growth.source import COPY_MARK
from benchmarks.speed.products import SQUARE, measure_products
from benchmarks.speed.recall import document_recall
from benchmarks.speed.records import Calibration, CandidateLists, ColdStart, GrowthCost, QueryTimes, ScaleRecord
from engine.store.snapshot import Snapshot
from indexer.origin import Origin

COSTS_SUFFIX = ".costs.json"


@dataclass(frozen=True)
class Trial:
    """How each size is built and searched."""

    real: growing.Real
    source_name: str  # with checksum
    folder: Path  # of the grown index
    factory: str
    recall_floor: float
    memory_bytes: int | None  # budget of the process that publishes
    cap_bytes: int | None  # private memory that each process may use
    n_queries: int  # of each kind
    query_chunks: int
    k: int
    threads: int
    workers: int
    is_quick: bool
    origin: Origin
    label: str = ""  # of the records


@dataclass(frozen=True)
class Cost:
    """The cost of one step."""

    seconds: float
    memory: Memory


@dataclass(frozen=True)
class Built:
    """An index of one size, and its cost."""

    grown: dict[str, Any]  # the result of `growing.grow`
    made: Cost
    published: Cost


def build(trial: Trial, n_chunks: int, log: Callable[[str], None]) -> Built:
    """Grow and publish one size; existing parts are not rebuilt.

    Raises:
        EngineError: the index cannot be grown to this size, its generation has too low a recall, or a process took
            more than the cap.
    """
    folder, cap = trial.folder, trial.cap_bytes
    log(f"{n_chunks:,} chunks: growing")
    grown, memory = run_fresh(growing.grow, trial.real, folder, n_chunks, cap_bytes=cap)
    seconds = grown["generate_seconds"] + grown["commit_seconds"]
    made = kept_cost(folder, "grow", Cost(seconds, memory), is_done=bool(grown["n_added"]))
    log("publishing")
    how = (trial.factory, trial.memory_bytes, trial.recall_floor)
    new, memory = run_fresh(growing.publish, folder, *how, cap_bytes=cap)
    published = kept_cost(folder, f"publish {n_chunks}", Cost(new["seconds"], memory), is_done=new["is_new"])
    return Built(grown, made, published)


def kept_cost(folder: Path, step: str, now: Cost, *, is_done: bool) -> Cost:
    """The cost of a step, of this call if it did work, or of the call that did; kept in a file beside the index."""
    path = folder.with_name(folder.name + COSTS_SUFFIX)
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if is_done or step not in known:
        known[step] = asdict(now)
        path.write_text(json.dumps(known), "utf-8")
    return rebuild(Cost, known[step])


def measure(trial: Trial, n_chunks: int, log: Callable[[str], None]) -> ScaleRecord:
    """Measure one size, built by `build`, and with its errors."""
    folder, built, cap = trial.folder, build(trial, n_chunks, log), trial.cap_bytes
    log("exact answers")
    which = (trial.n_queries, trial.query_chunks, trial.real.seed)
    exact, _ = run_fresh(queries.exact_answers, folder, *which, trial.k)
    names, truth = exact["names"], exact["found"]
    near, _ = run_fresh(queries.describe, folder, trial.real.seed)
    log("searching")
    queries.forget_pages(folder)
    found, search_memory = run_fresh(queries.latency, folder, names, trial.k, cap_bytes=cap, threads=trial.threads)
    gflops = _gflops(trial)
    batch, batch_memory = run_fresh(queries.throughput, folder, list(truth), trial.k, trial.workers, cap_bytes=cap)
    with Snapshot(folder) as snapshot:
        generation, row = snapshot.generation, snapshot.generation_row
        assert generation is not None and row is not None
        return ScaleRecord(
            source=trial.source_name,
            is_quick=trial.is_quick,
            n_documents=snapshot.n_documents,
            n_real=sum(COPY_MARK not in name for name in snapshot.doc_ids()),
            n_chunks=snapshot.n_chunks,
            width=snapshot.width,
            factory=row.factory,
            n_lists=generation.ann.n_lists,
            nprobe=row.nprobe,
            generation_recall=row.recall,
            memory_bytes=trial.memory_bytes,
            cap_bytes=cap,
            cap_kind=CAP_KIND if cap else "",
            k=trial.k,
            threads=trial.threads,
            workers=trial.workers,
            calibration=rebuild(Calibration, built.grown["calibration"]),
            neighbours=rebuild(CandidateLists, near),
            growth=GrowthCost(
                round(built.grown["generate_seconds"], 1),
                round(built.grown["commit_seconds"], 1),
                round(built.published.seconds, 1),
            ),
            disk=queries.disk_bytes(folder),
            cold=ColdStart(round(found["open_seconds"], 3), round(found["first_seconds"], 3)),
            asked={kind: _asked(answers, truth) for kind, answers in found["asked"].items() if answers["found"]},
            queries_per_second=round(batch["queries_per_second"], 2),
            memory={
                "grow": built.made.memory,
                "publish": built.published.memory,
                "search": search_memory,
                "batch": batch_memory,
            },
            gflops=gflops,
            origin=trial.origin,
            words_bytes=queries.words_bytes(folder),
            texts="" if trial.real.texts is None else trial.real.texts.stem.partition("@")[0],
            label=trial.label,
        )


def _gflops(trial: Trial) -> float:
    with Snapshot(trial.folder) as snapshot:
        products, _ = run_fresh(measure_products, [SQUARE], trial.threads, snapshot.width)
    return float(products[f"float32 {SQUARE.name}"])


def _asked(answers: dict[str, Any], truth: dict[str, list[str]]) -> QueryTimes:
    stages, found = answers["stages_ms"], answers["found"]
    shares = document_recall(list(found.values()), [truth[name] for name in found])
    return QueryTimes(
        n_queries=len(found),
        n_chunks=median(answers["n_chunks"]),
        latency=percentiles([sum(times.values()) for times in stages]),
        stages_ms={stage: round(fmean(times[stage] for times in stages), 3) for stage in stages[0]},
        faiss_p50_ms=round(median(answers["faiss_ms"]), 3) if answers["faiss_ms"] else None,
        recall=round(fmean(shares), 4),
        lowest_recall=round(min(shares), 4),
        vectors_p50_ms=round(median(answers["vectors_ms"]), 3),
    )
