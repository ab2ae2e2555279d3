"""Measures if networks that read both documents rank candidates better than the joint score, on an unseen corpus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
import numpy as np

from benchmarks.frozen.attempts import attempts_table, left_out_options, opened_corpora
from benchmarks.frozen.candidates import RankedCorpus, ranked_corpus
from benchmarks.frozen.corpora import frozen_corpus
from benchmarks.frozen.rerankers import RERANKERS
from benchmarks.frozen.reranking import QUERIES, scored, train
from benchmarks.markdown import origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.record_file import Recorded
from indexer.origin import Origin

BASE, IDEAL = "joint score", "at best"
_NOTE = (
    "nDCG@10 on {split} queries. The best {depth} targets by the joint score are re-ranked by joint score + tau x "
    "network. The network for a corpus was trained on queries of the other corpora, for {steps} steps. In "
    "parentheses: the difference from the joint score, and p of a paired randomisation test, adjusted by Holm's "
    "method over the attempts on a corpus. At best: all relevant candidates first."
)


@dataclass(frozen=True)
class RerankerRow:
    """The result of one method of ranking candidates on one corpus."""

    corpus: str
    name: str  # of `RERANKERS`, or the method without a network
    n_parameters: int
    n_queries_read: int  # in training, with repetitions
    first_loss: float
    last_loss: float
    ms_per_query: float
    per_query: list[float]  # nDCG@10


@dataclass(frozen=True)
class SecondStageRecord(Recorded, kind="second_stage", file="second-stage-{encoder_name}-{split}"):
    """Candidates of the joint score, re-ranked by networks, with each corpus left out of the training."""

    datasets: list[str]  # name@checksum
    encoder: str  # name@fingerprint, of the chunk vectors
    encoder_name: str
    split: str
    steps: int
    depth: int
    rows: list[RerankerRow]
    seconds: float
    origin: Origin


def rows_of(corpora: Sequence[RankedCorpus], *, steps: int, seed: int) -> Iterator[RerankerRow]:
    """The joint score, the ideal ranking, and all networks, with each corpus left out in turn."""
    for corpus in corpora:
        name = corpus.vectors.name
        plain = [one.scores for one in corpus.measured]
        ideal = [one.gains for one in corpus.measured]
        yield RerankerRow(name, BASE, 0, 0, 0.0, 0.0, 0.0, corpus.ndcg(plain))
        yield RerankerRow(name, IDEAL, 0, 0, 0.0, 0.0, 0.0, corpus.ndcg(ideal))
    for name in RERANKERS:
        for left_out in corpora:
            trained = train(name, [one for one in corpora if one is not left_out], steps=steps, seed=seed)
            began = time.perf_counter()
            scores = scored(trained, left_out)
            ms = 1000 * (time.perf_counter() - began) / max(1, len(scores))
            row = RerankerRow(
                left_out.vectors.name,
                name,
                sum(weight.numel() for weight in trained.network.parameters()),
                steps * QUERIES,
                round(trained.first_loss, 4),
                round(trained.last_loss, 4),
                round(ms, 1),
                left_out.ndcg(scores),
            )
            losses = f"{row.first_loss} to {row.last_loss}"
            log(f"{name}, without {row.corpus}: {np.mean(row.per_query):.3f}, loss {losses}")
            yield row


def second_stage_table(records: Sequence[SecondStageRecord]) -> str:
    """A row for each network, a column for each corpus."""
    return "\n\n".join(_one(record) for record in records)


def _one(record: SecondStageRecord) -> str:
    note = _NOTE.format(split=record.split, depth=record.depth, steps=record.steps)
    times: dict[str, list[float]] = {}
    for row in record.rows:
        times.setdefault(row.name, []).extend([row.ms_per_query] if row.n_parameters else [])
    ms = {"ms per query": {name: f"{np.mean(own):.0f}" if own else "" for name, own in times.items()}}
    table = attempts_table("Second stage", record.rows, BASE, seed=record.origin.seed, untested=(IDEAL,), columns=ms)
    return "\n".join([f"Chunk vectors of {record.encoder}.", "", *table, "", note, "", *origins([record])])


@program
@left_out_options
@click.option("--steps", type=click.IntRange(1), default=400, help="Steps of each training.")
@click.option("--depth", type=click.IntRange(2), default=50, help="Candidates of each query.")
@click.option(
    "--train-queries", "n_train", type=click.IntRange(1), default=400, help="Limit of training queries per corpus."
)
@measurement(seed="Seed of parameters, batches and tests in the table.", encodes=True)
def main(
    run: Measurement, names: tuple[str, ...], encoder: str, split: str, steps: int, depth: int, n_train: int
) -> None:
    """Train networks on candidates of all but one DATASET, for each in turn, and re-rank the candidates of that one.

    \b
    Example:
        python -m benchmarks study second_stage proposals clscisumm wikipedia_seealso rfc
    """
    started = time.perf_counter()
    corpora, labels = [], []
    for one in opened_corpora(run, names, encoder, split):
        vectors = frozen_corpus(one.dataset, one.index, one.training, split, n_ranked=0, seed=run.seed)
        corpora.append(ranked_corpus(vectors, one.index, n_train=n_train, depth=depth, seed=run.seed))
        log(
            f"{vectors.name}: {len(corpora[-1].train)} queries to learn from, {len(corpora[-1].measured)} to measure by"
        )
        labels.append(one.label)
    rows = list(rows_of(corpora, steps=steps, seed=run.seed))
    record = SecondStageRecord(
        datasets=labels,
        encoder=one.encoder,
        encoder_name=one.encoder.partition("@")[0],
        split=split,
        steps=steps,
        depth=depth,
        rows=rows,
        seconds=round(time.perf_counter() - started, 1),
        origin=run.origin,
    )
    run.publish([record], second_stage_table)
