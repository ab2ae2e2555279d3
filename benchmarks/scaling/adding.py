"""What happens when documents join an index; each function is the work of a process, its answers plain values."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scaling.building import Real
from benchmarks.scaling.folder import grow_folder, prepared_growth
from benchmarks.scaling.growth import Growth
from engine.encoders.loading import load_encoder
from engine.index import Index
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from indexer.building.budget import left_beside
from indexer.building.builder import refresh_generation
from indexer.generation.footprint import Footprint
from indexer.generation.reference import refresh_reference


def add(real: Real, folder: Path, n_documents: int) -> dict[str, Any]:
    """Commit the next documents of the stream that an index was grown by."""
    with Snapshot(folder) as snapshot:
        there = frozenset(snapshot.doc_ids())
    with Snapshot(real.index) as snapshot:
        growth, recipe = prepared_growth(folder, real.source(snapshot), real.seed)
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
    """Open an index, and ask with documents for themselves: seconds to the first answer, and how many come first."""
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

    Memory is what this process may take in all.
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
    """What is known of the generation that is published."""
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
    """Encode some of the real documents by the encoder of their index, once to warm up and once for the clock."""
    with Snapshot(real.index) as snapshot:
        encoder = load_encoder(snapshot.meta["encoder"]["name"])
        drawn = np.random.default_rng(real.seed).permutation(snapshot.n_documents)[:n_documents]
        documents = [document for document, _ in snapshot.documents(np.sort(drawn))]
        encoder.encode_segmented([encoder.segment(document) for document in documents[:1]])
        started = time.perf_counter()
        encoded = encoder.encode_segmented([encoder.segment(document) for document in documents])
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "n_chunks": sum(len(one.chunks) for one in encoded)}
