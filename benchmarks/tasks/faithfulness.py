"""Measures whether the parts in a breakdown determine the score: deletion and insertion; runs and table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict

import click
import numpy as np

from benchmarks.datasets import Dataset, DatasetError, checksum, open_dataset, read_qrels
from benchmarks.prepare import Prepared, prepared_index
from benchmarks.program import Measurement, log, measurement, task
from benchmarks.runs import Case, Run
from benchmarks.sections.removal import METHODS, RemovalPlan, follow_hits
from benchmarks.tables.sections import FaithfulnessDetails, faithfulness_table
from engine.encoders.files import BUNDLED_NAME
from engine.scoring.evidence import Scoring


def measure(
    call: Measurement, ready: Prepared, dataset: Dataset, queries: Sequence[str], plan: RemovalPlan
) -> list[Run]:
    """Follow the best hits of queries while parts are removed; a run for each order of parts, side and method."""
    started = time.perf_counter()
    courses = follow_hits(ready.index, queries, plan, call.seed, log)
    arms = courses.arms()
    if not arms:
        raise DatasetError(
            f"none of {len(queries)} queries of dataset {dataset.name} has a hit with two chunks or "
            "more and a contribution; take longer documents, or more of them"
        )
    seconds = round(time.perf_counter() - started, 1)  # of all orders
    sizes = ready.index.n_documents, courses.n_hits
    return [
        Run(
            task="faithfulness",
            dataset=f"{dataset.name}@{checksum(dataset)}",
            system=arm.order,
            encoder=ready.encoder,
            settings={**asdict(plan), **asdict(Scoring())},
            variant=f"chunk-{arm.method}-{arm.side}",
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


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, help="Name or folder of the index's encoder.")
@click.option("--queries", default=RemovalPlan.queries, type=click.IntRange(1), help="Queries to draw.")
@click.option(
    "--encoded", default=RemovalPlan.encoded, type=click.IntRange(0), help="Queries whose texts are encoded again."
)
@measurement(seed="Seed of queries, random orders, tests and intervals.", encodes=True)
def main(call: Measurement, name: str, encoder: str, queries: int, encoded: int) -> None:
    """Remove, from the documents of hits in DATASET, the parts that the breakdown names, and follow score and rank.

    The parts that the encoder names are also removed, if the encoder itself explains matches (CoLDE, SMITH).
    DATASET is a task by name or a folder.

    \b
    Example:
        python -m benchmarks run faithfulness proposals --encoder all-MiniLM-L6-v2 --queries 100
    """
    plan = RemovalPlan(queries, encoded=encoded)
    dataset = open_dataset(name, call.data)
    with prepared_index(dataset, encoder, call.work, log) as ready:
        query_ids = list(read_qrels(dataset, "test"))
        order = np.random.default_rng(call.seed).permutation(len(query_ids))
        chosen = [query_ids[row] for row in order[: plan.queries]]
        runs = measure(call, ready, dataset, chosen, plan)
    call.publish(runs, faithfulness_table)
