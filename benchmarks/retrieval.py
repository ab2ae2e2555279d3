"""Measures how well systems find the relevant targets of whole documents; writes a record for each system."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import click

from benchmarks.datasets import (
    DATA,
    Dataset,
    Qrels,
    checksum,
    open_dataset,
    read_documents,
    read_qrels,
    read_queries,
)
from benchmarks.metrics import evaluate, means
from benchmarks.origin import command_line
from benchmarks.quality_tables import retrieval_table
from benchmarks.records import RESULTS, BuildCost, RetrievalRecord, write_record
from benchmarks.runs import Run, rank, write_trec
from benchmarks.systems import DocumentCosine, Evidence, System
from engine.document import Document
from engine.errors import EngineError, MissingExtra
from engine.origin import Origin, describe_origin

SYSTEMS = ("evidence", "document", "bm25")
WORK = Path(__file__).resolve().parent / ".work"


@dataclass(frozen=True)
class Trial:
    """What every system is asked alike."""

    dataset: Dataset
    split: str
    qrels: Qrels
    queries: dict[str, Document]
    k: int
    origin: Origin


def measure(system: System, cost: BuildCost, trial: Trial) -> tuple[RetrievalRecord, Run]:
    """Run every query of the trial and judge the rankings."""
    run, seconds = rank(system, trial.queries.values(), trial.k)
    values = evaluate(trial.qrels, {query_id: [hit for hit, _ in ranking] for query_id, ranking in run.items()})
    record = RetrievalRecord(
        task=trial.dataset.name,
        dataset=f"{trial.dataset.name}@{checksum(trial.dataset)}",
        system=system.name,
        encoder=system.encoder,
        settings=system.settings,
        split=trial.split,
        k=trial.k,
        n_queries=len(trial.qrels),
        metrics={name: round(mean, 4) for name, mean in means(values).items()},
        build=cost,
        search_seconds=round(seconds, 2),
        query_ids=list(trial.qrels),
        per_query={name: [round(value, 4) for value in by_query.values()] for name, by_query in values.items()},
        origin=trial.origin,
    )
    return record, run


def prepared_systems(
    names: Collection[str], dataset: Dataset, encoder: str, work: Path, *, exact: bool
) -> Iterator[tuple[System, BuildCost]]:
    """The systems of these names, one after the other, ready to search the corpus."""
    if {"evidence", "document"} & set(names):
        # BM25 alone needs neither torch nor FAISS.
        from benchmarks.prepare import prepared_index

        with prepared_index(dataset, encoder, work, tell=_tell) as ready:
            if "evidence" in names:
                yield Evidence(ready.index, ready.encoder, exact=exact), ready.cost
            if "document" in names:
                yield DocumentCosine(ready.index, ready.encoder), ready.cost
    if "bm25" in names:
        yield _fit_bm25(dataset)


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _fit_bm25(dataset: Dataset) -> tuple[System, BuildCost]:
    try:
        from benchmarks.bm25 import BM25
    except ModuleNotFoundError as error:
        raise MissingExtra("the BM25 baseline", "bm25s and PyStemmer", "benchmarks") from error
    started = time.perf_counter()
    bm25 = BM25().fit(read_documents(dataset))
    return bm25, BuildCost(round(time.perf_counter() - started, 1))


def _chosen(_context: click.Context, _parameter: click.Parameter, names: str) -> tuple[str, ...]:
    chosen = tuple(name.strip() for name in names.split(","))
    unknown = [name for name in chosen if name not in SYSTEMS]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(SYSTEMS)}")
    return chosen


@click.command()
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default="", help="Encoder of the index; not needed for bm25 alone.")
@click.option("--split", default="test", show_default=True, help="Whose queries are asked.")
@click.option("--systems", default=",".join(SYSTEMS), show_default=True, callback=_chosen, help="Separated by commas.")
@click.option("-k", "--top", "k", default=100, show_default=True, type=click.IntRange(100), help="Depth of rankings.")
@click.option("--exact", is_flag=True, help="Exact lists for evidence, instead of ANN lists.")
@click.option("--limit", type=click.IntRange(1), help="Ask the first N queries only; no record is written.")
@click.option("--seed", default=0, show_default=True, help="Of the tests and intervals in the table.")
@click.option("--data", default=DATA, type=click.Path(path_type=Path), help="Folder that holds the datasets.")
@click.option("--work", default=WORK, type=click.Path(path_type=Path), help="Folder for indexes; kept and resumed.")
@click.option("--out", default=RESULTS, type=click.Path(path_type=Path), help="Folder for records.")
@click.option("--run-out", type=click.Path(path_type=Path), help="Folder for runs in TREC's format.")
@click.pass_context
def main(
    context: click.Context,
    name: str,
    encoder: str,
    split: str,
    systems: tuple[str, ...],
    k: int,
    exact: bool,
    limit: int | None,
    seed: int,
    data: Path,
    work: Path,
    out: Path,
    run_out: Path | None,
) -> None:
    """Measure retrieval on DATASET, a task by name or a folder, and write a record for each system.

    \b
    Example:
        python -m benchmarks.retrieval proposals --encoder mean --systems evidence,bm25
    """
    if not encoder and systems != ("bm25",):
        raise click.UsageError("--encoder is needed for the systems evidence and document; or pass --systems bm25")
    command = command_line("benchmarks.retrieval", context, leave_out=("data", "work", "out", "run_out"))
    try:
        dataset = open_dataset(name, data)
        qrels = dict(islice(read_qrels(dataset, split).items(), limit))
        queries = read_queries(dataset, qrels)
        trial = Trial(dataset, split, qrels, queries, k, describe_origin(command, seed))
        records = []
        for system, cost in prepared_systems(systems, dataset, encoder, work, exact=exact):
            _tell(f"{dataset.name}: {len(queries)} queries to {system.name}")
            record, run = measure(system, cost, trial)
            records.append(record)
            if run_out:
                write_trec(run, run_out / f"{record.name}.trec", record.system)
            if limit is None:
                write_record(record, out)
    except EngineError as error:
        raise click.ClickException(str(error)) from error
    click.echo(retrieval_table(records))


if __name__ == "__main__":
    main()
