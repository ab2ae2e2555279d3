"""Measures the cost of checksums of catalog rows: opening and querying with and without, in turns, in one process."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

import click
import numpy as np

from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.store.records import RowChecksRecord
from benchmarks.synthetic import LONG, documents
from engine.index import Index
from engine.store.catalog import CATALOG_FILE
from engine.store.seal import break_seal
from indexer.building.builder import build

_N_QUERIES, _N_ROUNDS = 5, 15


@contextmanager
def without_checks() -> Iterator[None]:
    """Skip every comparison of a row with its checksum."""
    with ExitStack() as patches:
        for name in ("check_opened", "check_roster_table", "check_catalog"):
            patches.enter_context(patch(f"engine.store.snapshot.{name}", lambda *_: None))
        patches.enter_context(patch("engine.store.listing.has_checks", lambda _: False))
        yield


def opening_and_query(path: Path, doc_ids: list[str]) -> tuple[float, float]:
    """Processor seconds of one opening, and of the mean query after it."""
    started = time.process_time()
    with Index.open(path) as index:
        opened = time.process_time()
        for doc_id in doc_ids:
            index.search_id(doc_id)
        return opened - started, (time.process_time() - opened) / len(doc_ids)


def compared(path: Path, doc_ids: list[str], n_rounds: int) -> dict[str, tuple[float, float]]:
    """Median milliseconds with and without checks, of opening and of a query; the two take turns."""
    times: dict[str, list[tuple[float, float]]] = {"with": [], "without": []}
    for number in range(n_rounds + 1):
        for name in ("with", "without") if number % 2 else ("without", "with"):
            with without_checks() if name == "without" else nullcontext():
                times[name].append(opening_and_query(path, doc_ids))
    medians = {name: np.median(np.array(found[1:]), axis=0) * 1000 for name, found in times.items()}  # first: warm-up
    return {
        step: (round(float(medians["with"][place]), 2), round(float(medians["without"][place]), 2))
        for place, step in enumerate(("opening", "query"))
    }


@program
@click.option("--documents", "n_documents", default=1000, type=click.IntRange(_N_QUERIES))
@measurement(seed="Seed of the synthetic documents.", work="Folder to work in; by default a temporary one.")
def main(run: Measurement, n_documents: int) -> None:
    """Measure what checksums of catalog rows cost an index of words, sealed and unsealed, in processor time.

    \b
    Example:
        python -m benchmarks study row_checks --documents 1000
    """
    with tempfile.TemporaryDirectory(prefix="longmatch-", dir=run.given_work) as folder:
        sealed, unsealed = Path(folder) / "sealed.lm", Path(folder) / "unsealed.lm"
        made = documents(LONG, n_documents, run.seed)
        doc_ids = [f"{LONG.name}-{number:06d}" for number in range(_N_QUERIES)]
        build(sealed, made, encode="none", language="english")
        shutil.copytree(sealed, unsealed)
        break_seal(unsealed / CATALOG_FILE)
        log("indexed")
        record = RowChecksRecord(
            n_documents=n_documents,
            catalog_bytes=(sealed / CATALOG_FILE).stat().st_size,
            n_rounds=_N_ROUNDS,
            sealed=compared(sealed, doc_ids, _N_ROUNDS),
            unsealed=compared(unsealed, doc_ids, _N_ROUNDS),
            origin=run.origin,
        )
    run.keep(record)
    click.echo("\n".join(record.promises))
