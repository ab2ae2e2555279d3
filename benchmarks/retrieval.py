"""Measures how well systems find the relevant targets of whole documents; writes a record for each system."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import click

from benchmarks.baselines.text_baselines import TEXT_BASELINES, fitted_baselines
from benchmarks.bm25 import BM25
from benchmarks.cut import PARTS, WHOLE, part_of
from benchmarks.datasets import (
    Dataset,
    Qrels,
    absent_targets,
    checksum,
    open_dataset,
    read_documents,
    read_qrels,
    read_queries,
)
from benchmarks.formats.trec import write_qrels, write_run
from benchmarks.metrics import evaluate, means, rounded_per_query
from benchmarks.options import data_option, log, names_of, out_option, work_option
from benchmarks.program import origin_of, program
from benchmarks.quality_tables import retrieval_table
from benchmarks.quick import quick_part
from benchmarks.record_file import RESULTS, write_record
from benchmarks.records import BuildCost, RetrievalRecord
from benchmarks.runs import Run, rank, rank_sections
from benchmarks.systems import SCORINGS, DocumentCosine, Evidence, System
from engine.document import Document
from engine.encoders.backbone.weights import BUNDLED_NAME
from indexer.training.origin import Origin

SYSTEMS = (*SCORINGS, "document", "bm25")  # by default
OF_ENCODERS = frozenset((*SCORINGS, "document"))
ALL_SYSTEMS = (*SYSTEMS, *TEXT_BASELINES)
SECTION_DOCUMENTS = 10  # whose sections stand in a run of sections


@dataclass(frozen=True)
class Trial:
    """What every system is asked alike."""

    dataset: Dataset
    split: str
    qrels: Qrels
    queries: dict[str, Document]
    k: int
    origin: Origin
    part: str = WHOLE


def open_trial(dataset: Dataset, split: str, k: int, limit: int | None, origin: Origin, part: str = WHOLE) -> Trial:
    """Read the queries of a split, the first `limit` where it is given, and their judgments.

    The queries are a part of each document, see `benchmarks.cut.part_of`.

    Raises:
        DatasetError: there is no such split, or its files do not fit together.
        FormatError: the same, of a folder of BEIR.
    """
    qrels = dict(islice(read_qrels(dataset, split).items(), limit))
    absent = absent_targets(dataset, qrels)
    if absent:
        log(
            f"{dataset.name}: {len(absent)} relevant targets are not in {dataset.corpus.name}, the first is "
            f"{absent[0]!r}; they count as not found"
        )
    queries = {name: part_of(query, part) for name, query in read_queries(dataset, qrels).items()}
    return Trial(dataset, split, qrels, queries, k, origin, part)


def measure(system: System, cost: BuildCost, trial: Trial) -> tuple[RetrievalRecord, Run]:
    """Run every query of the trial and judge the rankings."""
    run, seconds = rank(system, trial.queries.values(), trial.k)
    rankings = {query_id: [hit for hit, _ in ranking] for query_id, ranking in run.items()}
    values = evaluate(trial.qrels, rankings, depth=trial.k)
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
        per_query=rounded_per_query(values),
        origin=trial.origin,
        part=trial.part,
    )
    return record, run


def prepared_systems(
    names: Collection[str],
    dataset: Dataset,
    encoder: str,
    work: Path,
    *,
    exact: bool,
    vectors: Path | None = None,
    seed: int = 0,
) -> Iterator[tuple[System, BuildCost]]:
    """The systems of these names, one after the other, ready to search the corpus.

    Args:
        names: some of `ALL_SYSTEMS`.
        dataset: whose corpus is searched.
        encoder: of the systems in `OF_ENCODERS`.
        work: folder of indexes.
        exact: search exactly.
        vectors: a text file of word vectors, for the baselines that need some.
        seed: of baselines that learn.
    """
    if OF_ENCODERS & set(names):
        # BM25 alone needs neither torch nor FAISS.
        from benchmarks.prepare import prepared_index

        with prepared_index(dataset, encoder, work, log=log) as ready:
            for name in SCORINGS:
                if name in names:
                    yield Evidence(ready.index, ready.encoder, name=name, exact=exact), ready.cost
            if "document" in names:
                yield DocumentCosine(ready.index, ready.encoder), ready.cost
    if "bm25" in names:
        yield _fit_bm25(dataset)
    chosen = [name for name in TEXT_BASELINES if name in names]
    yield from fitted_baselines(chosen, lambda: read_documents(dataset), vectors=vectors, seed=seed)


def _fit_bm25(dataset: Dataset) -> tuple[System, BuildCost]:
    started = time.perf_counter()
    bm25 = BM25().fit(read_documents(dataset))
    return bm25, BuildCost(round(time.perf_counter() - started, 1))


@program
@click.argument("name", metavar="DATASET")
@click.option(
    "--encoder", default=BUNDLED_NAME, show_default=True, help="Of the index, and of all systems that need one."
)
@click.option("--split", default="test", show_default=True, help="Whose queries are asked.")
@click.option(
    "--systems", default=",".join(SYSTEMS), show_default=True, callback=names_of(ALL_SYSTEMS), help="By commas."
)
@click.option(
    "--part", type=click.Choice(PARTS), default=WHOLE, show_default=True, help="Of each query document, to search with."
)
@click.option("-k", "--top", "k", default=100, show_default=True, type=click.IntRange(100), help="Depth of rankings.")
@click.option("--exact", is_flag=True, help="Exact search, instead of ANN lists.")
@click.option("--quick", is_flag=True, help="A small seeded part of DATASET; a record only where --out is given.")
@click.option("--limit", type=click.IntRange(1), help="Ask the first N queries only; no record is written.")
@click.option("--seed", default=0, show_default=True, help="Of tests and intervals in the table, and of --quick.")
@click.option(
    "--vectors", type=click.Path(path_type=Path, exists=True), help="Word vectors as text, for wmd and others."
)
@data_option
@work_option
@out_option
@click.option("--run-out", type=click.Path(path_type=Path), help="Folder for runs and judgments in TREC's format.")
@click.option("--sections", is_flag=True, help="With --run-out: also a run of the sections behind scores, DOC#SEC.")
@click.pass_context
def main(
    context: click.Context,
    name: str,
    encoder: str,
    split: str,
    systems: tuple[str, ...],
    part: str,
    k: int,
    exact: bool,
    quick: bool,
    limit: int | None,
    seed: int,
    vectors: Path | None,
    data: Path,
    work: Path,
    out: Path | None,
    run_out: Path | None,
    sections: bool,
) -> None:
    """Measure retrieval on DATASET, a task by name or a folder, and write a record for each system.

    A folder is in the project's own layout or in that of BEIR.

    \b
    Example:
        python -m benchmarks.retrieval proposals --encoder all-MiniLM-L6-v2 --systems evidence,bm25
        python -m benchmarks.retrieval my_corpus/ --out my_results/
    """
    folder = None if limit else out or (None if quick else RESULTS)
    dataset = open_dataset(name, data)
    dataset = quick_part(dataset, split, work / "quick", seed=seed) if quick else dataset
    trial = open_trial(dataset, split, k, limit, origin_of(context, seed), part)
    records = []
    for system, cost in prepared_systems(systems, dataset, encoder, work, exact=exact, vectors=vectors, seed=seed):
        log(f"{dataset.name}: {len(trial.queries)} queries to {system.name}")
        record, run = measure(system, cost, trial)
        records.append(record)
        if folder:
            write_record(record, folder)
        if run_out:
            write_run(run, run_out / f"{record.name}.trec", record.system)
            write_qrels(trial.qrels, run_out / f"{dataset.name}-{split}.qrels")
        if run_out and sections and isinstance(system, Evidence):
            section_run = rank_sections(system, trial.queries.values(), SECTION_DOCUMENTS)
            write_run(section_run, run_out / f"{record.name}-sections.trec", record.system)
    click.echo(retrieval_table(records))


if __name__ == "__main__":
    main()
