"""Builds and searches one index type in a process of its own, and judges its results in this one.

Memory is that of the type alone: its process maps the rows from their file, and does not hold the truth.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring.isolation import forget_peak, peak_rss_mib, rss_mib, run_forked
from benchmarks.measuring.timing import Percentiles, limited_threads
from benchmarks.speed.records import AnnBuild, AnnPoint, Found
from benchmarks.speed.vectors.collection import Collection, Truth, rows_in_memory
from benchmarks.speed.vectors.index_types import Candidate, Conditions, Library, VectorIndex, make_index
from benchmarks.speed.vectors.search import answer, chunk_recall, document_recall, time_searches
from engine.encoders.encoder import Vectors
from engine.store.ann import Ids

_DISTRIBUTIONS = {Library.HNSWLIB: ("hnswlib",), Library.USEARCH: ("usearch",)}
_FAISS_DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cuvs")


def measure_in_process(
    candidate: Candidate, folder: Path, collection: Collection, truth: Truth, conditions: Conditions
) -> AnnBuild:
    """Measure one index type.

    Args:
        candidate: the type and its settings.
        folder: where `collection` was saved.
        collection: loaded from there.
        truth: of the same k.
        conditions: of the run.

    Raises:
        ProcessFailed: the process did not run to its end.
    """
    place = folder / "".join(letter if letter.isalnum() else "_" for letter in candidate.name)
    advice = "leave its library out: --libraries"
    built = run_forked(measure, candidate, folder, conditions, place, name=candidate.name, place=place, advice=advice)
    return AnnBuild(
        library=candidate.library,
        version=version_of(candidate.library),
        factory=candidate.factory,
        is_rescored=built["is_rescored"],
        build_seconds=built["build_seconds"],
        bytes_per_vector=round(built["size_bytes"] / len(collection.rows), 1),
        stored_bytes_per_vector=2 * collection.rows.shape[1] if built["is_rescored"] else 0,
        build_peak_mib=built["build_peak_mib"],
        search_peak_mib=built["search_peak_mib"],
        points=[_point(one, np.load(_found(place, one["setting"])), collection, truth) for one in built["settings"]],
    )


def _point(one: dict[str, Any], rows: Ids, collection: Collection, truth: Truth) -> AnnPoint:
    chunk = Found(round(chunk_recall(rows, collection, truth), 4), Percentiles(**one["chunk"]))
    document = None
    if one["documents"] is not None:
        document = Found(round(document_recall(one["documents"], truth), 4), Percentiles(**one["document"]))
    return AnnPoint(one["setting"], chunk, document, one["deepest"])


def measure(candidate: Candidate, folder: Path, conditions: Conditions, place: Path, written: Path) -> None:
    """Build a type, time its searches, then search with every query; in the process of its own."""
    collection = Collection.load(folder)
    width = collection.rows.shape[1]
    index = make_index(candidate, conditions)
    with limited_threads(conditions.build_threads, width=width):
        before = rss_mib()
        seconds, size_bytes, build_peak = build_and_write(index, rows_in_memory(folder), place)
    with limited_threads(conditions.threads, width=width):
        search_peak, settings = search_all(index, candidate, collection, conditions.k, place)
    built = {
        "is_rescored": index.is_rescored,
        "build_seconds": round(seconds, 3),
        "size_bytes": size_bytes,
        "build_peak_mib": round(build_peak, 1),
        "search_peak_mib": round(search_peak - before, 1),
        "settings": settings,
    }
    written.write_text(json.dumps(built), "utf-8")


def build_and_write(index: VectorIndex, rows: Vectors, place: Path) -> tuple[float, int, float]:
    """Seconds of building, bytes of the file, and peak resident memory beyond the rows given, in MiB."""
    forget_peak()
    before = rss_mib()
    started = time.perf_counter()
    index.build(rows)
    seconds = time.perf_counter() - started
    index.write(place)
    size_bytes = place.stat().st_size
    place.unlink()
    return seconds, size_bytes, peak_rss_mib() - before


def search_all(
    index: VectorIndex, candidate: Candidate, collection: Collection, k: int, place: Path
) -> tuple[float, list[dict[str, Any]]]:
    """Peak resident memory of a timed search, and times and results of every setting; rows are saved beside `place`.

    All settings are timed before the first one answers all queries, so that its memory is not part of any search.
    """
    timed = {}
    for setting in candidate.settings:
        index.set(setting)
        timed[setting] = time_searches(index, collection, k)
    settings = []
    for setting, one in timed.items():
        index.set(setting)
        answers = answer(index, collection, k)
        np.save(_found(place, setting), answers.chunks)
        times = {"chunk": asdict(one.chunk), "document": asdict(one.document) if one.document else None}
        settings.append({"setting": setting, "documents": answers.documents, "deepest": answers.deepest, **times})
    return max(one.peak_mib for one in timed.values()), settings


def _found(place: Path, setting: str) -> Path:
    """The file of the rows that a setting found."""
    return place.with_name(f"{place.name}-{setting}.npy")


def version_of(library: Library) -> str:
    """The version of the installed distribution; that of FAISS for longmatch."""
    for distribution in _DISTRIBUTIONS.get(library, _FAISS_DISTRIBUTIONS):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return ""
