"""Shared parts of studies that train on some corpora and measure on another one: the corpora and the table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
import numpy as np

from benchmarks.datasets import Dataset, DatasetError, checksum
from benchmarks.markdown import markdown, p_cells
from benchmarks.measuring.measurement import Measurement
from benchmarks.options import log
from benchmarks.prepare import prepared_index
from benchmarks.significance import randomization_p
from engine.index import Index
from engine.training.corpus import TrainingCorpus, read_training_corpus

if TYPE_CHECKING:
    from benchmarks.frozen.document_layers import LayerRow
    from benchmarks.frozen.second_stage import RerankerRow
    from benchmarks.frozen.term_vectors import TermRow


@dataclass(frozen=True)
class OpenedCorpus:
    """A corpus with its index, which is closed before the next corpus is opened."""

    dataset: Dataset
    label: str  # name@checksum
    index: Index
    encoder: str  # name@fingerprint
    training: TrainingCorpus


def left_out_options(function: Callable[..., None]) -> Callable[..., None]:
    """The arguments of a study that leaves out each corpus in turn: the corpora, the encoder and the split."""
    for option in (
        click.option("--split", default="valid", help="Split to search with."),
        click.option(
            "--encoder", default="all-MiniLM-L6-v2", help="Encoder of the indexes; one that was trained on no DATASET."
        ),
        click.argument("names", nargs=-1, required=True, metavar="DATASET..."),
    ):
        function = option(function)
    return function


def opened_corpora(run: Measurement, names: Sequence[str], encoder: str, split: str) -> Iterator[OpenedCorpus]:
    """Open corpora one by one, at least two; a name that no dataset has is an error before the first is encoded."""
    if len(names) < 2:
        raise DatasetError("one dataset alone leaves nothing to train on; name at least two")
    for dataset in [run.dataset(name, split) for name in names]:
        training = read_training_corpus(dataset.corpus.parent, suffix=dataset.qrels.stem.removeprefix("qrels"))
        with prepared_index(dataset, encoder, run.work, log) as ready:
            yield OpenedCorpus(dataset, f"{dataset.name}@{checksum(dataset)}", ready.index, ready.encoder, training)


def attempts_table(
    what: str,
    rows: Sequence[LayerRow | RerankerRow | TermRow],
    base: str,
    *,
    seed: int,
    untested: Collection[str] = (),
    columns: Mapping[str, Mapping[str, str]] | None = None,
) -> list[str]:
    """A row for each method, a column for each corpus, with the difference to the base method and its p.

    Args:
        what: the head of the first column.
        rows: each method on each corpus.
        base: the method that the others are compared with.
        seed: of the tests.
        untested: methods that are compared without a test.
        columns: further columns, as cells by method.
    """
    corpora = list(dict.fromkeys(row.corpus for row in rows))
    names = [base, *dict.fromkeys(row.name for row in rows if row.name != base)]
    values = {(row.name, row.corpus): row.per_query for row in rows}
    sizes = {row.name: f"{row.n_parameters:,}" if row.n_parameters else "" for row in rows}
    tested = [name for name in names if name != base and name not in untested]
    p_of: dict[tuple[str, str], str] = {}
    for corpus in corpora:
        ps = p_cells([randomization_p(values[name, corpus], values[base, corpus], seed=seed) for name in tested])
        p_of |= {(name, corpus): p for name, p in zip(tested, ps, strict=True)}
    lines = []
    for name in names:
        gains = {corpus: np.mean(values[name, corpus]) - np.mean(values[base, corpus]) for corpus in corpora}
        cells = []
        for corpus, gain in gains.items():
            compared = f" ({gain:+.3f}, {p_of[name, corpus]})" if name in tested else ""
            cells.append(f"{np.mean(values[name, corpus]):.3f}{compared}")
        difference = "" if name == base else f"{np.mean(list(gains.values())):+.3f}"
        lines.append([name, sizes[name], *cells, difference, *(of[name] for of in (columns or {}).values())])
    counts = [f"{corpus} ({len(values[base, corpus])})" for corpus in corpora]
    return markdown([what, "Parameters", *counts, "Mean difference", *(columns or {})], lines)
