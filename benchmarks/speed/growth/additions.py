"""Adds documents to a copy of a grown index, and records the time and the recall of queries at each stage.

`add`, `find`, `join` and `encode` run in processes of their own; they return plain values.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring.isolation import run_fresh
from benchmarks.measuring.timing import percentiles
from benchmarks.speed.growth import queries
from benchmarks.speed.growth.folder import Real, grow_folder, prepared_growth, recipe_path
from benchmarks.speed.growth.measuring import Trial, build
from benchmarks.speed.growth.stream import Growth
from benchmarks.speed.records import AdditionRecord, Stage
from engine.index import Index
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from indexer.building.budget import left_beside
from indexer.building.builder import refresh_generation
from indexer.generation.footprint import Footprint
from indexer.generation.reference import refresh_reference

FOUND_QUERIES = 20  # documents that were added, and searched with


def add(real: Real, folder: Path, n_documents: int) -> dict[str, Any]:
    """Commit the next documents of the stream that an index was grown by."""
    with Snapshot(folder) as snapshot:
        there = frozenset(snapshot.doc_ids())
    with Snapshot(real.index) as snapshot:
        growth, recipe = prepared_growth(folder, real.source(snapshot), real.seed, texts=real.text_model())
        grown, _ = grow_folder(folder, growth, recipe, _chunks_of(growth, len(there) + n_documents))
    with Snapshot(folder) as snapshot:
        names = [name for name in snapshot.doc_ids() if name not in there]
        n_chunks = snapshot.chunk_counts()
    return {
        "seconds": grown.commit_seconds - recipe.commit_seconds,
        "names": names,
        "n_chunks": sum(n_chunks[name] for name in names),
    }


def _chunks_of(growth: Growth, n_documents: int) -> int:
    """Chunks of the first documents of the stream."""
    n_copies = -(-n_documents // len(growth.source))
    order = growth.order(n_copies * int(growth.source.n_chunks.sum()))
    return int(growth.source.n_chunks[order.originals[:n_documents]].sum())


def find(folder: Path, names: list[str]) -> dict[str, Any]:
    """Open an index, and search with documents for themselves: seconds to the first answer, and how many rank first."""
    started = time.perf_counter()
    with Index.open(folder) as index:
        searcher = index.searcher()
        answers = (searcher.search(index.stored_query(name), k=1) for name in names)
        first = next(answers)
        seconds = time.perf_counter() - started
        found = [first, *answers]
    n_found = sum(hit.doc_id == name for name, result in zip(names, found, strict=True) for hit in result.hits)
    return {"seconds": seconds, "n_found": n_found}


def join(folder: Path, factory: str, memory_bytes: int | None, recall_floor: float) -> dict[str, Any]:
    """Bring reference and generation up to date as `longmatch index` does after its last commit.

    `memory_bytes` is the budget of this process in all.
    """
    before = generation(folder)
    with Writer(folder) as writer:
        left = left_beside(memory_bytes, Footprint())
        started = time.perf_counter()
        refresh_reference(writer, lambda _: None)
        refresh_generation(writer, factory, left_bytes=left, recall_floor=recall_floor)
        seconds = time.perf_counter() - started
    after = generation(folder)
    if after["number"] == before["number"]:
        outcome = "scanned"
    else:
        outcome = "joined" if after["n_trained"] == before["n_trained"] else "built anew"
    return {"seconds": seconds, "outcome": outcome}


def generation(folder: Path) -> dict[str, Any]:
    """The values of the published generation."""
    with Snapshot(folder) as snapshot:
        row = snapshot.generation_row
        assert row is not None
        trained = snapshot.meta.get("trained_vectors", row.n_vectors)
        return {
            "number": row.id,
            "factory": row.factory,
            "n_vectors": row.n_vectors,
            "n_trained": trained,
            "nprobe": row.nprobe,
            "recall": row.recall,
        }


def encode(real: Real, n_documents: int) -> dict[str, Any]:
    """Encode some of the real documents by the encoder of their index; one document first warms up."""
    from engine.encoders.loading import load_encoder  # imports torch, which the other stages do not need

    with Snapshot(real.index) as snapshot:
        encoder = load_encoder(snapshot.meta["encoder"]["name"])
        drawn = np.random.default_rng(real.seed).permutation(snapshot.n_documents)[:n_documents]
        documents = [document for document, _ in snapshot.documents(np.sort(drawn))]
        encoder.encode_segmented([encoder.segment(document) for document in documents[:1]])
        started = time.perf_counter()
        encoded = encoder.encode_segmented([encoder.segment(document) for document in documents])
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "n_chunks": sum(len(one.chunks) for one in encoded)}


def measure_addition(
    trial: Trial, n_chunks: int, n_documents: int, n_encoded: int, log: Callable[[str], None]
) -> AdditionRecord:
    """Build an index of a size, unless it is there, and add documents to a copy of it.

    Args:
        trial: how it is built and searched.
        n_chunks: of the index before.
        n_documents: that are added.
        n_encoded: real documents that are encoded for comparison; 0 for none.
        log: gets one line a step.

    Raises:
        EngineError: as in `benchmarks.speed.growth.measuring.build`.
    """
    built = build(trial, n_chunks, log)
    with _copy(trial.folder) as folder, Snapshot(folder) as snapshot:
        n_before, n_chunks_before = snapshot.n_documents, snapshot.n_chunks
        drawn = queries.draw_names(snapshot, trial.n_queries, trial.query_chunks, trial.real.seed)
        names = {"all": [name for members in drawn.values() for name in members]}
        log("asking before")
        before = _stage(trial, folder, names)
        log(f"adding {n_documents:,} documents")
        added, _ = run_fresh(add, trial.real, folder, n_documents)
        asked_for = added["names"][:: max(1, len(added["names"]) // FOUND_QUERIES)]
        found, _ = run_fresh(find, folder, asked_for, threads=trial.threads)
        committed = _stage(trial, folder, names)
        log("joining")
        joined, _ = run_fresh(join, folder, trial.factory, trial.memory_bytes, trial.recall_floor)
        after = _stage(trial, folder, names)
        factory = generation(folder)["factory"]
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
    found, _ = run_fresh(queries.latency, folder, names, trial.k, threads=trial.threads)
    times = [sum(stages.values()) for stages in found["asked"]["all"]["stages_ms"]]
    now: dict[str, Any] = generation(folder)
    return Stage(percentiles(times), now["n_vectors"], now["nprobe"], round(now["recall"], 4))


def _encode_seconds(trial: Trial, n_encoded: int, n_chunks: int) -> float | None:
    if not n_encoded:
        return None
    found, _ = run_fresh(encode, trial.real, n_encoded, threads=trial.threads)
    seconds_a_chunk: float = found["seconds"] / found["n_chunks"]
    return round(seconds_a_chunk * n_chunks, 1)


@contextmanager
def _copy(folder: Path) -> Iterator[Path]:
    """A temporary copy of an index and of its recipe, beside the index."""
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
