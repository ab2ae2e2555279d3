"""Measures how the crowd M must grow with the corpus: real queries and judgments, real documents among made ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import click
import numpy as np

from benchmarks.datasets import Dataset, DatasetError, Qrels, checksum, open_dataset, read_qrels
from benchmarks.metrics import PRIMARY, evaluate, means
from benchmarks.options import data_option, out_option, read_numbers, tell
from benchmarks.origin import command_line
from benchmarks.records import RESULTS, write_record
from benchmarks.scaling.calibration import calibrate
from benchmarks.scaling.growth import Growth, learn_growth
from benchmarks.scaling.record import CrowdPoint, CrowdRecord
from benchmarks.scaling.source import COPY_MARK, Source
from benchmarks.scaling.tables import crowd_table
from benchmarks.scaling.truth import ExactLists
from engine.errors import EngineError
from engine.index import Index
from engine.origin import Origin, describe_origin
from engine.scoring.evidence import Scoring

CROWDS = (5, 10, 20, 40, 80, 160, 320)
GROWTHS = (1, 2, 4, 8, 16, 32)
DEPTH = 1_000  # of rankings, so that ten real documents are left when made ones are taken out
QUICK_QUERIES, QUICK_GROWTHS = 10, (1, 2)
_READ_CHUNKS = 32_768


@dataclass(frozen=True)
class Trial:
    """What is asked of collections of every size."""

    dataset: Dataset
    split: str
    qrels: Qrels
    crowds: Sequence[int]
    growths: Sequence[int]  # sizes, as multiples of the real corpus; rising from 1
    is_quick: bool
    origin: Origin


def measure(index: Index, trial: Trial, tell: Callable[[str], None]) -> CrowdRecord:
    """Grow the collection block by block, and judge all queries at each size under each M.

    Lists of each query chunk are kept, not documents: memory holds one block, the lists,
    and a cosine for each query and document.

    Raises:
        DatasetError: a query is not in the index.
        IndexMismatch: the index cannot be grown.
    """
    started = time.perf_counter()
    source = Source(index.snapshot)
    seed = trial.origin.seed
    calibration = calibrate(source, seed)
    growth = learn_growth(source, turn=calibration.turn, seed=seed)
    points = list(_points(index, growth, trial, tell))
    return CrowdRecord(
        dataset=f"{trial.dataset.name}@{checksum(trial.dataset)}",
        source=source.checksum,
        split=trial.split,
        is_quick=trial.is_quick,
        n_queries=len(trial.qrels),
        calibration=calibration,
        points=points,
        seconds=round(time.perf_counter() - started, 1),
        origin=trial.origin,
    )


def _points(index: Index, growth: Growth, trial: Trial, tell: Callable[[str], None]) -> list[CrowdPoint]:
    names = growth.source.names
    n_real, n_chunks = len(names), int(growth.source.n_chunks.sum())
    # The stream of exactly so many copies: every document of each.
    order = growth.order(n_chunks * trial.growths[-1])
    place = {names[original]: number for number, original in enumerate(order.originals[:n_real].tolist())}
    if absent := [query_id for query_id in trial.qrels if query_id not in place]:
        raise DatasetError(
            f"query {absent[0]!r} of {trial.dataset.name} is not in the index ({len(absent)} are not); "
            "name the index of that dataset"
        )
    queries = [index.stored_query(query_id).vectors for query_id in trial.qrels]
    own = np.array([place[query_id] for query_id in trial.qrels])
    lists = ExactLists(queries, own, max(trial.crowds), Scoring().document_crowd)
    doc_ids = [
        f"{names[original]}{COPY_MARK}{copy}" if copy else names[original]
        for original, copy in zip(order.originals.tolist(), order.copies.tolist(), strict=True)
    ]
    points, n_seen = [], 0
    for times in trial.growths:
        upto = n_real * times
        part = replace(order, originals=order.originals[:upto], copies=order.copies[:upto])
        for block in growth.blocks(part, first=lists.n_documents, block_chunks=_READ_CHUNKS):
            lists.add(block.documents, block.chunks, block.starts)
            n_seen += len(block.chunks)
        tell(f"{lists.n_documents:,} documents, {n_seen:,} chunks")
        points.append(_judged(lists, n_seen, doc_ids, n_real, trial))
    return points


def _judged(lists: ExactLists, n_chunks: int, doc_ids: Sequence[str], n_real: int, trial: Trial) -> CrowdPoint:
    among_all, among_real = {}, {}
    for crowd in trial.crowds:
        found = lists.rankings(replace(Scoring(), crowd=crowd))
        rankings = {
            query_id: [doc_ids[number] for number in ranking[:DEPTH]]
            for query_id, ranking in zip(trial.qrels, found, strict=True)
        }
        real = {
            query_id: [doc_ids[number] for number in ranking[ranking < n_real][:DEPTH]]
            for query_id, ranking in zip(trial.qrels, found, strict=True)
        }
        among_all[str(crowd)] = _quality(trial.qrels, rankings)
        among_real[str(crowd)] = _quality(trial.qrels, real)
    return CrowdPoint(lists.n_documents, n_chunks, among_all, among_real)


def _quality(qrels: Qrels, rankings: Mapping[str, Sequence[str]]) -> float:
    return round(means(evaluate(qrels, rankings))[PRIMARY], 4)


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


@click.command()
@click.argument("name", metavar="DATASET")
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--split", default="valid", show_default=True, help="Whose queries are asked.")
@click.option("--crowds", default=_listed(CROWDS), show_default=True, callback=read_numbers, help="Values of M.")
@click.option("--growths", default=_listed(GROWTHS), show_default=True, callback=read_numbers, help="Times the corpus.")
@click.option("--limit", type=click.IntRange(1), help="Ask the first N queries only; no record without --out.")
@click.option("--seed", default=0, show_default=True, help="Of growth.")
@click.option("--quick", is_flag=True, help="Few queries, corpus and one copy of it; a record only with --out.")
@data_option
@out_option
@click.pass_context
def main(
    context: click.Context,
    name: str,
    path: Path,
    split: str,
    crowds: tuple[int, ...],
    growths: tuple[int, ...],
    limit: int | None,
    seed: int,
    quick: bool,
    data: Path,
    out: Path | None,
) -> None:
    """Ask the queries of DATASET of its INDEX, grown to several sizes, under several sizes of the crowd.

    \b
    Example:
        python -m benchmarks.crowd proposals proposals.lm --growths 1,4,16
    """
    origin = describe_origin(command_line("benchmarks.crowd", context, leave_out=("data", "out")), seed)
    limit = limit or (QUICK_QUERIES if quick else None)
    try:
        dataset = open_dataset(name, data)
        qrels = dict(islice(read_qrels(dataset, split).items(), limit))
        sizes = QUICK_GROWTHS if quick else tuple(sorted({1, *growths}))
        trial = Trial(dataset, split, qrels, crowds, sizes, limit is not None, origin)
        with Index.open(path) as index:
            record = measure(index, trial, tell)
        if out or limit is None:
            write_record(record, out or RESULTS)
    except EngineError as error:
        raise click.ClickException(str(error)) from error
    click.echo(crowd_table([record]))


if __name__ == "__main__":
    main()
