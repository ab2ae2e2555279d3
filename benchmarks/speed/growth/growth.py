"""Grows indexes of given sizes from a real one, measures building and searching them, and adding documents to one.

Each step runs in a process of its own, by a function of `folder` or `queries`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import click

from benchmarks.measuring.isolation import CAP_KIND, Memory, run_fresh
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.measuring.timing import percentiles
from benchmarks.options import log, read_numbers
from benchmarks.prepare import check_vectors
from benchmarks.program import program
from benchmarks.record_file import rebuild
from benchmarks.speed.growth import folder as growing
from benchmarks.speed.growth import queries
from benchmarks.speed.growth.source import COPY_MARK
from benchmarks.speed.growth.tables import additions_table, scale_table
from benchmarks.speed.products import SQUARE, measure_products
from benchmarks.speed.recall import document_recall
from benchmarks.speed.records import (
    AdditionRecord,
    Calibration,
    CandidateLists,
    ColdStart,
    GrowthCost,
    QueryTimes,
    ScaleRecord,
    Stage,
)
from benchmarks.speed.timed import forget_pages
from engine.store.factory import AUTO
from engine.store.snapshot import Snapshot
from indexer.cli.reading import parse_bytes
from indexer.generation.recall import RECALL_FLOOR

DEFAULT_CHUNKS = (1_000_000,)
QUICK_REAL, QUICK_GROWTH, QUICK_QUERIES = 60, (2, 4, 8), 5
FOUND_QUERIES = 20  # documents that were added, and searched with
COSTS_SUFFIX = ".costs.json"


@dataclass(frozen=True)
class Trial:
    """How each size is built and searched."""

    run: Measurement
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
    label: str  # of the records


@dataclass(frozen=True)
class Cost:
    """The cost of one step."""

    seconds: float
    memory: Memory


def build(trial: Trial, n_chunks: int) -> tuple[dict[str, Any], Cost, Cost]:
    """Grow and publish one size, without existing parts; the result of `growing.grow`, and the costs of both steps."""
    folder, cap = trial.folder, trial.cap_bytes
    log(f"{n_chunks:,} chunks: growing")
    grown, memory = run_fresh(growing.grow, trial.real, folder, n_chunks, cap_bytes=cap)
    seconds = grown["generate_seconds"] + grown["commit_seconds"]
    made = _kept_cost(folder, "grow", Cost(seconds, memory), is_done=bool(grown["n_added"]))
    log("publishing")
    how = (trial.factory, trial.memory_bytes, trial.recall_floor)
    new, memory = run_fresh(growing.publish, folder, *how, cap_bytes=cap)
    published = _kept_cost(folder, f"publish {n_chunks}", Cost(new["seconds"], memory), is_done=new["is_new"])
    return grown, made, published


def _kept_cost(folder: Path, step: str, now: Cost, *, is_done: bool) -> Cost:
    """The cost of a step, of this call if it did work, or of the call that did; kept in a file beside the index."""
    path = folder.with_name(folder.name + COSTS_SUFFIX)
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if is_done or step not in known:
        known[step] = asdict(now)
        path.write_text(json.dumps(known), "utf-8")
    return rebuild(Cost, known[step])


def measure(trial: Trial, n_chunks: int) -> ScaleRecord:
    """Build one size, and search it."""
    grown, made, published = build(trial, n_chunks)
    folder, cap = trial.folder, trial.cap_bytes
    log("exact answers")
    which = (trial.n_queries, trial.query_chunks, trial.real.seed)
    exact, _ = run_fresh(queries.exact_answers, folder, *which, trial.k)
    names, truth = exact["names"], exact["found"]
    near, _ = run_fresh(queries.describe, folder, trial.real.seed)
    log("searching")
    forget_pages(folder)
    found, search_memory = run_fresh(queries.latency, folder, names, trial.k, cap_bytes=cap, threads=trial.threads)
    with Snapshot(folder) as snapshot:
        width = snapshot.width
    products, _ = run_fresh(measure_products, [SQUARE], trial.threads, width)
    batch, batch_memory = run_fresh(queries.throughput, folder, list(truth), trial.k, trial.workers, cap_bytes=cap)
    costs = {"grow": made.memory, "publish": published.memory}
    with Snapshot(folder) as snapshot:
        generation, row = snapshot.generation, snapshot.generation_row
        assert generation is not None and row is not None
        return ScaleRecord(
            source=trial.source_name,
            is_quick=trial.run.is_quick,
            n_documents=snapshot.n_documents,
            n_real=sum(COPY_MARK not in name for name in snapshot.doc_ids()),
            n_chunks=snapshot.n_chunks,
            width=width,
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
            calibration=rebuild(Calibration, grown["calibration"]),
            neighbours=rebuild(CandidateLists, near),
            growth=GrowthCost(
                round(grown["generate_seconds"], 1), round(grown["commit_seconds"], 1), round(published.seconds, 1)
            ),
            disk=queries.disk_bytes(folder),
            cold=ColdStart(round(found["open_seconds"], 3), round(found["first_seconds"], 3)),
            asked={kind: _asked(answers, truth) for kind, answers in found["asked"].items() if answers["found"]},
            queries_per_second=round(batch["queries_per_second"], 2),
            memory={**costs, "search": search_memory, "batch": batch_memory},
            gflops=float(products[f"float32 {SQUARE.name}"]),
            origin=trial.run.origin,
            words_bytes=queries.words_bytes(folder),
            texts="" if trial.real.texts is None else trial.real.texts.stem.partition("@")[0],
            label=trial.label,
        )


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


def measure_addition(trial: Trial, n_chunks: int, n_documents: int, n_encoded: int) -> AdditionRecord:
    """Build one size, add documents to a copy of it, and encode some real ones for comparison."""
    _, _, published = build(trial, n_chunks)
    with _copy(trial.folder) as folder, Snapshot(folder) as snapshot:
        n_before, n_chunks_before = snapshot.n_documents, snapshot.n_chunks
        drawn = queries.draw_names(snapshot, trial.n_queries, trial.query_chunks, trial.real.seed)
        names = {"all": [name for members in drawn.values() for name in members]}
        log("searching before")
        before = _stage(trial, folder, names)
        log(f"adding {n_documents:,} documents")
        added, _ = run_fresh(growing.add, trial.real, folder, n_documents)
        asked_for = added["names"][:: max(1, len(added["names"]) // FOUND_QUERIES)]
        found, _ = run_fresh(queries.find, folder, asked_for, threads=trial.threads)
        committed = _stage(trial, folder, names)
        log("joining")
        joined, _ = run_fresh(growing.join, folder, trial.factory, trial.memory_bytes, trial.recall_floor)
        after = _stage(trial, folder, names)
        factory = growing.generation(folder)["factory"]
    encode_seconds = None
    if n_encoded:
        encoded, _ = run_fresh(queries.encode, trial.real, n_encoded, threads=trial.threads)
        encode_seconds = round(encoded["seconds"] / encoded["n_chunks"] * added["n_chunks"], 1)
    return AdditionRecord(
        source=trial.source_name,
        is_quick=trial.run.is_quick,
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
        build_seconds=round(published.seconds, 1),
        encode_seconds=encode_seconds,
        before=before,
        committed=committed,
        after=after,
        n_queries=len(names["all"]),
        k=trial.k,
        threads=trial.threads,
        origin=trial.run.origin,
    )


def _stage(trial: Trial, folder: Path, names: dict[str, list[str]]) -> Stage:
    found, _ = run_fresh(queries.latency, folder, names, trial.k, threads=trial.threads)
    times = [sum(stages.values()) for stages in found["asked"]["all"]["stages_ms"]]
    now = growing.generation(folder)
    return Stage(percentiles(times), now["n_vectors"], now["nprobe"], round(now["recall"], 4))


@contextmanager
def _copy(folder: Path) -> Iterator[Path]:
    """A temporary copy of an index and of its recipe, beside the index."""
    copied = folder.with_name(f"added-{folder.name}")
    _remove(copied)
    try:
        shutil.copytree(folder, copied)
        shutil.copy(growing.recipe_path(folder), growing.recipe_path(copied))
        yield copied
    finally:
        _remove(copied)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    growing.recipe_path(folder).unlink(missing_ok=True)


_CORES = os.cpu_count() or 1
_COUNT = click.IntRange(1)


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--chunks", callback=read_numbers, help=f"Sizes, separated by commas.  [default: {DEFAULT_CHUNKS[0]}]")
@click.option(
    "--words",
    "texts",
    type=click.Path(exists=True, path_type=Path),
    metavar="INDEX",
    help="Index whose terms are the words of synthetic documents; by default they have the words of their originals.",
)
@click.option("--add", "n_added", type=_COUNT, help="Documents to add to a copy of each size, and to measure.")
@click.option("--encoded", default=24, type=click.IntRange(0), help="With --add: documents to encode for comparison.")
@click.option("--real", "n_real", type=click.IntRange(16), help="Real documents to begin with; all by default.")
@click.option("--factory", default=AUTO, help="FAISS factory string.")
@click.option("--recall-floor", default=RECALL_FLOOR, help="Least recall of the published generation.")
@click.option("--memory", "memory_bytes", type=parse_bytes, metavar="SIZE", help="Memory budget of publishing.")
@click.option("--cap", "cap_bytes", type=parse_bytes, metavar="SIZE", help="Cap of the private memory of a process.")
@click.option("--queries", "n_queries", type=_COUNT, help="Queries of each kind.  [default: 100]")
@click.option("--query-chunks", default=40, type=_COUNT, help="Approximate chunks of a query.")
@click.option("-k", "--top", "k", default=10, type=_COUNT, help="Targets to return.")
@click.option("--threads", default=_CORES, type=_COUNT, help="Threads of a search.")
@click.option("--workers", default=_CORES, type=_COUNT, help="Workers of a batch.")
@click.option("--label", default="", help="Suffix of the name of the record, for example the processor.")
@measurement(
    seed="Seed of growth and queries.",
    quick="A few real documents, grown a little",
    work="Folder for grown indexes; kept and resumed.",
)
def main(
    run: Measurement,
    path: Path,
    chunks: tuple[int, ...],
    texts: Path | None,
    n_added: int | None,
    encoded: int,
    n_real: int | None,
    factory: str,
    recall_floor: float,
    memory_bytes: int | None,
    cap_bytes: int | None,
    n_queries: int | None,
    query_chunks: int,
    k: int,
    threads: int,
    workers: int,
    label: str,
) -> None:
    """Grow INDEX to one or more sizes, in one folder from small to large, and measure each.

    With --add each size is measured before and after documents join a copy of it.

    \b
    Example:
        python -m benchmarks study growth papers.lm --chunks 250000,500000,1000000
        python -m benchmarks study growth papers.lm --words texts.lm --chunks 1000000 --memory 6GiB --cap 6GiB
        python -m benchmarks study growth papers.lm --chunks 1000000 --add 1000
    """
    check_vectors(path)
    real = growing.Real(path, n_real or (QUICK_REAL if run.is_quick else None), run.seed, texts)
    name, n_there = real.named()
    sizes = chunks or (tuple(n_there * times for times in QUICK_GROWTH) if run.is_quick else DEFAULT_CHUNKS)
    n_queries = n_queries or (QUICK_QUERIES if run.is_quick else 100)
    with run.folder() if run.is_quick else nullcontext(run.work) as work:
        folder = work / real.folder_of(name)
        limits = (factory, recall_floor, memory_bytes, cap_bytes)
        trial = Trial(run, real, name, folder, *limits, n_queries, query_chunks, k, threads, workers, label)
        for n_chunks in sorted(sizes):
            if n_added is None:
                run.publish([measure(trial, n_chunks)], scale_table)
            else:
                run.publish([measure_addition(trial, n_chunks, n_added, encoded)], additions_table)
