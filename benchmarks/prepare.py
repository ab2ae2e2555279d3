"""Builds, or resumes, the index of a dataset in a work folder; the one file here that writes an index."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import Dataset, DatasetError, checksum, read_documents
from benchmarks.records import BuildCost
from engine import Index, load_encoder
from indexer import BuildReport, build


@dataclass(frozen=True)
class Prepared:
    """An open index that holds the whole corpus."""

    index: Index
    encoder: str  # name@fingerprint
    cost: BuildCost


@contextmanager
def prepared_index(dataset: Dataset, encoder_name: str, work: Path, tell: Callable[[str], None]) -> Iterator[Prepared]:
    """Bring the index of `dataset` under an encoder up to date, and open it.

    The folder is named by the checksum of the data and the encoder's fingerprint,
    so that changed data or weights never meet an old index. The cost is that of
    this call: nearly nothing where the index was whole already. `tell` hears a
    line after each commit.

    Raises:
        DatasetError: a document could not be indexed; scores on a part of the corpus are no scores of the task.
    """
    label = f"{encoder_label(encoder_name)}@{load_encoder(encoder_name).fingerprint[:12]}"
    work.mkdir(parents=True, exist_ok=True)
    path = work / f"{dataset.name}@{checksum(dataset)}-{label}.lm"
    # By name, as the index keeps the name to load the encoder again.
    report = build(path, read_documents(dataset), encoder=encoder_name, progress=lambda so_far: tell(_line(so_far)))
    if report.failures:
        first = report.failures[0]
        raise DatasetError(
            f"{len(report.failures)} documents of dataset {dataset.name} were not indexed, the first is "
            f"{first.doc_id!r}: {first.reason}; mend them, or leave them out of {dataset.corpus.name}"
        )
    with Index.open(path) as index:
        yield Prepared(index, label, _cost(report))


def encoder_label(name: str) -> str:
    """The last part of a folder's or a hub's name, fit to be part of a file name."""
    return re.sub(r"[^\w.-]+", "_", Path(name).name).strip("_.-")


def _line(so_far: BuildReport) -> str:
    return f"{so_far.n_seen:,} documents, {so_far.n_tokens:,} tokens, {so_far.seconds:.0f} s"


def _cost(report: BuildReport) -> BuildCost:
    speed = round(report.n_tokens / report.seconds, 1) if report.n_tokens else None
    return BuildCost(round(report.seconds, 1), report.n_tokens, speed)
