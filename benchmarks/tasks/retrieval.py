"""Measures how well systems find the relevant targets of whole documents; writes a run for each system."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import click

from benchmarks.datasets import Dataset, Qrels, checksum, read_documents, read_qrels, read_queries
from benchmarks.formats.trec import write_qrels, write_run
from benchmarks.lexical import LEXICAL, fitted
from benchmarks.program import Measurement, log, measurement, names_of, task
from benchmarks.quick import PARTS, WHOLE, part_of
from benchmarks.runs import Run, ranked_case
from benchmarks.systems import SCORINGS, BuildCost, DocumentCosine, Evidence, Ranking, System
from benchmarks.tables.quality import retrieval_table
from engine.encoders.files import BUNDLED_NAME
from engine.machine import Origin
from engine.text.document import Document

SYSTEMS = (*SCORINGS, "document", "bm25")  # the default systems
OF_ENCODERS = frozenset((*SCORINGS, "document"))
WORDS_ALONE = "words"  # the system of `OF_ENCODERS` that needs no vectors, and alone no encoder
ALL_SYSTEMS = (*SCORINGS, "document", *LEXICAL)
WORDS, TARGET_WORDS = "words", "target_words"  # facts of a case: words of the query, median words of its targets


@dataclass(frozen=True)
class Trial:
    """The data that is equal for every system."""

    dataset: Dataset
    split: str
    qrels: Qrels
    queries: dict[str, Document]
    k: int
    origin: Origin
    part: str = WHOLE
    facts: Mapping[str, dict[str, float]] | None = None  # by query


def open_trial(dataset: Dataset, split: str, k: int, origin: Origin, part: str = WHOLE) -> Trial:
    """Read the queries of a split and their judgments.

    Queries are reduced to `part` of each document; see `benchmarks.quick.part_of`.
    """
    qrels = read_qrels(dataset, split)
    lengths = _target_lengths(dataset, qrels)
    absent = sorted(_relevant(qrels) - lengths.keys())
    if absent:
        log(
            f"{dataset.name}: {len(absent)} relevant targets are not in {dataset.corpus.name}, the first is "
            f"{absent[0]!r}; they count as not found"
        )
    queries = read_queries(dataset, qrels)
    facts = {query_id: _facts(query, qrels[query_id], lengths) for query_id, query in queries.items()}
    parts = {name: part_of(query, part) for name, query in queries.items()}
    return Trial(dataset, split, qrels, parts, k, origin, part, facts)


def _relevant(qrels: Qrels) -> set[str]:
    return {doc_id for targets in qrels.values() for doc_id, relevance in targets.items() if relevance > 0}


def _target_lengths(dataset: Dataset, qrels: Qrels) -> dict[str, int]:
    """The numbers of words of the relevant targets in the corpus, in one pass over it."""
    needed = _relevant(qrels)
    return {
        document.doc_id: len(document.text.split()) for document in read_documents(dataset) if document.doc_id in needed
    }


def _facts(query: Document, targets: Mapping[str, int], lengths: Mapping[str, int]) -> dict[str, float]:
    found = [lengths[doc_id] for doc_id, relevance in targets.items() if relevance > 0 and doc_id in lengths]
    return {WORDS: float(len(query.text.split())), **({TARGET_WORDS: float(median(found))} if found else {})}


def measure(system: System, cost: BuildCost, trial: Trial) -> tuple[Run, dict[str, Ranking]]:
    """Search with every query of the trial; returns the run, and the rankings to their full depth."""
    started = time.perf_counter()
    rankings = {query_id: system.search(query, trial.k) for query_id, query in trial.queries.items()}
    seconds = time.perf_counter() - started
    facts = trial.facts or {}
    lists = "exact" if system.settings.get("exact") else ""
    variant = "-".join(filter(None, (lists, trial.part if trial.part != WHOLE else "")))
    run = Run(
        task="retrieval",
        dataset=f"{trial.dataset.name}@{checksum(trial.dataset)}",
        system=system.name,
        encoder=system.encoder,
        settings=system.settings,
        variant=variant,
        split=trial.split,
        k=trial.k,
        fit_seconds=cost.seconds,
        n_tokens=cost.n_tokens,
        seconds=round(seconds, 2),
        details={"part": trial.part},
        origin=replace(trial.origin, seed=0),
        cases=[
            ranked_case(query_id, rankings[query_id], targets, facts=facts.get(query_id, {}))
            for query_id, targets in trial.qrels.items()
        ],
    )
    return run, rankings


def prepared_systems(
    names: Collection[str], dataset: Dataset, encoder: str, work: Path, *, exact: bool
) -> Iterator[tuple[System, BuildCost]]:
    """Yield the named systems one by one, each ready to search the corpus."""
    if OF_ENCODERS & set(names) == {WORDS_ALONE}:
        from benchmarks.prepare import prepared_words

        with prepared_words(dataset, work, log=log) as ready:
            yield Evidence(ready.index, ready.encoder, name=WORDS_ALONE, exact=exact), ready.cost
    elif OF_ENCODERS & set(names):
        # BM25 alone needs neither torch nor FAISS.
        from benchmarks.prepare import prepared_index

        with prepared_index(dataset, encoder, work, log=log) as ready:
            for name in SCORINGS:
                if name in names:
                    yield Evidence(ready.index, ready.encoder, name=name, exact=exact), ready.cost
            if "document" in names:
                yield DocumentCosine(ready.index, ready.encoder), ready.cost
    yield from (fitted(name, read_documents(dataset)) for name in LEXICAL if name in names)


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, help="Encoder of the index, and of all systems that need one.")
@click.option("--split", default="test", help="Split to search with.")
@click.option(
    "--systems", default=",".join(SYSTEMS), callback=names_of(ALL_SYSTEMS), help="Systems, separated by commas."
)
@click.option("--part", type=click.Choice(PARTS), default=WHOLE, help="Part of each query document to search with.")
@click.option("-k", "--top", "k", default=100, type=click.IntRange(100), help="Depth of rankings.")
@click.option("--run-out", type=click.Path(path_type=Path), help="Folder for runs and judgments in TREC's format.")
@measurement(
    seed="Seed of tests and intervals in the table, and of --quick.",
    quick="A small seeded part of DATASET",
    encodes=True,
)
def main(
    call: Measurement,
    name: str,
    encoder: str,
    split: str,
    systems: tuple[str, ...],
    part: str,
    k: int,
    run_out: Path | None,
) -> None:
    """Rank the documents of DATASET for its queries, a run for each system.

    DATASET is a task by name or a folder, in the layout of this project or of BEIR.

    \b
    Example:
        python -m benchmarks run retrieval proposals --systems words,tfidf,bm25
        python -m benchmarks run retrieval my_corpus/ --out my_results/
    """
    dataset = call.dataset(name, split)
    trial = open_trial(dataset, split, k, call.origin, part)
    runs = []
    ready = prepared_systems(systems, dataset, encoder, call.work, exact=False)
    for system, cost in ready:
        log(f"{dataset.name}: {len(trial.queries)} queries to {system.name}")
        run, rankings = measure(system, cost, trial)
        runs.append(run)
        call.keep(run)
        if run_out:
            write_run(rankings, run_out / f"{run.name}.trec", run.system)
            write_qrels(trial.qrels, run_out / f"{dataset.name}-{split}.qrels")
    click.echo(retrieval_table(runs))
