"""Shared parts of studies that train on some corpora and measure on another one: the corpora and the table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from benchmarks.datasets import Dataset, DatasetError, checksum
from benchmarks.markdown import markdown, p_cells
from benchmarks.measuring.measurement import Measurement
from benchmarks.options import log
from benchmarks.prepare import prepared_index
from benchmarks.significance import randomization_p
from engine.index import Index
from engine.training.corpus import TrainingCorpus, read_training_corpus


@dataclass(frozen=True)
class OpenedCorpus:
    """A corpus with its index, which is closed before the next corpus is opened."""

    dataset: Dataset
    label: str  # name@checksum
    index: Index
    encoder: str  # name@fingerprint
    training: TrainingCorpus


def opened_corpora(run: Measurement, names: Sequence[str], encoder: str, split: str) -> Iterator[OpenedCorpus]:
    """Open corpora one by one.

    Raises:
        DatasetError: fewer than two corpora are named, or a corpus is missing.
    """
    if len(names) < 2:
        raise DatasetError("one dataset alone leaves nothing to train on; name at least two")
    for name in names:
        dataset = run.dataset(name, split)
        training = read_training_corpus(dataset.corpus.parent, suffix=dataset.qrels.stem.removeprefix("qrels"))
        with prepared_index(dataset, encoder, run.work, log) as ready:
            yield OpenedCorpus(dataset, f"{dataset.name}@{checksum(dataset)}", ready.index, ready.encoder, training)


class Attempt(Protocol):
    """The result of one method of ranking on one corpus."""

    @property
    def corpus(self) -> str:
        """The corpus that is measured; it was left out of training."""

    @property
    def name(self) -> str:
        """The name of the method."""

    @property
    def n_parameters(self) -> int:
        """The number of trained parameters; 0 without training."""

    @property
    def per_query(self) -> list[float]:
        """The nDCG@10 of each query."""


AttemptT = TypeVar("AttemptT", bound=Attempt)


def attempts_table(
    what: str,
    rows: Sequence[AttemptT],
    base: str,
    *,
    seed: int,
    untested: Collection[str] = (),
    columns: Mapping[str, Callable[[Sequence[AttemptT]], str]] | None = None,
) -> list[str]:
    """A row for each method, a column for each corpus, with the difference to the base method and its p.

    Args:
        what: the head of the first column.
        rows: each method on each corpus.
        base: the method that the others are compared with.
        seed: of the tests.
        untested: methods that are compared without a test.
        columns: further columns, each computed from the rows of one method.
    """
    corpora = list(dict.fromkeys(row.corpus for row in rows))
    names = [base, *dict.fromkeys(row.name for row in rows if row.name != base)]
    of = {(row.name, row.corpus): row for row in rows}
    tested = [name for name in names if name != base and name not in untested]
    cells = {}
    for corpus in corpora:
        values = {name: of[name, corpus].per_query for name in names}
        p_values = p_cells([randomization_p(values[name], values[base], seed=seed) for name in tested])
        p_of = dict(zip(tested, p_values, strict=True))
        for name in names:
            gain = np.mean(values[name]) - np.mean(values[base])
            compared = f" ({gain:+.3f}, {p_of[name]})" if name in p_of else ""
            cells[name, corpus] = f"{np.mean(values[name]):.3f}{compared}"
    lines = []
    for name in names:
        own = [of[name, corpus] for corpus in corpora]
        gain = np.mean([np.mean(row.per_query) - np.mean(of[base, row.corpus].per_query) for row in own])
        size = f"{own[0].n_parameters:,}" if own[0].n_parameters else ""
        more = [column(own) for column in (columns or {}).values()]
        lines.append(
            [name, size, *(cells[name, corpus] for corpus in corpora), "" if name == base else f"{gain:+.3f}", *more]
        )
    counts = [f"{corpus} ({len(of[base, corpus].per_query)})" for corpus in corpora]
    return markdown([what, "Parameters", *counts, "Mean difference", *(columns or {})], lines)
