"""Measures the time until an index is open and has given its first answer, and the bytes that it reads."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.record_file import rebuild
from benchmarks.speed.commands import run_python
from benchmarks.speed.records import FirstAnswerRecord, FirstAnswers
from engine.index import Index
from engine.store.catalog import CATALOG_FILE
from indexer.generation.footprint import folder_bytes

SECONDS = 300  # in which a process must end
_HEAD = [
    *("Index", "Documents", "Chunks", "Catalog, MB", "Cache"),
    *("Open, ms", "Open, cpu ms", "Read to open, MB"),
    *("First answer, ms", "First answer, cpu ms", "Read in total, MB"),
]
_NOTE = (
    "Each figure is the smallest of {runs} processes, without imports. The query is a document of the index. Cold: no "
    "file of the index is in the page cache. cpu: processor time. Read: from the disk, including mapped files."
)


def forget_pages(folder: Path) -> None:
    """Drop the files of a folder from the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def first_answers(path: Path, doc_ids: Sequence[str], *, is_cold: bool) -> FirstAnswers:
    """Open and search an index in a process for each document."""
    found: list[dict[str, float]] = []
    for doc_id in doc_ids:
        if is_cold:
            forget_pages(path)
        command = ["-m", "benchmarks.speed.answering", str(path), doc_id]
        found.append(json.loads(run_python(command, f"the first answer of {path}", patience=SECONDS)))
        log(f"{'cold' if is_cold else 'warm'}: answered after {found[-1]['answer_ms']} ms")
    return rebuild(FirstAnswers, {name: [one[name] for one in found] for name in found[0]})


def first_answer_table(records: Sequence[FirstAnswerRecord]) -> str:
    """Two rows for each index."""
    rows = []
    for record in sorted(records, key=lambda one: (one.n_chunks, one.n_documents)):
        index = [f"`{record.index}`", f"{record.n_documents:,}", f"{record.n_chunks:,}"]
        index.append(f"{record.catalog_bytes / 1e6:,.1f}")
        for name, found in (("cold", record.cold), ("warm", record.warm)):
            opening = [f"{min(found.open_ms):,.0f}", f"{min(found.open_cpu_ms):,.0f}"]
            opening.append(f"{min(found.open_bytes) / 1e6:,.1f}")
            answer = [f"{min(found.answer_ms):,.0f}", f"{min(found.answer_cpu_ms):,.0f}"]
            answer.append(f"{min(found.answer_bytes) / 1e6:,.1f}")
            rows.append([*index, name, *opening, *answer])
    n_runs = min(len(one.open_ms) for record in records for one in (record.cold, record.warm))
    return "\n".join([*markdown(_HEAD, rows), "", _NOTE.format(runs=n_runs), "", *origins(records)])


@program
@click.argument("path", metavar="INDEX", type=click.Path(exists=True, path_type=Path))
@click.option("--name", help="Name of the index in the table.  [default: that of the folder]")
@click.option("--runs", "n_runs", default=5, type=click.IntRange(1), help="Processes to measure, cold and warm each.")
@measurement(seed="Seed of the documents to search with.")
def main(run: Measurement, path: Path, name: str | None, n_runs: int) -> None:
    """Open INDEX and search it once, in processes of their own, with and without its files in the page cache.

    \b
    Example:
        python -m benchmarks study first_answer papers.lm --runs 5
    """
    with Index.open(path, store=False) as index:
        n_documents, n_chunks, names = index.n_documents, index.n_chunks, index.snapshot.doc_ids()
    chosen = np.random.default_rng(run.seed).choice(len(names), n_runs)
    doc_ids = [names[int(at)] for at in chosen]
    record = FirstAnswerRecord(
        index=name or path.stem,
        n_documents=n_documents,
        n_chunks=n_chunks,
        catalog_bytes=(path / CATALOG_FILE).stat().st_size,
        index_bytes=folder_bytes(path),
        cold=first_answers(path, doc_ids, is_cold=True),
        warm=first_answers(path, doc_ids, is_cold=False),
        origin=run.origin,
    )
    run.publish([record], first_answer_table)
