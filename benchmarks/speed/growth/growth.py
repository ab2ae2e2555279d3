"""Grows indexes of given sizes from a real one, measures building and searching them, and adding documents to one."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log, read_numbers
from benchmarks.program import program
from benchmarks.speed.growth.additions import measure_addition
from benchmarks.speed.growth.folder import Real
from benchmarks.speed.growth.measuring import Trial, measure
from benchmarks.speed.growth.tables import additions_table, scale_table
from engine.store.ann import AUTO
from indexer.cli.sizes import parse_bytes
from indexer.generation.recall import RECALL_FLOOR

DEFAULT_CHUNKS = (1_000_000,)
QUICK_REAL, QUICK_GROWTH, QUICK_QUERIES = 60, (2, 4, 8), 5


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
@click.option(
    "--add",
    "n_added",
    type=click.IntRange(1),
    help="Add this number of documents to a copy of each size, and measure that.",
)
@click.option("--encoded", default=24, type=click.IntRange(0), help="With --add: documents to encode for comparison.")
@click.option("--real", "n_real", type=click.IntRange(16), help="Real documents to begin with; all by default.")
@click.option("--factory", default=AUTO, help="FAISS factory string.")
@click.option("--recall-floor", default=RECALL_FLOOR, help="Least recall of the published generation.")
@click.option("--memory", "memory_bytes", type=parse_bytes, metavar="SIZE", help="Memory budget of publishing.")
@click.option(
    "--cap", "cap_bytes", type=parse_bytes, metavar="SIZE", help="Cap of the private memory of each measured process."
)
@click.option("--queries", "n_queries", type=click.IntRange(1), help="Queries of each kind.  [default: 100]")
@click.option("--query-chunks", default=40, type=click.IntRange(1), help="Approximate chunks of a query.")
@click.option("-k", "--top", "k", default=10, type=click.IntRange(1), help="Targets to return.")
@click.option("--threads", default=os.cpu_count() or 1, type=click.IntRange(1), help="Threads of a search.")
@click.option("--workers", default=os.cpu_count() or 1, type=click.IntRange(1), help="Workers of a batch.")
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
    real = Real(path, n_real or (QUICK_REAL if run.is_quick else None), run.seed, texts)
    name, n_there = real.named()
    sizes = chunks or (tuple(n_there * times for times in QUICK_GROWTH) if run.is_quick else DEFAULT_CHUNKS)
    with ExitStack() as stack:
        work = run.work
        if run.is_quick and run.given_work is None:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="longmatch-growth-")))
        trial = Trial(
            real=real,
            source_name=name,
            folder=work / real.folder_of(name),
            factory=factory,
            recall_floor=recall_floor,
            memory_bytes=memory_bytes,
            cap_bytes=cap_bytes,
            n_queries=n_queries or (QUICK_QUERIES if run.is_quick else 100),
            query_chunks=query_chunks,
            k=k,
            threads=threads,
            workers=workers,
            is_quick=run.is_quick,
            origin=run.origin,
            label=label,
        )
        for n_chunks in sorted(sizes):
            if n_added is None:
                record = measure(trial, n_chunks, log)
                run.publish([record], scale_table)
            else:
                addition = measure_addition(trial, n_chunks, n_added, encoded, log)
                run.publish([addition], additions_table)
