"""Adds documents to a copy of a grown index, follows what queries see and take, and puts it into a record."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measuring.isolation import run_fresh
from benchmarks.measuring.latency import percentiles
from benchmarks.scaling import adding, asking
from benchmarks.scaling.addition_record import AdditionRecord, Stage
from benchmarks.scaling.folder import recipe_path
from benchmarks.scaling.measuring import Trial, build
from engine.store.snapshot import Snapshot

FOUND_QUERIES = 20  # documents that were added, asked with themselves


def measure_addition(
    trial: Trial, n_chunks: int, n_documents: int, n_encoded: int, log: Callable[[str], None]
) -> AdditionRecord:
    """Build an index of a size, unless it is there, and add documents to a copy of it.

    Args:
        trial: how it is built and asked.
        n_chunks: of the index before.
        n_documents: that are added.
        n_encoded: real documents that are encoded for comparison; 0 for none.
        log: gets one line a step.

    Raises:
        EngineError: as of `benchmarks.scaling.measuring.build`.
    """
    built = build(trial, n_chunks, log)
    with _copy(trial.folder) as folder, Snapshot(folder) as snapshot:
        n_before, n_chunks_before = snapshot.n_documents, snapshot.n_chunks
        drawn = asking.draw_names(snapshot, trial.n_queries, trial.query_chunks, trial.real.seed)
        names = {"all": [name for members in drawn.values() for name in members]}
        log("asking before")
        before = _stage(trial, folder, names)
        log(f"adding {n_documents:,} documents")
        added, _ = run_fresh(adding.add, trial.real, folder, n_documents)
        asked_for = added["names"][:: max(1, len(added["names"]) // FOUND_QUERIES)]
        found, _ = run_fresh(adding.find, folder, asked_for, threads=trial.threads)
        committed = _stage(trial, folder, names)
        log("joining")
        joined, _ = run_fresh(adding.join, folder, trial.factory, trial.memory_bytes, trial.recall_floor)
        after = _stage(trial, folder, names)
        factory = adding.generation(folder)["factory"]
    return AdditionRecord(
        source=trial.source_name,
        is_quick=trial.is_quick,
        n_documents=n_before,
        n_chunks=n_chunks_before,
        factory=factory,
        n_added=len(added["names"]),
        n_added_chunks=added["n_chunks"],
        commit_seconds=round(added["seconds"], 2),
        answer_seconds=round(found["seconds"], 3),
        n_asked=len(asked_for),
        n_found=found["n_found"],
        outcome=joined["outcome"],
        join_seconds=round(joined["seconds"], 2),
        build_seconds=round(built.published.seconds, 1),
        encode_seconds=_encode_seconds(trial, n_encoded, added["n_chunks"]),
        before=before,
        committed=committed,
        after=after,
        n_queries=len(names["all"]),
        k=trial.k,
        threads=trial.threads,
        origin=trial.origin,
    )


def _stage(trial: Trial, folder: Path, names: dict[str, list[str]]) -> Stage:
    told, _ = run_fresh(asking.latency, folder, names, trial.k, threads=trial.threads)
    times = [sum(stages.values()) for stages in told["asked"]["all"]["stages_ms"]]
    now: dict[str, Any] = adding.generation(folder)
    return Stage(percentiles(times), now["n_vectors"], now["nprobe"], round(now["recall"], 4))


def _encode_seconds(trial: Trial, n_encoded: int, n_chunks: int) -> float | None:
    if not n_encoded:
        return None
    told, _ = run_fresh(adding.encode, trial.real, n_encoded, threads=trial.threads)
    seconds_a_chunk: float = told["seconds"] / told["n_chunks"]
    return round(seconds_a_chunk * n_chunks, 1)


@contextmanager
def _copy(folder: Path) -> Iterator[Path]:
    """An index beside another, with all that belongs to it, for as long as it is needed."""
    copied = folder.with_name(f"added-{folder.name}")
    _remove(copied)
    try:
        shutil.copytree(folder, copied)
        shutil.copy(recipe_path(folder), recipe_path(copied))
        yield copied
    finally:
        _remove(copied)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    recipe_path(folder).unlink(missing_ok=True)
