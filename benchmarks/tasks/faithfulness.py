"""Measures whether the parts in a breakdown determine the score: deletion and insertion; runs and table."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np

from benchmarks.datasets import Dataset, DatasetError, checksum, open_dataset, read_documents, read_qrels
from benchmarks.markdown import markdown, origins, p_cells, run_p
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.prepare import Prepared, label_of, prepared_index
from benchmarks.program import log, task
from benchmarks.quick import SUFFIX
from benchmarks.runs import Case, Run
from benchmarks.sections.parts import OrderKind, Side, Unit
from benchmarks.sections.removal import METHODS, RemovalPlan, follow_hits
from benchmarks.sections.subcorpus import index_documents, sample_documents
from benchmarks.significance import bootstrap_interval
from benchmarks.speed.search import sampled_queries
from benchmarks.systems import BuildCost
from engine import Index, Scoring, load_encoder
from engine.encoders.files import BUNDLED_NAME

QUICK = RemovalPlan(queries=4, random=2, encoded=1)
QUICK_DOCUMENTS = 40
QUICK_CHARS = 12_000  # longer documents are left out of the quick part
_UNITS = [unit.value for unit in Unit]


@dataclass(frozen=True)
class FaithfulnessDetails:
    """The details of a run of one order of parts, besides its cases: queries, with values as means over hits."""

    method: str  # stored or re-encoded
    side: str  # query or target
    n_documents: int
    n_hits: int  # of all queries; a document with one part cannot be followed on that side
    shares: list[float]  # of tokens removed or inserted, from 0 to 1
    curves: dict[str, list[float]]  # means over queries, at `shares`


def measure(
    call: Measurement, ready: Prepared, dataset: Dataset, split: str, queries: Sequence[str], plan: RemovalPlan
) -> list[Run]:
    """Follow the best hits of queries while parts are removed; a run for each order of parts, side and method."""
    started = time.perf_counter()
    courses = follow_hits(ready.index, queries, plan, call.seed, log)
    arms = courses.arms()
    if not arms:
        raise DatasetError(
            f"none of {len(queries)} queries of dataset {dataset.name} has a hit with two {plan.unit}s or "
            "more and a contribution; take longer documents, or more of them"
        )
    seconds = round(time.perf_counter() - started, 1)  # of all orders
    sizes = ready.index.n_documents, courses.n_hits
    return [
        Run(
            task="faithfulness",
            dataset=f"{dataset.name}{SUFFIX * call.is_quick}@{checksum(dataset)}",
            system=arm.order,
            encoder=ready.encoder,
            settings={**asdict(plan), **asdict(Scoring())},
            variant=f"{plan.unit}-{arm.method}-{arm.side}",
            split=split,
            seconds=seconds,
            details=asdict(FaithfulnessDetails(arm.method, arm.side, *sizes, list(METHODS[arm.method]), arm.curves)),
            origin=call.origin,
            cases=[
                Case(id=query_id, values={name: of_query[number] for name, of_query in arm.per_query.items()})
                for number, query_id in enumerate(arm.query_ids)
            ],
        )
        for arm in arms
    ]


@contextmanager
def quick_part(dataset: Dataset, encoder_name: str, seed: int) -> Iterator[Prepared]:
    """A temporary index of a seeded part of the corpus."""
    encoder = load_encoder(encoder_name)
    documents = sample_documents(read_documents(dataset), QUICK_DOCUMENTS, seed, max_chars=QUICK_CHARS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.lm"
        index_documents(path, documents, encoder, log)
        with Index.open(path, encoder=encoder) as index:
            yield Prepared(index, label_of(encoder.name, encoder.fingerprint), BuildCost(0.0))


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, help="Name or folder of the index's encoder.")
@click.option("--split", default="test", help="Split to draw queries from.")
@click.option("--queries", default=RemovalPlan.queries, type=click.IntRange(1), help="Queries to draw.")
@click.option("--unit", default=RemovalPlan.unit.value, type=click.Choice(_UNITS), help="Unit that is removed.")
@click.option("--random", default=RemovalPlan.random, type=click.IntRange(1), help="Random orders of each hit.")
@click.option(
    "--encoded", default=RemovalPlan.encoded, type=click.IntRange(0), help="Queries whose texts are encoded again."
)
@measurement(
    seed="Seed of queries, random orders, tests and intervals.",
    quick="Few queries in a part of the corpus",
    encodes=True,
)
def main(
    call: Measurement, name: str, encoder: str, split: str, queries: int, unit: str, random: int, encoded: int
) -> None:
    """Remove, from the documents of hits in DATASET, the parts that the breakdown names, and follow score and rank.

    The parts that the encoder names are also removed, if the encoder itself explains matches (CoLDE, SMITH).
    DATASET is a task by name or a folder. With --quick, queries are drawn from a part of the corpus, for any split.

    \b
    Example:
        python -m benchmarks run faithfulness proposals --encoder all-MiniLM-L6-v2 --queries 100
    """
    plan = RemovalPlan(queries, unit=Unit(unit), random=random, encoded=encoded)
    dataset = open_dataset(name, call.data)
    opened: AbstractContextManager[Prepared]
    if call.is_quick:
        plan, split = replace(QUICK, unit=plan.unit), ""
        opened = quick_part(dataset, encoder, call.seed)
    else:
        opened = prepared_index(dataset, encoder, call.work, log)
    with opened as ready:
        candidates = ready.index.snapshot.doc_ids() if call.is_quick else list(read_qrels(dataset, split))
        chosen = sampled_queries(candidates, plan.queries, call.seed)
        runs = measure(call, ready, dataset, split, chosen, plan)
    call.publish(runs, faithfulness_table)


# The name in a run, and the name in the table with the better direction.
_MEASURES = {
    "deletion_area": "deletion, area (low)",
    "insertion_area": "insertion, area (high)",
    "comprehensiveness": "comprehensiveness (high)",
    "sufficiency": "sufficiency (low)",
    "deletion_rank_area": "deletion, area of 1/rank (low)",
    "insertion_rank_area": "insertion, area of 1/rank (high)",
}
_NOTE = (
    "Areas under the curves of score and reciprocal rank, over the share of tokens that are removed (deletion) or "
    "inserted alone (insertion). Parts come in the order of the breakdown, of the largest plain cosine, or at random. "
    "Scores are relative to the score of the whole document. Comprehensiveness and sufficiency: mean loss at 5, 10, "
    "20 and 50 % of tokens. Minus: the value of the breakdown minus that of another order, with a bootstrap interval. "
    "p: two-sided paired randomisation test over queries, with the mean over the hits of a query, adjusted by Holm's "
    "method over each column. Stored: rescored from stored vectors, with the document vector unchanged. Re-encoded: "
    "the remaining text is encoded again."
)
_MODEL_NOTE = (
    " Model: parts in the order of the encoder's own explanation, which is not a part of the score; the measured "
    "score is the same."
)
_RIVALS = (OrderKind.RANDOM, OrderKind.COSINE, OrderKind.MODEL)


def faithfulness_table(runs: Sequence[Run]) -> str:
    """A row for each corpus, method, side and measure; with columns of the model if an encoder explains matches."""
    kinds = [kind for kind in OrderKind if kind is not OrderKind.MODEL or any(run.system == kind for run in runs)]
    rivals = [kind for kind in _RIVALS if kind in kinds]
    head = ["Corpus", "Encoder", "Removed from (queries)", "Measure", *kinds]
    tests = [f"minus {kind} {cell}" for kind in rivals for cell in ("[95 %]", "p")]
    rows = [row for of_corpus in _by_corpus(runs) for row in _rows(of_corpus, kinds, rivals)]
    note = _NOTE + _MODEL_NOTE * (OrderKind.MODEL in kinds)
    return "\n".join([*markdown([*head, *tests], rows), "", note, "", *origins(runs)])


Orders: TypeAlias = dict[str, Run]  # runs of one corpus, method and side, by kind of order


def _by_corpus(runs: Sequence[Run]) -> list[list[Orders]]:
    """The orders of each corpus with its settings, by side and method; queries and stored vectors come first."""
    found: dict[tuple[object, ...], dict[str, Orders]] = {}
    places = [f"{method}-{side}" for side in Side for method in METHODS]
    for run in sorted(runs, key=lambda run: places.index(run.variant.partition("-")[2])):
        unit, _, place = run.variant.partition("-")
        of_corpus = found.setdefault((run.dataset, run.split, run.encoder, unit, run.origin.seed), {})
        of_corpus.setdefault(place, {})[run.system] = run
    return [list(found[key].values()) for key in sorted(found, key=str)]


def _rows(places: Sequence[Orders], kinds: Sequence[OrderKind], rivals: Sequence[OrderKind]) -> list[list[str]]:
    cases = [(own, measure) for own in places for measure in _MEASURES]
    columns = [
        p_cells([run_p(own[OrderKind.BREAKDOWN], own.get(rival), measure) for own, measure in cases])
        for rival in rivals
    ]
    rows = []
    for (own, measure), *p_values in zip(cases, *columns, strict=True):
        run = own[OrderKind.BREAKDOWN]
        details = run.details_as(FaithfulnessDetails)
        cells = [f"{np.mean(own[kind].values(measure)):.3f}" if kind in own else "" for kind in kinds]
        differences = [_difference(run, own[rival], measure) if rival in own else "" for rival in rivals]
        tested = [cell for pair in zip(differences, p_values, strict=True) for cell in pair]
        place = f"{details.side}, {details.method} ({len(run.cases)})"
        corpus = run.corpus.removesuffix(SUFFIX) + (", quick" if run.corpus.endswith(SUFFIX) else "")
        rows.append([corpus, run.encoder_name, place, _MEASURES[measure], *cells, *tested])
    return rows


def _difference(run: Run, rival: Run, measure: str) -> str:
    differences = [a - b for a, b in zip(run.values(measure), rival.values(measure), strict=True)]
    low, high = bootstrap_interval(differences, seed=run.origin.seed)
    return f"{np.mean(differences):+.3f} [{low:+.3f}, {high:+.3f}]"
