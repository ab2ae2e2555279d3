"""Measures what scorers of pairs gain as re-rankers of the first targets that a system finds; a record for each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.datasets import DatasetError, checksum, open_dataset, read_documents
from benchmarks.metrics import evaluate, rounded_per_query
from benchmarks.options import data_option, log, out_option, work_option
from benchmarks.pairs.building import PROTOCOLS
from benchmarks.pairs.measuring import measure_each, refuse_failed
from benchmarks.pairs.options import (
    QUICK_PAIRS,
    budget_of,
    documents_to_fit,
    fitting_options,
    read_scorer_options,
    scorers_option,
)
from benchmarks.pairs.preparing import Asked, prepared_pairs
from benchmarks.pairs.rerank_record import FirstStage, RerankRecord
from benchmarks.pairs.rerank_table import rerank_table
from benchmarks.pairs.reranked import Rankings, by_relevance, rerank
from benchmarks.pairs.scorer import Budget, Fit, PairScorer
from benchmarks.pairs.scorers import LEARNED
from benchmarks.pairs.splitting import PairSplits, Split, SplitRule, documents_of, pairs_checksum
from benchmarks.program import origin_of, program
from benchmarks.quick import quick_part
from benchmarks.record_file import RESULTS
from benchmarks.retrieval import ALL_SYSTEMS, Trial, open_trial, prepared_systems, rank
from benchmarks.systems import Settings
from engine.document import Document
from engine.encoders.backbone.weights import BUNDLED_NAME

QUICK_DEPTH = 5


@dataclass(frozen=True)
class Reranking:
    """What every scorer gets alike: the rankings of the first system, and the pairs to learn from."""

    trial: Trial
    first: FirstStage
    run: Rankings
    depth: int
    protocol: str
    splits: PairSplits
    documents: Mapping[str, Document]  # of pairs, queries, and the targets that are scored
    budget: Budget
    is_quick: bool


def measure(scorer: PairScorer, reranking: Reranking, chosen: Settings | None = None) -> RerankRecord:
    """Fit a scorer on train and valid, and judge the rankings that it makes of those of the first system.

    Args:
        scorer: not fitted yet.
        reranking: see there.
        chosen: those of its settings that are not its defaults, for the record.

    Raises:
        DatasetError: a score is no finite number.
    """
    trial, splits = reranking.trial, reranking.splits
    started = time.perf_counter()
    train, valid = splits[Split.TRAIN], splits[Split.VALID]
    scorer.fit(Fit(reranking.documents, train, valid, reranking.budget, trial.origin.seed))
    fitted = time.perf_counter()
    run = rerank(reranking.run, scorer, reranking.depth)
    seconds = time.perf_counter() - fitted
    return RerankRecord(
        task=trial.dataset.name,
        dataset=f"{trial.dataset.name}@{checksum(trial.dataset)}",
        split=trial.split,
        is_quick=reranking.is_quick,
        first=reranking.first,
        depth=reranking.depth,
        k=trial.k,
        protocol=reranking.protocol,
        pairs=pairs_checksum(splits),
        n_pairs={split.value: len(pairs) for split, pairs in splits.items()},
        scorer=scorer.name,
        encoder=scorer.encoder,
        settings=dict(scorer.settings),
        chosen=chosen or {},
        budget=reranking.budget,
        course=scorer.course,
        fit_seconds=round(fitted - started, 2),
        seconds_per_query=round(seconds / len(run), 4),
        query_ids=list(trial.qrels),
        before=_judged(trial, reranking.run),
        after=_judged(trial, run),
        at_best=_judged(trial, by_relevance(reranking.run, trial.qrels, reranking.depth)),
        origin=trial.origin,
    )


def _judged(trial: Trial, run: Rankings) -> dict[str, list[float]]:
    values = evaluate(trial.qrels, {query_id: [target for target, _ in ranking] for query_id, ranking in run.items()})
    return rounded_per_query(values)


@program
@click.argument("name", metavar="DATASET")
@scorers_option("re2", LEARNED)
@click.option("--first", default="bm25", show_default=True, type=click.Choice(ALL_SYSTEMS), help="Whose targets.")
@click.option("--first-encoder", default=BUNDLED_NAME, show_default=True, help="Of evidence and document as --first.")
@click.option("--depth", default=20, show_default=True, type=click.IntRange(2), help="Targets of a query scored.")
@click.option("--protocol", type=click.Choice(list(PROTOCOLS)), default="aan", show_default=True, help="Of the pairs.")
@click.option("--most-pairs", type=click.IntRange(1), help="Matching pairs of a split, and as many others.")
@fitting_options
@click.option("--split", default="test", show_default=True, help="Whose queries are asked.")
@click.option("-k", "--top", "k", default=100, show_default=True, type=click.IntRange(100), help="Depth of rankings.")
@click.option("--seed", default=0, show_default=True, help="Of pairs, training, tests and intervals.")
@click.option("--quick", is_flag=True, help="A small part, few pairs, few steps; no record without --out.")
@data_option
@work_option
@out_option
@click.pass_context
def main(
    context: click.Context,
    /,
    name: str,
    scorers: tuple[str, ...],
    first: str,
    first_encoder: str,
    depth: int,
    protocol: str,
    most_pairs: int | None,
    split: str,
    k: int,
    seed: int,
    quick: bool,
    data: Path,
    work: Path,
    out: Path | None,
    **given: Any,  # noqa: ANN401
) -> None:
    """Re-rank the first targets that a system finds in DATASET by scorers of pairs, and write a record for each.

    DATASET is a task by name, or a folder of the same layout whose queries are documents of its corpus. Scorers
    learn from its pairs as in benchmarks.matching, so that no query that is asked stands in a pair.

    \b
    Example:
        python -m benchmarks study rerank proposals --scorers re2,han --first bm25 --depth 20 --steps 300
    """
    folder = out or (None if quick else RESULTS)
    asked = Asked(protocol, SplitRule.DOCUMENT, None, seed, QUICK_PAIRS if quick else most_pairs)
    prepared = prepared_pairs(name, data, asked)
    dataset = open_dataset(name, data)
    dataset = quick_part(dataset, split, work / "quick", seed=seed) if quick else dataset
    trial = open_trial(dataset, split, k, None, origin_of(context, seed))
    _refuse_seen(trial, prepared.splits)
    depth = min(depth, QUICK_DEPTH) if quick else depth
    stage, run = _first_stage(first, first_encoder, trial, work)
    scored = {target for ranking in run.values() for target, _ in ranking[:depth]}
    reranking = Reranking(
        trial=trial,
        first=stage,
        run=run,
        depth=depth,
        protocol=protocol,
        splits=prepared.splits,
        documents={
            **documents_to_fit(prepared, quick=quick),
            **{one.doc_id: one for one in read_documents(dataset) if one.doc_id in scored},
            **trial.queries,
        },
        budget=budget_of(given, quick=quick),
        is_quick=quick,
    )
    options = read_scorer_options(given, prepared, work, quick=quick)
    records, failed = measure_each(
        scorers,
        options,
        lambda scorer, chosen: measure(scorer, reranking, chosen),
        told=f"{trial.dataset.name}: the first {depth} targets of each query",
        folder=folder,
    )
    click.echo(rerank_table(records))
    refuse_failed(failed, len(scorers))


def _refuse_seen(trial: Trial, splits: PairSplits) -> None:
    """Refuse queries of which scorers have learned, or by which their weights are chosen.

    Raises:
        DatasetError: there are some.
    """
    seen = trial.queries.keys() & documents_of([*splits[Split.TRAIN], *splits[Split.VALID]])
    if seen:
        raise DatasetError(
            f"{len(seen)} of {len(trial.queries)} queries of split {trial.split!r} stand in pairs that scorers learn "
            f"from or are chosen by, such as {min(seen)!r}; ask those of test: --split test"
        )


def _first_stage(name: str, encoder: str, trial: Trial, work: Path) -> tuple[FirstStage, Rankings]:
    log(f"{trial.dataset.name}: {len(trial.queries)} queries to {name}")
    prepared = prepared_systems([name], trial.dataset, encoder, work, exact=False, seed=trial.origin.seed)
    ((stage, run),) = [
        (FirstStage(system.name, system.encoder, system.settings), rank(system, trial.queries.values(), trial.k)[0])
        for system, _ in prepared
    ]
    return stage, run
