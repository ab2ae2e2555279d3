"""Grows indexes of given sizes from a real one, and measures building and asking them; a record for each size."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from benchmarks.options import WORK, log, out_option, read_numbers
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS, write_record
from benchmarks.scaling.building import Real
from benchmarks.scaling.measuring import Trial, measure
from benchmarks.scaling.options import grown_options
from benchmarks.scaling.tables import scale_table
from indexer.cli.sizes import parse_bytes

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
    help="Draw the words of made documents from its terms; by default they are those of the originals.",
)
@click.option("--real", "n_real", type=click.IntRange(16), help="Real documents to begin with; all by default.")
@click.option("--cap", "cap_bytes", type=parse_bytes, metavar="SIZE", help="Private memory of each measured process.")
@click.option("--queries", "n_queries", type=click.IntRange(1), help="Asked of each kind.  [default: 100]")
@click.option("--workers", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(1), help="Of a batch.")
@click.option("--quick", is_flag=True, help="A few real documents, grown a little; a record only with --out.")
@grown_options
@out_option
@click.pass_context
def main(
    context: click.Context,
    path: Path,
    chunks: tuple[int, ...],
    texts: Path | None,
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
    seed: int,
    quick: bool,
    work: Path | None,
    out: Path | None,
) -> None:
    """Grow INDEX to one or more sizes, in one folder from small to large, and measure each.

    \b
    Example:
        python -m benchmarks study scale papers.lm --chunks 250000,500000,1000000
        python -m benchmarks study scale papers.lm --words texts.lm --chunks 1000000 --memory 6GiB --cap 6GiB
    """
    origin = origin_of(context, seed)
    real = Real(path, n_real or (QUICK_REAL if quick else None), seed, texts)
    records = []
    with ExitStack() as stack:
        if quick and work is None:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="longmatch-scale-")))
        name, n_there = real.named()
        growths = tuple(n_there * times for times in QUICK_GROWTH)
        sizes = chunks or (growths if quick else DEFAULT_CHUNKS)
        trial = Trial(
            real=real,
            source_name=name,
            folder=(work or WORK) / real.folder_of(name),
            factory=factory,
            recall_floor=recall_floor,
            memory_bytes=memory_bytes,
            cap_bytes=cap_bytes,
            n_queries=n_queries or (QUICK_QUERIES if quick else 100),
            query_chunks=query_chunks,
            k=k,
            threads=threads,
            workers=workers,
            is_quick=quick,
            origin=origin,
        )
        for n_chunks in sorted(sizes):
            records.append(measure(trial, n_chunks, log))
            if out or not quick:
                write_record(records[-1], out or RESULTS)
    click.echo(scale_table(records))
