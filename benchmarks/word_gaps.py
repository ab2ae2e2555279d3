"""Measures attempts at chunk vectors that find what words miss, each on corpora that were left out of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from benchmarks.datasets import Dataset, DatasetError, Qrels, checksum, open_dataset, read_qrels
from benchmarks.gaps.attempts import LESSONS, UNTRAINED, VALID, WORDS, Schedule, by_map, by_words, trained_map
from benchmarks.gaps.corpus import Corpus, read_corpus
from benchmarks.gaps.record import GapRow, GapsRecord
from benchmarks.gaps.table import gaps_table
from benchmarks.options import data_option, log, out_option, work_option
from benchmarks.prepare import prepared_index
from benchmarks.program import origin_of, program
from benchmarks.quick import quick_part
from benchmarks.record_file import RESULTS, write_record
from engine.encoders.backbone.weights import BUNDLED_NAME
from engine.training.judgments import read_judgments

TRAIN = "train"
_QUICK_STEPS = 3


@dataclass(frozen=True)
class Read:
    """The corpora that were read, and what made their vectors."""

    corpora: list[Corpus]
    labels: dict[str, str]  # name@checksum
    encoder: str  # name@fingerprint


def measure(corpora: Sequence[Corpus], split: str, schedule: Schedule) -> list[GapRow]:
    """Every attempt on every corpus, the corpus left out."""
    zero = {corpus.name: 0 for corpus in corpora}
    rows = [GapRow(WORDS, zero, {corpus.name: by_words(corpus, split) for corpus in corpora})]
    left_out = [(corpus, [other for other in corpora if other is not corpus]) for corpus in corpora]
    for attempt, make in UNTRAINED.items():
        log(attempt)
        rows.append(
            GapRow(attempt, zero, {corpus.name: by_map(corpus, split, make(others)) for corpus, others in left_out})
        )
    for attempt, lesson in LESSONS.items():
        steps, values = {}, {}
        for corpus, others in left_out:
            log(f"{attempt}, without {corpus.name}")
            steps[corpus.name], learned = trained_map(others, lesson, schedule)
            values[corpus.name] = by_map(corpus, split, learned)
        rows.append(GapRow(attempt, steps, values))
    return rows


def _judged(dataset: Dataset, split: str, n_train: int, *, is_quick: bool) -> dict[str, Qrels]:
    """Judgments of the split, of valid queries and of training pairs; a small part trains on what it has."""
    qrels = {split: dict(read_qrels(dataset, split))}
    if is_quick:
        return {**qrels, VALID: qrels[split], TRAIN: qrels[split]}
    pairs = dataset.qrels.with_name(dataset.qrels.name.replace("qrels", "train_pairs"))
    if not pairs.is_file():
        raise DatasetError(f"dataset {dataset.name}: {pairs} does not exist; leave the corpus out, or add its pairs")
    judged = read_judgments(pairs)
    chosen = list(judged)[:: max(1, len(judged) // n_train)]
    return {VALID: dict(read_qrels(dataset, VALID)), **qrels, TRAIN: {one: dict(judged[one]) for one in chosen}}


def _read(datasets: Sequence[Dataset], judged: Sequence[dict[str, Qrels]], encoder: str, work: Path) -> Read:
    corpora, labels, used = [], {}, ""
    for dataset, qrels in zip(datasets, judged, strict=True):
        log(dataset.name)
        with prepared_index(dataset, encoder, work, log=log) as ready:
            there = set(ready.index.snapshot.doc_ids())
            asked = {
                split: {query_id: targets for query_id, targets in one.items() if query_id in there}
                for split, one in qrels.items()
            }
            corpora.append(read_corpus(dataset.name, ready.index, asked))
            used = ready.encoder
        labels[dataset.name] = f"{dataset.name}@{checksum(dataset)}"
    return Read(corpora, labels, used)


def _settings(schedule: Schedule) -> dict[str, str | int | float | bool]:
    settings: dict[str, str | int | float | bool] = {**asdict(schedule)}
    for name, lesson in LESSONS.items():
        settings[name] = ", ".join(f"{key} {value}" for key, value in asdict(lesson).items())
    return settings


@program
@click.argument("names", nargs=-1, required=True, metavar="DATASET DATASET...")
@click.option("--encoder", default=BUNDLED_NAME, show_default=True, help="Of the indexes.")
@click.option("--split", default=VALID, show_default=True, help="Whose queries are searched with.")
@click.option("--steps", default=150, show_default=True, type=click.IntRange(3), help="Of training a map, at most.")
@click.option("--train-queries", "n_train", default=450, show_default=True, type=click.IntRange(1), help="Of a corpus.")
@click.option("--quick", is_flag=True, help="Small seeded parts, trained on the queries that are searched with.")
@click.option("--seed", default=0, show_default=True, help="Of all draws.")
@data_option
@work_option
@out_option
@click.pass_context
def main(
    context: click.Context,
    names: tuple[str, ...],
    encoder: str,
    split: str,
    steps: int,
    n_train: int,
    quick: bool,
    seed: int,
    data: Path,
    work: Path,
    out: Path | None,
) -> None:
    """Map chunk vectors so that the joint score gains where words fail, each DATASET left out of its map.

    \b
    Example:
        python -m benchmarks study word_gaps proposals clscisumm wikipedia_seealso rfc
    """
    origin, started = origin_of(context, seed), time.perf_counter()
    if len(names) < 2:
        raise click.UsageError(f"{names[0]} is the only dataset; name another one to learn from", context)
    folder = out or (None if quick else RESULTS)
    schedule = Schedule(_QUICK_STEPS if quick else steps, seed=seed)
    datasets = [open_dataset(name, data) for name in names]
    if quick:
        datasets = [quick_part(one, split, work / "quick", seed=seed) for one in datasets]
    read = _read(datasets, [_judged(one, split, n_train, is_quick=quick) for one in datasets], encoder, work)
    record = GapsRecord(
        corpora=read.labels,
        encoder=read.encoder,
        split=split,
        n_train={corpus.name: len(corpus.cases[TRAIN]) for corpus in read.corpora},
        settings=_settings(schedule),
        rows=measure(read.corpora, split, schedule),
        is_quick=quick,
        seconds=round(time.perf_counter() - started, 1),
        origin=origin,
    )
    if folder is not None:
        write_record(record, folder)
    click.echo(gaps_table([record]))
