"""Measures whether layers over frozen chunk vectors give better document vectors than the mean, on an unseen corpus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import click
import numpy as np

from benchmarks.frozen.attempts import attempts_table, left_out_options, opened_corpora
from benchmarks.frozen.corpora import POWER, FrozenCorpus, Whitening, frozen_corpus, unit
from benchmarks.frozen.training import document_vectors, train
from benchmarks.markdown import origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.record_file import Recorded
from indexer.origin import Origin

BASE = f"mean, whitened by {POWER}"
# Layer, objective and learning rate.
ATTEMPTS = (
    *(("linear", "pairs", 3e-4), ("two layers", "pairs", 1e-3), ("topics", "pairs", 1e-3)),
    *(("attention", "pairs", 3e-3), ("attention", "ranking", 3e-3)),
    *(("gate", "pairs", 1e-3), ("gate", "sections", 1e-3), ("gate", "ranking", 1e-3)),
    *(("smith", "pairs", 3e-4), ("smith", "sections", 3e-4), ("smith", "ranking", 3e-4)),
    *(("colde", "pairs", 1e-3), ("colde", "sections", 1e-3), ("colde", "ranking", 1e-3)),
)
_RANKED = 200  # training queries of each corpus whose targets are ranked by the joint score
_NOTE = (
    "nDCG@10 on {split} queries by the cosine of document vectors, which are whitened by the power {power} of the "
    "variance over the corpus. The layer for a corpus was trained on the other corpora, for {steps} steps. In "
    "parentheses: the difference from the whitened mean of all chunks, and p of a paired randomisation test, adjusted "
    "by Holm's method over the attempts on a corpus."
)


@dataclass(frozen=True)
class LayerRow:
    """The result of one method of making document vectors on one corpus."""

    corpus: str
    layer: str  # of `LAYERS`; without training, the name of the method
    objective: str  # of `OBJECTIVES`; "" without training
    n_parameters: int
    n_documents: int  # read in training, with repetitions
    first_loss: float
    last_loss: float
    per_query: list[float]  # nDCG@10

    @property
    def name(self) -> str:
        """The name of the attempt."""
        return f"{self.layer}, {self.objective}" if self.objective else self.layer


@dataclass(frozen=True)
class LayersRecord(Recorded, kind="document_layers", file="document-layers-{encoder_name}-{split}"):
    """Document vectors by trained layers over frozen chunk vectors, with each corpus left out of the training."""

    datasets: list[str]  # name@checksum
    encoder: str  # name@fingerprint, of the chunk vectors
    encoder_name: str
    split: str
    steps: int
    rows: list[LayerRow]
    seconds: float
    origin: Origin


def untrained_rows(corpus: FrozenCorpus) -> Iterator[LayerRow]:
    """The mean of the chunks, also whitened, and also with half of the mean of the first three chunks added."""
    means = corpus.means
    spans = pairwise(corpus.starts.tolist())
    leads = np.stack(
        [corpus.chunks[first : min(first + 3, end)].astype(np.float32).mean(axis=0) for first, end in spans]
    )
    ways = {
        BASE: corpus.whitening(means),
        "mean": unit(means),
        "mean, whitened by 0.5": Whitening.of(means, 0.5)(means),
        "mean and half of the first three": _whitened(unit(means) + 0.5 * unit(leads)),
    }
    for name, vectors in ways.items():
        yield LayerRow(corpus.name, name, "", 0, 0, 0.0, 0.0, corpus.ndcg(vectors))


def trained_rows(corpora: Sequence[FrozenCorpus], *, steps: int, seed: int) -> Iterator[LayerRow]:
    """All attempts, with each corpus left out in turn."""
    for layer, objective, rate in ATTEMPTS:
        for left_out in corpora:
            others = [corpus for corpus in corpora if corpus is not left_out]
            trained = train(layer, objective, others, steps=steps, rate=rate, seed=seed)
            vectors = _whitened(document_vectors(trained.layer, left_out))
            n_parameters = sum(weight.numel() for weight in trained.layer.parameters())
            losses = round(trained.first_loss, 4), round(trained.last_loss, 4)
            row = LayerRow(
                left_out.name, layer, objective, n_parameters, trained.n_documents, *losses, left_out.ndcg(vectors)
            )
            log(f"{row.name}, without {left_out.name}: {np.mean(row.per_query):.3f}, loss {losses[0]} to {losses[1]}")
            yield row


def _whitened(vectors: np.ndarray) -> np.ndarray:
    return Whitening.of(vectors)(vectors)


def layers_table(records: Sequence[LayersRecord]) -> str:
    """A row for each attempt, a column for each corpus."""
    return "\n\n".join(_one(record) for record in records)


def _one(record: LayersRecord) -> str:
    note = _NOTE.format(split=record.split, power=POWER, steps=record.steps)
    table = attempts_table("Layer, objective", record.rows, BASE, seed=record.origin.seed)
    return "\n".join([f"Chunk vectors of {record.encoder}.", "", *table, "", note, "", *origins([record])])


@program
@left_out_options
@click.option("--steps", type=click.IntRange(1), default=300, help="Steps of each training.")
@measurement(seed="Seed of parameters, batches and tests in the table.", encodes=True)
def main(run: Measurement, names: tuple[str, ...], encoder: str, split: str, steps: int) -> None:
    """Train layers over chunk vectors on all but one DATASET, for each in turn, and rank that one by document vectors.

    \b
    Example:
        python -m benchmarks study document_layers proposals clscisumm wikipedia_seealso rfc
    """
    started = time.perf_counter()
    corpora, labels = [], []
    for one in opened_corpora(run, names, encoder, split):
        log(f"{one.dataset.name}: ranking {_RANKED} queries to learn from")
        corpora.append(frozen_corpus(one.dataset, one.index, one.training, split, n_ranked=_RANKED, seed=run.seed))
        labels.append(one.label)
    rows = [row for corpus in corpora for row in untrained_rows(corpus)]
    rows += trained_rows(corpora, steps=steps, seed=run.seed)
    record = LayersRecord(
        datasets=labels,
        encoder=one.encoder,
        encoder_name=one.encoder.partition("@")[0],
        split=split,
        steps=steps,
        rows=rows,
        seconds=round(time.perf_counter() - started, 1),
        origin=run.origin,
    )
    run.publish([record], layers_table)
