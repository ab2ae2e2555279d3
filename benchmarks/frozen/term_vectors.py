"""Measures whether a vector of the words of a whole document improves the mean of its chunks, on an unseen corpus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
import numpy as np

from benchmarks.frozen.attempts import attempts_table, left_out_options, opened_corpora
from benchmarks.frozen.corpora import POWER, Vectors, Whitening, frozen_corpus
from benchmarks.frozen.document_layers import BASE
from benchmarks.frozen.terms import WIDTH, TermCorpus, TermWeights, principal, term_counts, train_weights
from benchmarks.markdown import origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.record_file import Recorded
from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.files import resolve_backbone
from indexer.origin import Origin

_NOTE = (
    "nDCG@10 on {split} queries by the cosine of document vectors. Means and vectors of terms are whitened by the "
    "power {power} of the variance over the corpus. Terms are the tokens of the encoder, weighted by their inverse "
    "document frequency in the other corpora, and projected at random to {width} dimensions; trained: by pairs of the "
    "other corpora, for {steps} steps. As wide as the mean: on the principal axes of the corpus. In parentheses: the "
    "difference from the whitened mean of all chunks, and p of a paired randomisation test, adjusted by Holm's method "
    "over the attempts on a corpus."
)


@dataclass(frozen=True)
class TermRow:
    """The result of one method of making document vectors on one corpus."""

    corpus: str
    name: str
    width: int  # of a document vector
    n_parameters: int  # trained
    share: float  # beta: the weight of the terms; 0 without
    n_documents: int  # read in training, with repetitions
    first_loss: float
    last_loss: float
    per_query: list[float]  # nDCG@10


@dataclass(frozen=True)
class TermVectorsRecord(Recorded, kind="term_vectors", file="term-vectors-{encoder_name}-{split}"):
    """Means of chunks with vectors of terms, whose weights come from other corpora."""

    datasets: list[str]  # name@checksum
    encoder: str  # name@fingerprint, of the chunk vectors
    encoder_name: str
    split: str
    steps: int
    term_width: int
    rows: list[TermRow]
    seconds: float
    origin: Origin


def rows_without(
    left_out: TermCorpus, others: Sequence[TermCorpus], *, steps: int, rate: float, seed: int
) -> Iterator[TermRow]:
    """All methods on a corpus, with weights that come from the others."""

    def row(name: str, vectors: Vectors, **details: float) -> TermRow:
        counts = {"n_parameters": 0, "share": 1.0, "n_documents": 0, "first_loss": 0.0, "last_loss": 0.0, **details}
        ndcg = left_out.frozen.ndcg(vectors)
        log(f"{left_out.frozen.name}, {name}: {np.mean(ndcg):.3f}")
        return TermRow(left_out.frozen.name, name, vectors.shape[1], per_query=ndcg, **counts)  # type: ignore[arg-type]

    means = left_out.means
    yield row(BASE, means, share=0.0)
    weights = TermWeights.of(others, seed=seed)
    terms = weights.all_vectors(left_out)
    yield row("terms alone, whitened", Whitening.of(terms)(terms))
    joined = weights.document_vectors(left_out)
    yield row("mean and terms", joined)
    width = means.shape[1]
    yield row("mean and terms, as wide as the mean", principal(joined, width))
    trained = train_weights(others, steps=steps, rate=rate, seed=seed)
    joined = trained.weights.document_vectors(left_out)
    details = {
        "n_parameters": trained.weights.logarithms.numel() + 1,
        "share": round(float(trained.weights.log_share.detach().exp()), 3),
        "n_documents": trained.n_documents,
        "first_loss": round(trained.first_loss, 4),
        "last_loss": round(trained.last_loss, 4),
    }
    yield row("mean and terms, trained", joined, **details)
    yield row("mean and terms, trained, as wide as the mean", principal(joined, width), **details)


def term_vectors_table(records: Sequence[TermVectorsRecord]) -> str:
    """A row for each method, a column for each corpus, for each split."""
    return "\n\n".join(_one(record) for record in records)


def _one(record: TermVectorsRecord) -> str:
    note = _NOTE.format(split=record.split, power=POWER, width=record.term_width, steps=record.steps)
    widths = {row.name: f"{row.width:,}" for row in record.rows}
    table = attempts_table(
        "Document vector", record.rows, BASE, seed=record.origin.seed, columns={"Dimensions": widths}
    )
    return "\n".join([f"Chunk vectors of {record.encoder}.", "", *table, "", note, "", *origins([record])])


@program
@left_out_options
@click.option("--steps", type=click.IntRange(1), default=300, help="Steps of each training.")
@click.option("--rate", type=float, default=0.01, help="Learning rate of the weights of terms.")
@measurement(seed="Seed of projections, batches and tests in the table.", encodes=True)
def main(run: Measurement, names: tuple[str, ...], encoder: str, split: str, steps: int, rate: float) -> None:
    """Join the mean of chunks with a vector of terms, with weights from all but one DATASET, and rank that one.

    \b
    Example:
        python -m benchmarks study term_vectors proposals clscisumm wikipedia_seealso rfc
    """
    started = time.perf_counter()
    tokenizer = Tokenizer(resolve_backbone(encoder))
    corpora, labels = list[TermCorpus](), list[str]()
    for one in opened_corpora(run, names, encoder, split):
        frozen = frozen_corpus(one.dataset, one.index, one.training, split, n_ranked=0, seed=run.seed)
        log(f"{one.dataset.name}: counting terms")
        documents = (one.training.documents[doc_id] for doc_id in frozen.ids)
        corpora.append(TermCorpus(frozen, term_counts([document.text for document in documents], tokenizer)))
        labels.append(one.label)
    rows = [
        row
        for corpus in corpora
        for row in rows_without(
            corpus, [other for other in corpora if other is not corpus], steps=steps, rate=rate, seed=run.seed
        )
    ]
    record = TermVectorsRecord(
        datasets=labels,
        encoder=one.encoder,
        encoder_name=one.encoder.partition("@")[0],
        split=split,
        steps=steps,
        term_width=WIDTH,
        rows=rows,
        seconds=round(time.perf_counter() - started, 1),
        origin=run.origin,
    )
    run.publish([record], term_vectors_table)
