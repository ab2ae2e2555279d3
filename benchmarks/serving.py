"""Serves an index, sends valid and hostile requests from several clients, and records what became of them."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click

from benchmarks.load.clients import load, memory_mib, mixed
from benchmarks.load.record import LoadRecord
from benchmarks.load.requests import valid
from benchmarks.load.table import load_table
from benchmarks.options import log, out_option
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS, write_record
from engine.errors import StorageError
from engine.index import Index

MAX_BYTES = 2**20  # of a body, so that a hostile one is cheap to send
QUICK_SECONDS = 2.0
_THREADS, _CONCURRENCY = 4, 16
_N_TEXTS = 20  # documents of the index whose beginnings are searched with
_TEXT_CHARS = 4_000


@contextmanager
def server(index: Path) -> Iterator[int]:
    """The port of a server of an index that is ready.

    Raises:
        StorageError: it does not start.
    """
    options = ["--port", "0", "--max-bytes", str(MAX_BYTES), "--threads", str(_THREADS)]
    command = [sys.executable, "-P", "-m", "longmatch", "serve", str(index), *options]
    process = subprocess.Popen([*command, "--concurrency", str(_CONCURRENCY)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        lines = [process.stderr.readline(), process.stderr.readline()]
        found = re.search(r"http://127\.0\.0\.1:(\d+)", lines[0])
        if found is None or not lines[1].startswith("ready"):
            raise StorageError(f"the server of {index} does not start: {' '.join(lines)}; run longmatch serve {index}")
        yield int(found[1])
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--clients", "n_clients", default=50, show_default=True, type=click.IntRange(1), help="At the same time.")
@click.option(
    "--seconds", default=60.0, show_default=True, type=click.FloatRange(0, min_open=True), help="Of each row."
)
@click.option("--quick", is_flag=True, help=f"{QUICK_SECONDS:g} seconds a row; a record only where --out is given.")
@click.option("--seed", default=0, show_default=True, help="Of the choice of requests.")
@out_option
@click.pass_context
def main(
    context: click.Context, path: Path, n_clients: int, seconds: float, quick: bool, seed: int, out: Path | None
) -> None:
    """Serve INDEX on the loopback interface; measure a single client, then many, valid and hostile ones mixed.

    \b
    Example:
        python -m benchmarks study serving demo.lm --clients 50 --seconds 60
    """
    origin = origin_of(context, seed)
    folder, started = out or (None if quick else RESULTS), time.perf_counter()
    seconds = min(seconds, QUICK_SECONDS) if quick else seconds
    with Index.open(path) as index:
        doc_ids = index.snapshot.doc_ids()
        texts = [index.document(one).text[:_TEXT_CHARS].encode() for one in doc_ids[:_N_TEXTS]]
    with server(path) as port:
        memory = memory_mib(port)
        log(f"ready with {memory:,.0f} MiB; a single client")
        rows = [load(port, 1, seconds, partial(valid, doc_ids, texts), seed)]
        log(f"{n_clients} clients")
        rows.append(load(port, n_clients, seconds, mixed(doc_ids, texts, MAX_BYTES), seed))
    record = LoadRecord(
        index=path.stem,
        n_documents=len(doc_ids),
        threads=_THREADS,
        concurrency=_CONCURRENCY,
        memory_mib=memory,
        rows=rows,
        seconds=round(time.perf_counter() - started, 1),
        origin=origin,
        is_quick=quick,
    )
    if folder is not None:
        write_record(record, folder)
    click.echo(load_table([record]))
