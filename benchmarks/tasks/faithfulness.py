"""Measures whether the parts that a breakdown names carry the score: deletion and insertion; writes a record."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

from benchmarks.datasets import Dataset, DatasetError, checksum, open_dataset, read_documents, read_qrels
from benchmarks.options import data_option, log, out_option, plot_option, work_option
from benchmarks.prepare import label_of, prepared_index
from benchmarks.program import origin_of, task
from benchmarks.record_file import RESULTS, write_record
from benchmarks.sections.faithfulness_report import (
    draw_faithfulness,
    faithfulness_table,
)
from benchmarks.sections.following import METHODS, RemovalPlan, follow_hits
from benchmarks.sections.parts import Unit
from benchmarks.sections.records import FaithfulnessRecord
from benchmarks.sections.subcorpus import index_documents, sample_documents
from benchmarks.speed.recall import sampled_queries
from engine import Index, Scoring, load_encoder
from engine.encoders.backbone.weights import BUNDLED_NAME
from indexer.training.origin import Origin

QUICK = RemovalPlan(queries=4, random=2, encoded=1)
QUICK_DOCUMENTS = 40
QUICK_CHARS = 12_000  # longer documents are left out of the quick part
_UNITS = [unit.value for unit in Unit]


@dataclass(frozen=True)
class AskedIndex:
    """The index that is asked, and what a record says of it."""

    index: Index
    encoder: str  # name@fingerprint
    dataset: Dataset
    split: str  # whose queries are drawn; "" where they are of a part of the corpus
    is_quick: bool  # of a part of the corpus only


def measure(
    asked: AskedIndex, queries: Sequence[str], plan: RemovalPlan, origin: Origin, log: Callable[[str], None]
) -> FaithfulnessRecord:
    """Follow the best hits of queries as their parts go.

    Raises:
        DatasetError: no query has a hit whose parts can be told apart.
    """
    started = time.perf_counter()
    courses = follow_hits(asked.index, queries, plan, origin.seed, log)
    arms = courses.arms()
    if not arms:
        raise DatasetError(
            f"none of {len(queries)} queries of dataset {asked.dataset.name} has a hit with two {plan.unit}s or "
            "more and a contribution; take longer documents, or more of them"
        )
    return FaithfulnessRecord(
        task=asked.dataset.name,
        dataset=f"{asked.dataset.name}@{checksum(asked.dataset)}",
        split=asked.split,
        encoder=asked.encoder,
        settings={**asdict(plan), **asdict(Scoring())},
        is_quick=asked.is_quick,
        n_documents=asked.index.n_documents,
        n_hits=courses.n_hits,
        shares={method: list(shares) for method, shares in METHODS.items()},
        arms=arms,
        seconds=round(time.perf_counter() - started, 1),
        origin=origin,
    )


@contextmanager
def whole_corpus(dataset: Dataset, split: str, encoder: str, work: Path) -> Iterator[AskedIndex]:
    """The index of the whole corpus, kept in `work`."""
    with prepared_index(dataset, encoder, work, log) as ready:
        yield AskedIndex(ready.index, ready.encoder, dataset, split, is_quick=False)


@contextmanager
def quick_part(dataset: Dataset, encoder_name: str, seed: int) -> Iterator[AskedIndex]:
    """An index of a seeded part of the corpus, thrown away afterwards."""
    encoder = load_encoder(encoder_name)
    documents = sample_documents(read_documents(dataset), QUICK_DOCUMENTS, seed, max_chars=QUICK_CHARS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.lm"
        index_documents(path, documents, encoder, log)
        with Index.open(path, encoder=encoder) as index:
            yield AskedIndex(index, label_of(encoder.name, encoder.fingerprint), dataset, "", is_quick=True)


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, show_default=True, help="Name or folder of the index's encoder.")
@click.option("--split", default="test", show_default=True, help="Whose queries are drawn.")
@click.option(
    "--queries", default=RemovalPlan.queries, show_default=True, type=click.IntRange(1), help="Queries drawn."
)
@click.option(
    "--hits", default=RemovalPlan.hits, show_default=True, type=click.IntRange(1), help="Best hits of each query."
)
@click.option(
    "--unit", default=RemovalPlan.unit.value, show_default=True, type=click.Choice(_UNITS), help="What is removed."
)
@click.option(
    "--random", default=RemovalPlan.random, show_default=True, type=click.IntRange(1), help="Random orders a hit."
)
@click.option(
    "--encoded", default=RemovalPlan.encoded, show_default=True, type=click.IntRange(0), help="Queries re-encoded."
)
@click.option("--seed", default=0, show_default=True, help="Of queries, random orders, tests and intervals.")
@click.option("--quick", is_flag=True, help="Few queries in a part of the corpus; no record unless --out is given.")
@data_option
@work_option
@out_option
@plot_option
@click.pass_context
def main(
    context: click.Context,
    name: str,
    encoder: str,
    split: str,
    queries: int,
    hits: int,
    unit: str,
    random: int,
    encoded: int,
    seed: int,
    quick: bool,
    data: Path,
    work: Path,
    out: Path | None,
    plot_out: Path | None,
) -> None:
    """Remove, from the documents of hits in DATASET, the parts that the breakdown names, and follow score and rank.

    DATASET is a task by name or a folder. With --quick, queries are drawn of a part of the corpus, whatever the split.

    \b
    Example:
        python -m benchmarks run faithfulness proposals --encoder all-MiniLM-L6-v2 --queries 100
    """
    plan = RemovalPlan(queries, hits, Unit(unit), random, encoded)
    if quick:
        plan = replace(QUICK, unit=plan.unit)
    origin = origin_of(context, seed)

    dataset = open_dataset(name, data)
    opened = quick_part(dataset, encoder, seed) if quick else whole_corpus(dataset, split, encoder, work)
    with opened as asked:
        candidates = asked.index.snapshot.doc_ids() if quick else list(read_qrels(dataset, split))
        record = measure(asked, sampled_queries(candidates, plan.queries, seed), plan, origin, log)
    if folder := out or (None if quick else RESULTS):
        write_record(record, folder)
    click.echo(faithfulness_table([record]))
    if plot_out:
        draw_faithfulness(record, plot_out)
