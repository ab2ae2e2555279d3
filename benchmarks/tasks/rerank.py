"""Measures scorers of pairs as re-rankers of the first targets that a system finds; writes a run for each.

They are compared with the run of the first system, and with its targets in the order of their relevance.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click
import numpy as np

from benchmarks.datasets import TASKS, DatasetError, Qrels, checksum, read_documents
from benchmarks.markdown import compared, interval_text, markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.metrics import PRIMARY
from benchmarks.options import log
from benchmarks.pairs.building import PROTOCOLS
from benchmarks.pairs.judging import finite_scores
from benchmarks.pairs.scorer import Budget, Course, Fit, Pair, PairScorer
from benchmarks.pairs.scorers import (
    LEARNED,
    QUICK_PAIRS,
    budget_of,
    documents_to_fit,
    fitting_options,
    measure_each,
    read_scorer_options,
    refuse_failed,
    systems_option,
)
from benchmarks.pairs.sources import Asked, prepared_pairs
from benchmarks.pairs.splitting import PairSplits, Split, SplitRule, documents_of, pairs_checksum
from benchmarks.pairs.tables import chosen_texts, course_text
from benchmarks.program import task
from benchmarks.runs import Run, ranked_case
from benchmarks.systems import Ranking, Settings
from benchmarks.tasks.pairs import chosen_digest
from benchmarks.tasks.retrieval import ALL_SYSTEMS, Trial, open_trial, prepared_systems, rank
from engine.document import Document
from engine.encoders.backbone.weights import BUNDLED_NAME

QUICK_DEPTH = 5
BEST = "at best"  # the system that knows the judgments
_MRR = "MRR@10"
_NOTE = (
    f"{PRIMARY} with a bootstrap interval over queries. In bold: the first system, whose first targets the others put "
    f"into another order; {BEST}: in that of their relevance. p: two-sided paired randomisation test of {PRIMARY} "
    "against the first system, adjusted after Holm over the rows of a task. Scorers learned from pairs of train, and "
    "their weights were chosen by pairs of valid; no query of test stands in either. Steps: updates made, those of "
    "pretraining before the +, and in brackets the one whose weights were kept."
)


@dataclass(frozen=True)
class RerankDetails:
    """The details of a run of re-ranking, besides its rankings."""

    first: str  # the system whose first targets are re-ranked, with its encoder
    first_settings: Settings
    depth: int  # targets of a query that are scored
    protocol: str = ""  # of the pairs that the scorer learned from; "" without learning
    pairs: str = ""  # checksum of these pairs
    chosen: Settings | None = None
    budget: Budget | None = None
    course: Course | None = None


@dataclass(frozen=True)
class Reranking:
    """The data and budget that are equal for every scorer."""

    trial: Trial
    first: RerankDetails
    rankings: Mapping[str, Ranking]  # of the first system
    protocol: str
    splits: PairSplits
    documents: Mapping[str, Document]  # documents of pairs, queries, and scored targets
    budget: Budget


def rerank(rankings: Mapping[str, Ranking], scorer: PairScorer, depth: int) -> dict[str, Ranking]:
    """Put the first `depth` targets of every query into the order of a fitted scorer.

    Targets of equal scores keep their order, and targets below the first `depth` keep their ranks. The scores of
    system and scorer cannot be compared, so the new score counts down from the number of targets to 1.

    Raises:
        DatasetError: a score is not finite.
    """
    return {query_id: _rerank(query_id, ranking, scorer, depth) for query_id, ranking in rankings.items()}


def by_relevance(rankings: Mapping[str, Ranking], qrels: Qrels, depth: int) -> dict[str, Ranking]:
    """Sort the first `depth` targets of every query by relevance: the best possible result of `rerank`."""
    ordered: dict[str, Ranking] = {}
    for query_id, ranking in rankings.items():
        targets = [target for target, _ in ranking]
        first = sorted(targets[:depth], key=lambda target: -qrels[query_id].get(target, 0))
        ordered[query_id] = _counted_down([*first, *targets[depth:]])
    return ordered


def _rerank(query_id: str, ranking: Ranking, scorer: PairScorer, depth: int) -> Ranking:
    targets = [target for target, _ in ranking]
    first = targets[:depth]
    # Scorers do not read is_match of a pair.
    scores = finite_scores(scorer, [Pair(query_id, target, is_match=False) for target in first])
    return _counted_down([*(first[int(at)] for at in np.argsort(-scores, kind="stable")), *targets[depth:]])


def _counted_down(targets: Sequence[str]) -> Ranking:
    return [(target, float(len(targets) - place)) for place, target in enumerate(targets)]


def measure(scorer: PairScorer, reranking: Reranking, chosen: Settings | None = None) -> Run:
    """Fit a scorer on train and valid, and rank the first targets by it.

    Args:
        scorer: the scorer, not fitted yet.
        reranking: see `Reranking`.
        chosen: the settings of the scorer that differ from its defaults.

    Raises:
        DatasetError: a score is not finite.
    """
    splits, first = reranking.splits, reranking.first
    started = time.perf_counter()
    train, valid = splits[Split.TRAIN], splits[Split.VALID]
    scorer.fit(Fit(reranking.documents, train, valid, reranking.budget, reranking.trial.origin.seed))
    fitted = time.perf_counter()
    rankings = rerank(reranking.rankings, scorer, first.depth)
    details = RerankDetails(
        first=first.first,
        first_settings=first.first_settings,
        depth=first.depth,
        protocol=reranking.protocol,
        pairs=pairs_checksum(splits),
        chosen=chosen or {},
        budget=reranking.budget,
        course=scorer.course,
    )
    return run_of(
        scorer.name,
        rankings,
        reranking.trial,
        details,
        encoder=scorer.encoder,
        settings=dict(scorer.settings),
        fit_seconds=round(fitted - started, 2),
        seconds=round(time.perf_counter() - fitted, 2),
    )


def run_of(system: str, rankings: Mapping[str, Ranking], trial: Trial, details: RerankDetails, **given: Any) -> Run:  # noqa: ANN401
    """A run of re-ranking, named by stage, scorer, pairs and chosen settings."""
    stage = details.first.replace(", ", "-") if system != details.first else ""
    digest = chosen_digest(details.chosen or {}, details.budget)
    parts = (stage, f"first{details.depth}", details.protocol, details.pairs[:6], digest)
    return Run(
        task="rerank",
        dataset=f"{trial.dataset.name}@{checksum(trial.dataset)}",
        system=system,
        variant="-".join(filter(None, parts)),
        split=trial.split,
        k=trial.k,
        details=asdict(details),
        origin=trial.origin,
        cases=[ranked_case(query_id, rankings[query_id], targets) for query_id, targets in trial.qrels.items()],
        **given,
    )


def rerank_table(runs: Sequence[Run]) -> str:
    """Rows by task and first system: this system, the best order of its targets, then scorers; "" without runs."""
    shown = sorted(
        runs, key=lambda run: (*_stage(run), run.system != _first(run), run.system == BEST, -run.mean(PRIMARY))
    )
    firsts = {(run.dataset, *_stage(run)): run for run in runs if run.system == _first(run)}
    p_values = compared(shown, lambda run: firsts.get((run.dataset, *_stage(run))), PRIMARY)
    head = ["Task (queries)", "First targets", "Ranked by", f"{PRIMARY} [95 %]", _MRR, "s a query", "Steps", "p"]
    rows = [[*_row(run), "" if run.system == BEST else p] for run, p in zip(shown, p_values, strict=True)]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(shown)]) if shown else ""


def _stage(run: Run) -> tuple[int, str, str, str, int]:
    details = run.details_as(RerankDetails)
    place = [*TASKS, run.corpus].index(run.corpus), run.corpus, run.split
    return *place, details.first, details.depth


def _first(run: Run) -> str:
    return run.details_as(RerankDetails).first


def _row(run: Run) -> list[str]:
    details = run.details_as(RerankDetails)
    split = "" if run.split == "test" else f", {run.split}"
    pairs = [f"pairs {details.protocol}"] if details.protocol else []
    name = ", ".join([run.label, *chosen_texts(details.chosen or {}), *pairs])
    return [
        f"{run.corpus}{split} ({len(run.cases)})",
        f"{details.first}, {details.depth}",
        f"**{name}**" if run.system == details.first else name,
        interval_text(run, PRIMARY),
        f"{run.mean(_MRR):.3f}",
        f"{run.seconds / len(run.cases):.2f}" if details.protocol else "",
        course_text(details.course) if details.course else "",
    ]


@task
@click.argument("name", metavar="DATASET")
@systems_option("re2", LEARNED)
@click.option("--first", default="bm25", type=click.Choice(ALL_SYSTEMS), help="Whose targets.")
@click.option("--first-encoder", default=BUNDLED_NAME, help="Of evidence and document as --first.")
@click.option("--depth", default=20, type=click.IntRange(2), help="Targets of a query scored.")
@click.option("--protocol", type=click.Choice(list(PROTOCOLS)), default="aan", help="Of the pairs.")
@click.option("--most-pairs", type=click.IntRange(1), help="Matching pairs of a split, and as many others.")
@fitting_options
@click.option("--split", default="test", help="Whose queries are searched with.")
@click.option("-k", "--top", "k", default=100, type=click.IntRange(100), help="Depth of rankings.")
@measurement(seed="Of pairs, training, tests and intervals.", quick="A small part, few pairs, few steps", encodes=True)
def main(
    call: Measurement,
    name: str,
    systems: tuple[str, ...],
    first: str,
    first_encoder: str,
    depth: int,
    protocol: str,
    most_pairs: int | None,
    split: str,
    k: int,
    **given: Any,  # noqa: ANN401
) -> None:
    """Re-rank the first targets of a system by scorers of pairs, a run for each.

    Scorers learn from pairs of train, split by documents; queries of test are in none of these pairs.

    \b
    Example:
        python -m benchmarks run rerank proposals --systems re2,han --first bm25 --depth 20 --steps 300
    """
    most = QUICK_PAIRS if call.is_quick else most_pairs
    prepared = prepared_pairs(name, call.data, Asked(protocol, SplitRule.DOCUMENT, None, call.seed, most))
    dataset = call.dataset(name, split)
    trial = open_trial(dataset, split, k, None, call.origin)
    _refuse_seen(trial, prepared.splits)
    log(f"{dataset.name}: {len(trial.queries)} queries to {first}")
    ready = prepared_systems([first], dataset, first_encoder, call.work, exact=False, seed=call.seed)
    ((system, rankings, seconds),) = [(one, *rank(one, trial.queries.values(), k)) for one, _ in ready]
    label = ", ".join(filter(None, (system.name, system.encoder.partition("@")[0])))
    stage = RerankDetails(label, system.settings, min(depth, QUICK_DEPTH) if call.is_quick else depth)
    scored = {target for ranking in rankings.values() for target, _ in ranking[: stage.depth]}
    reranking = Reranking(
        trial=trial,
        first=stage,
        rankings=rankings,
        protocol=protocol,
        splits=prepared.splits,
        documents={
            **documents_to_fit(prepared, None, quick=call.is_quick),
            **{one.doc_id: one for one in read_documents(dataset) if one.doc_id in scored},
            **trial.queries,
        },
        budget=budget_of(given, quick=call.is_quick),
    )
    best = by_relevance(rankings, trial.qrels, stage.depth)
    runs = [run_of(label, rankings, trial, stage, seconds=round(seconds, 2)), run_of(BEST, best, trial, stage)]
    for run in runs:
        call.keep(run)
    more, failed = measure_each(
        systems,
        read_scorer_options(given, prepared, call.work, quick=call.is_quick),
        lambda scorer, chosen: measure(scorer, reranking, chosen),
        task=f"{dataset.name}: the first {stage.depth} targets of each query",
        keep=call.keep,
    )
    click.echo(rerank_table([*runs, *more]))
    refuse_failed(failed, len(systems))


def _refuse_seen(trial: Trial, splits: PairSplits) -> None:
    """Refuse queries in pairs from which scorers learn, or by which their parameters are chosen.

    Raises:
        DatasetError: there are such queries.
    """
    seen = trial.queries.keys() & documents_of([*splits[Split.TRAIN], *splits[Split.VALID]])
    if seen:
        raise DatasetError(
            f"{len(seen)} of {len(trial.queries)} queries of split {trial.split!r} stand in pairs that scorers learn "
            f"from or are chosen by, such as {min(seen)!r}; ask those of test: --split test"
        )
