"""Measures whether networks that read both documents rank candidates better than the joint score, on a new corpus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import click
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from benchmarks.datasets import DatasetError, checksum
from benchmarks.frozen.attempts import attempts_table
from benchmarks.frozen.candidates import Candidates, RankedCorpus, ranked_corpus
from benchmarks.frozen.corpora import FrozenCorpus, frozen_corpus
from benchmarks.frozen.layers import MAX_CHUNKS
from benchmarks.frozen.rerankers import RERANKERS, Pairs, Reranker
from benchmarks.markdown import origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.prepare import prepared_index
from benchmarks.program import program
from benchmarks.record_file import Recorded
from engine.training.corpus import read_training_corpus
from indexer.origin import Origin

BASE, IDEAL = "joint score", "at best"
RATES = {
    "weights": 3e-2,
    "mixture": 3e-3,
    "vectors": 1e-3,
    "kernels": 3e-2,
    "best chunks": 1e-3,
    "colde attention": 5e-4,
}
_QUERIES = 4  # of a step
_TEMPERATURES = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)  # of joint scores, in the softmax that is learned
_WARM_UP = 20
_NOTE = (
    "nDCG@10 on {split} queries, the best {depth} targets by the joint score ranked again by joint score + tau x "
    "network. Each corpus is measured with a network that was trained on queries of the others, for "
    "{steps} steps. In parentheses: the difference to the joint score, and p of the paired randomisation test, "
    "adjusted after Holm over the attempts on a corpus. At best: all relevant candidates first."
)


@dataclass(frozen=True)
class RerankerRow:
    """One way to rank candidates, on one corpus."""

    corpus: str
    name: str  # of `RERANKERS`, or what is done without
    n_parameters: int
    n_queries_read: int  # in training, with repetitions
    first_loss: float
    last_loss: float
    ms_per_query: float
    per_query: list[float]  # nDCG@10


@dataclass(frozen=True)
class SecondStageRecord(Recorded, kind="second_stage", file="second-stage-{encoder_name}-{split}"):
    """Candidates of the joint score, ranked again by networks, with each corpus left out of the training."""

    datasets: list[str]  # name@checksum
    encoder: str  # name@fingerprint, of the chunk vectors
    encoder_name: str
    split: str
    steps: int
    depth: int
    rows: list[RerankerRow]
    seconds: float
    origin: Origin


def pairs_of(corpus: FrozenCorpus, one: Candidates) -> Pairs:
    """What networks read of a query and its candidates: at most 32 chunks of each document, evenly spaced."""
    chosen = [_chunks(corpus, place) for place in (one.query, *one.places.tolist())]
    longest = max(map(len, chosen[1:]))
    targets = torch.zeros(len(one.places), longest, corpus.chunks.shape[1])
    mask = torch.zeros(len(one.places), longest, dtype=torch.bool)
    for row, chunks in enumerate(chosen[1:]):
        targets[row, : len(chunks)], mask[row, : len(chunks)] = chunks, True
    means = torch.from_numpy(corpus.whitening(corpus.means[[one.query, *one.places.tolist()]]))
    return Pairs(chosen[0], targets, mask, means, torch.from_numpy(one.scores), torch.from_numpy(one.components))


def _chunks(corpus: FrozenCorpus, place: int) -> torch.Tensor:
    first, end = int(corpus.starts[place]), int(corpus.starts[place + 1])
    rows = np.linspace(first, end - 1, min(MAX_CHUNKS, end - first)).round().astype(np.int64)
    return torch.from_numpy(corpus.chunks[rows].astype(np.float32))


@dataclass(frozen=True)
class Trained:
    """A network, and what its training came to."""

    network: Reranker
    temperature: float
    first_loss: float
    last_loss: float


def temperature_of(corpora: Sequence[RankedCorpus]) -> float:
    """tau: that of `_TEMPERATURES` by which the joint score alone has the least loss on queries to learn from.

    With a smaller one, what a network learns first is to distrust the joint score.
    """

    def loss(temperature: float) -> float:
        logits = [torch.from_numpy(one.scores / temperature) for corpus in corpora for one in corpus.train]
        gains = [torch.from_numpy(one.gains / one.gains.sum()) for corpus in corpora for one in corpus.train]
        return float(np.mean([cross_entropy(*pair).item() for pair in zip(logits, gains, strict=True)]))

    return min(_TEMPERATURES, key=loss)


def train(name: str, corpora: Sequence[RankedCorpus], *, steps: int, seed: int) -> Trained:
    """Train a network by AdamW on the candidates of queries, a corpus at a time in turn.

    The loss is the cross-entropy between gains, scaled to a sum of 1, and the softmax of joint score / tau + network
    (ListNet, Cao et al. 2007).
    """
    temperature = temperature_of(corpora)
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    network = RERANKERS[name](corpora[0].vectors.chunks.shape[1])
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATES[name], weight_decay=0.01)
    losses = []
    for step, corpus in enumerate(islice(cycle(corpora), steps)):
        for group in optimizer.param_groups:
            group["lr"] = RATES[name] * min(1, (step + 1) / _WARM_UP) * (1 - step / steps)
        batch = []
        for number in draw.choice(len(corpus.train), min(_QUERIES, len(corpus.train)), replace=False).tolist():
            one = corpus.train[number]
            pairs = pairs_of(corpus.vectors, one)
            gains = torch.from_numpy(one.gains)
            batch.append(cross_entropy(pairs.scores / temperature + network(pairs), gains / gains.sum()))
        loss = torch.stack(batch).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    part = max(1, steps // 6)
    return Trained(network.eval(), temperature, float(np.mean(losses[:part])), float(np.mean(losses[-part:])))


@torch.inference_mode()
def scored(trained: Trained, corpus: RankedCorpus) -> list[NDArray[np.floating]]:
    """Scores of the candidates of each measured query."""
    found = []
    for one in corpus.measured:
        added = trained.network(pairs_of(corpus.vectors, one)).numpy() if len(one.places) else 0.0
        found.append(one.scores + trained.temperature * added)
    return found


def rows_of(corpora: Sequence[RankedCorpus], *, steps: int, seed: int) -> Iterator[RerankerRow]:
    """The joint score, the best that could be, and all networks, with each corpus left out in turn."""
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
                steps * _QUERIES,
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
    columns = {"ms a query": _milliseconds}
    table = attempts_table(
        "Second stage", record.rows, BASE, seed=record.origin.seed, untested=(IDEAL,), columns=columns
    )
    return "\n".join([f"Chunk vectors of {record.encoder}.", "", *table, "", note, "", *origins([record])])


def _milliseconds(rows: Sequence[RerankerRow]) -> str:
    return f"{np.mean([row.ms_per_query for row in rows]):.0f}" if rows[0].n_parameters else ""


@program
@click.argument("names", nargs=-1, required=True, metavar="DATASET...")
@click.option("--encoder", default="all-MiniLM-L6-v2", help="Of the indexes; one that was trained on no DATASET.")
@click.option("--split", default="valid", help="Whose queries are used.")
@click.option("--steps", type=click.IntRange(1), default=400, help="Of each training.")
@click.option("--depth", type=click.IntRange(2), default=50, help="Candidates of a query.")
@click.option("--train-queries", "n_train", type=click.IntRange(1), default=400, help="Of each corpus, at most.")
@measurement(seed="Of weights, batches and tests in the table.", encodes=True)
def main(
    run: Measurement, names: tuple[str, ...], encoder: str, split: str, steps: int, depth: int, n_train: int
) -> None:
    """Train networks on candidates of all but one DATASET, for each in turn, and rank the candidates of that one again.

    \b
    Example:
        python -m benchmarks study second_stage proposals clscisumm wikipedia_seealso rfc
    """
    if len(names) < 2:
        raise DatasetError("one dataset alone leaves nothing to train on; name at least two")
    started = time.perf_counter()
    corpora, labels = [], []
    for name in names:
        dataset = run.dataset(name, split)
        training = read_training_corpus(dataset.corpus.parent, suffix=dataset.qrels.stem.removeprefix("qrels"))
        with prepared_index(dataset, encoder, run.work, log) as ready:
            vectors = frozen_corpus(dataset, ready.index, training, split, n_ranked=0, seed=run.seed)
            corpora.append(ranked_corpus(vectors, ready.index, n_train=n_train, depth=depth, seed=run.seed))
        log(f"{name}: {len(corpora[-1].train)} queries to learn from, {len(corpora[-1].measured)} to measure by")
        labels.append(f"{dataset.name}@{checksum(dataset)}")
    rows = list(rows_of(corpora, steps=steps, seed=run.seed))
    record = SecondStageRecord(
        datasets=labels,
        encoder=ready.encoder,
        encoder_name=ready.encoder.partition("@")[0],
        split=split,
        steps=steps,
        depth=depth,
        rows=rows,
        seconds=round(time.perf_counter() - started, 1),
        origin=run.origin,
    )
    run.publish([record], second_stage_table)
