"""Adds documents to a large index: what that takes, when queries see them, what it does to their time and recall."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from benchmarks.options import WORK, log, out_option
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS, write_record
from benchmarks.scaling.additions import measure_addition
from benchmarks.scaling.additions_table import additions_table
from benchmarks.scaling.building import Real
from benchmarks.scaling.measuring import Trial
from benchmarks.scaling.options import grown_options

QUICK_REAL, QUICK_CHUNKS, QUICK_ADDED, QUICK_QUERIES = 60, 700, 20, 3


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--chunks", "n_chunks", type=click.IntRange(1), help="Before they come.  [default: 1000000]")
@click.option("--documents", "n_documents", type=click.IntRange(1), help="That are added.  [default: 1000]")
@click.option("--queries", "n_queries", type=click.IntRange(1), help="Real, and as many made.  [default: 50]")
@click.option("--encoded", default=24, show_default=True, type=click.IntRange(0), help="Encoded for comparison.")
@click.option("--quick", is_flag=True, help="A few documents among few; a record only with --out.")
@grown_options
@out_option
@click.pass_context
def main(
    context: click.Context,
    path: Path,
    n_chunks: int | None,
    n_documents: int | None,
    factory: str,
    recall_floor: float,
    memory_bytes: int | None,
    n_queries: int | None,
    query_chunks: int,
    k: int,
    threads: int,
    encoded: int,
    seed: int,
    quick: bool,
    work: Path | None,
    out: Path | None,
) -> None:
    """Grow INDEX to a size as `scale` does, and add documents to a copy of that.

    \b
    Example:
        python -m benchmarks study additions papers.lm --chunks 1000000 --documents 1000
    """
    origin = origin_of(context, seed)
    real = Real(path, QUICK_REAL if quick else None, seed)
    with ExitStack() as stack:
        if quick and work is None:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="longmatch-additions-")))
        name, _ = real.named()
        trial = Trial(
            real=real,
            source_name=name,
            folder=(work or WORK) / real.folder_of(name),
            factory=factory,
            recall_floor=recall_floor,
            memory_bytes=memory_bytes,
            cap_bytes=None,
            n_queries=n_queries or (QUICK_QUERIES if quick else 50),
            query_chunks=query_chunks,
            k=k,
            threads=threads,
            workers=1,
            is_quick=quick,
            origin=origin,
        )
        before = n_chunks or (QUICK_CHUNKS if quick else 1_000_000)
        n_added = n_documents or (QUICK_ADDED if quick else 1_000)
        record = measure_addition(trial, before, n_added, encoded, log)
    if out or not quick:
        write_record(record, out or RESULTS)
    click.echo(additions_table([record]))
