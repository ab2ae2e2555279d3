"""Builds and searches one index type in a process of its own, and judges what it found in this one.

Memory is that of the type alone: its process holds the rows in their file, and no truth.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

from benchmarks.measuring.isolation import run_forked
from benchmarks.measuring.latency import Percentiles
from benchmarks.measuring.peak import forget_peak, peak_rss_mib, rss_mib
from benchmarks.measuring.thread_limits import limited_threads
from benchmarks.record_file import rebuild
from benchmarks.vectors.asking import answer
from benchmarks.vectors.candidate import Candidate, Library, VectorIndex
from benchmarks.vectors.collection import Collection, rows_in_memory
from benchmarks.vectors.judging import chunk_recall, document_recall
from benchmarks.vectors.record import AnnBuild, AnnPoint, Found
from benchmarks.vectors.sweep import make_index
from benchmarks.vectors.timing import time_searches
from benchmarks.vectors.truth import Truth
from engine.encoders.encoder import Vectors
from engine.store.ann import Ids

_DISTRIBUTIONS = {Library.HNSWLIB: ("hnswlib",), Library.USEARCH: ("usearch",)}
_FAISS_DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cuvs")


@dataclass(frozen=True)
class Conditions:
    """How every type is built and asked."""

    k: int
    threads: int
    build_threads: int
    seed: int


@dataclass(frozen=True)
class Setting:
    """What one setting took and found."""

    setting: str
    chunk: Percentiles
    document: Percentiles | None
    documents: list[list[int]] | None
    deepest: int


@dataclass(frozen=True)
class Built:
    """What the process of one type tells; the rows that it found for single chunks lie in files beside it."""

    is_rescored: bool
    build_seconds: float
    size_bytes: int
    build_peak_mib: float
    search_peak_mib: float
    settings: list[Setting]


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
        ProcessFailed: the process did not come to its end.
    """
    place = folder / "".join(letter if letter.isalnum() else "_" for letter in candidate.name)
    arguments = (candidate, folder, conditions, place)
    told = run_forked(
        measure, *arguments, name=candidate.name, place=place, advice="leave its library out: --libraries"
    )
    built = rebuild(Built, told)
    return AnnBuild(
        library=candidate.library,
        version=version_of(candidate.library),
        factory=candidate.factory,
        is_rescored=built.is_rescored,
        build_seconds=built.build_seconds,
        bytes_per_vector=round(built.size_bytes / len(collection.rows), 1),
        stored_bytes_per_vector=2 * collection.rows.shape[1] if built.is_rescored else 0,
        build_peak_mib=built.build_peak_mib,
        search_peak_mib=built.search_peak_mib,
        points=[_point(one, np.load(_found(place, one.setting)), collection, truth) for one in built.settings],
    )


def _point(one: Setting, found: Ids, collection: Collection, truth: Truth) -> AnnPoint:
    document = None
    if one.document is not None and one.documents is not None:
        document = Found(round(document_recall(one.documents, truth), 4), one.document)
    return AnnPoint(
        one.setting, Found(round(chunk_recall(found, collection, truth), 4), one.chunk), document, one.deepest
    )


def measure(candidate: Candidate, folder: Path, conditions: Conditions, place: Path, told: Path) -> None:
    """Build a type, time it, then let it answer every query; in the process of its own."""
    collection = Collection.load(folder)
    build_threads, width = conditions.build_threads, collection.rows.shape[1]
    index = make_index(candidate, build_threads=build_threads, threads=conditions.threads, seed=conditions.seed)
    with limited_threads(build_threads, width=width):
        before = rss_mib()
        seconds, size_bytes, build_peak = build_and_write(index, rows_in_memory(folder), place)
    with limited_threads(conditions.threads, width=width):
        search_peak, settings = search_all(index, candidate, collection, conditions.k, place)
    built = Built(
        is_rescored=index.is_rescored,
        build_seconds=round(seconds, 3),
        size_bytes=size_bytes,
        build_peak_mib=round(build_peak, 1),
        search_peak_mib=round(search_peak - before, 1),
        settings=settings,
    )
    told.write_text(json.dumps(asdict(built)), "utf-8")


def build_and_write(index: VectorIndex, rows: Vectors, place: Path) -> tuple[float, int, float]:
    """Seconds of building, bytes of the file, and the most resident meanwhile beyond the rows given, in MiB."""
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
) -> tuple[float, list[Setting]]:
    """The most resident in a timed search, and what every setting took and found.

    All settings are timed before the first one answers all queries: what that takes is no part of any search.
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
        settings.append(Setting(setting, one.chunk, one.document, answers.documents, answers.deepest))
    return max(one.peak_mib for one in timed.values()), settings


def _found(place: Path, setting: str) -> Path:
    """The file of the rows that a setting found."""
    return place.with_name(f"{place.name}-{setting}.npy")


def version_of(library: Library) -> str:
    """Of the installed distribution; FAISS's for ours."""
    for distribution in _DISTRIBUTIONS.get(library, _FAISS_DISTRIBUTIONS):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return ""
