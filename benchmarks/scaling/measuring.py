"""Grows an index to a size, publishes its generation, asks it, and puts what each step took into a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.measuring.isolation import CAP_KIND, run_fresh
from benchmarks.measuring.latency import percentiles
from benchmarks.measuring.peak import Memory
from benchmarks.measuring.products import SQUARE, measure_products
from benchmarks.recall import document_recall
from benchmarks.record_file import rebuild
from benchmarks.scaling import asking, building
from benchmarks.scaling.calibration import Calibration
from benchmarks.scaling.neighbours import CandidateLists
from benchmarks.scaling.notes import Noted, note, noted
from benchmarks.scaling.record import Asked, Cold, GrowthCost, ScaleRecord
from benchmarks.scaling.source import COPY_MARK
from engine.store.snapshot import Snapshot
from indexer.training.origin import Origin


@dataclass(frozen=True)
class Trial:
    """How each size is built and asked."""

    real: building.Real
    source_name: str  # with checksum
    folder: Path  # of the grown index
    factory: str
    recall_floor: float
    memory_bytes: int | None  # budget of the process that publishes
    cap_bytes: int | None  # that each process may take
    n_queries: int  # of each kind
    query_chunks: int
    k: int
    threads: int
    workers: int
    is_quick: bool
    origin: Origin


@dataclass(frozen=True)
class Built:
    """An index of one size, and what it took."""

    grown: dict[str, Any]  # what `building.grow` tells
    made: Noted
    published: Noted


def build(trial: Trial, n_chunks: int, log: Callable[[str], None]) -> Built:
    """Grow and publish one size; what is there of it is not built again.

    Raises:
        EngineError: the index cannot be grown to this size, its generation finds too little, or a process took more
            than the cap.
    """
    folder = trial.folder
    log(f"{n_chunks:,} chunks: growing")
    grown, memory = run_fresh(building.grow, trial.real, folder, n_chunks, cap_bytes=trial.cap_bytes)
    made = _taken(folder, "grow", Noted(grown["generate_seconds"] + grown["commit_seconds"], memory), grown["n_added"])
    log("publishing")
    how = (trial.factory, trial.memory_bytes, trial.recall_floor)
    told, memory = run_fresh(building.publish, folder, *how, cap_bytes=trial.cap_bytes)
    published = _taken(folder, f"publish {n_chunks}", Noted(told["seconds"], memory), told["is_new"])
    return Built(grown, made, published)


def measure(trial: Trial, n_chunks: int, log: Callable[[str], None]) -> ScaleRecord:
    """Measure one size, built by `build`; errors are as there."""
    folder, built = trial.folder, build(trial, n_chunks, log)
    log("exact answers")
    which = (trial.n_queries, trial.query_chunks, trial.real.seed)
    exact, _ = run_fresh(asking.exact_answers, folder, *which, trial.k)
    names, truth = exact["names"], exact["found"]
    near, _ = run_fresh(asking.describe, folder, trial.real.seed)
    log("asking")
    asking.forget_pages(folder)
    cap = trial.cap_bytes
    told, search_memory = run_fresh(asking.latency, folder, names, trial.k, cap_bytes=cap, threads=trial.threads)
    gflops = _gflops(trial)
    batch, batch_memory = run_fresh(asking.throughput, folder, list(truth), trial.k, trial.workers, cap_bytes=cap)
    taken = {"grow": built.made.memory, "publish": built.published.memory}
    memories = {**taken, "search": search_memory, "batch": batch_memory}
    cost = GrowthCost(
        round(built.grown["generate_seconds"], 1),
        round(built.grown["commit_seconds"], 1),
        round(built.published.seconds, 1),
    )
    asked = {kind: _asked(answers, truth) for kind, answers in told["asked"].items() if answers["found"]}
    cold = Cold(round(told["open_seconds"], 3), round(told["first_seconds"], 3))
    likeness = rebuild(Calibration, built.grown["calibration"]), rebuild(CandidateLists, near)
    return _record(trial, *likeness, cost, asked, cold, round(batch["queries_per_second"], 2), memories, gflops)


def _gflops(trial: Trial) -> float:
    with Snapshot(trial.folder) as snapshot:
        products, _ = run_fresh(measure_products, [SQUARE], trial.threads, snapshot.width)
    return float(products[f"float32 {SQUARE.name}"])


def _taken(folder: Path, step: str, now: Noted, is_done: int | bool) -> Noted:
    """What a step took now if it did something, else what it took when it did."""
    known = noted(folder, step)
    return note(folder, step, now) if is_done or known is None else known


def _asked(answers: dict[str, Any], truth: dict[str, list[str]]) -> Asked:
    stages, found = answers["stages_ms"], answers["found"]
    shares = document_recall(list(found.values()), [truth[name] for name in found])
    return Asked(
        n_queries=len(found),
        n_chunks=median(answers["n_chunks"]),
        latency=percentiles([sum(times.values()) for times in stages]),
        stages_ms={stage: round(fmean(times[stage] for times in stages), 3) for stage in stages[0]},
        faiss_p50_ms=round(median(answers["faiss_ms"]), 3) if answers["faiss_ms"] else None,
        recall=round(fmean(shares), 4),
        lowest_recall=round(min(shares), 4),
        vectors_p50_ms=round(median(answers["vectors_ms"]), 3),
    )


def _record(
    trial: Trial,
    calibration: Calibration,
    neighbours: CandidateLists,
    growth: GrowthCost,
    asked: dict[str, Asked],
    cold: Cold,
    queries_per_second: float,
    memory: dict[str, Memory],
    gflops: float,
) -> ScaleRecord:
    with Snapshot(trial.folder) as snapshot:
        generation = snapshot.generation
        row = snapshot.generation_row
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
            cap_bytes=trial.cap_bytes,
            cap_kind=CAP_KIND if trial.cap_bytes else "",
            k=trial.k,
            threads=trial.threads,
            workers=trial.workers,
            calibration=calibration,
            neighbours=neighbours,
            growth=growth,
            disk=asking.disk_bytes(trial.folder),
            cold=cold,
            asked=asked,
            queries_per_second=queries_per_second,
            memory=memory,
            gflops=gflops,
            origin=trial.origin,
            words_bytes=asking.words_bytes(trial.folder),
            texts="" if trial.real.texts is None else trial.real.texts.stem.partition("@")[0],
        )
