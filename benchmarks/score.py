"""Judges existing runs, the project's own or in TREC's format; records nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

from benchmarks import runs
from benchmarks.formats.trec import FormatError, Qrels, read_qrels, read_run
from benchmarks.metrics import MEASURED, evaluate
from benchmarks.program import program
from benchmarks.significance import bootstrap_interval, randomization_p
from benchmarks.systems import Ranking
from benchmarks.tables.pivot import Cell, p_cells, pivot


@dataclass(frozen=True)
class Score:
    """One measure of a run."""

    measure: str  # one of `MEASURED`
    mean: float  # over queries, in [0, 1]
    low: float  # ends of its 95 % bootstrap interval
    high: float
    other: float | None = None  # mean of the other run
    p: float | None = None  # of the difference: two-sided paired randomisation test


def score_run(
    run: Mapping[str, Ranking], qrels: Qrels, *, other: Mapping[str, Ranking] | None = None, seed: int = 0
) -> list[Score]:
    """Judge a run, and compare it with another one, by judgments that have a relevant target of each query.

    A query that a run lacks counts 0, a query without judgments is skipped.
    """
    judged, others = _values(run, qrels), _values(other, qrels) if other else {}
    scores = []
    for name in MEASURED:
        values = judged[name]
        low, high = bootstrap_interval(values, seed=seed)
        score = Score(name, sum(values) / len(values), low, high)
        if rival := others.get(name):
            score = replace(score, other=sum(rival) / len(rival), p=randomization_p(values, rival, seed=seed))
        scores.append(score)
    return scores


def judged_queries(qrels: Qrels) -> Qrels:
    """The judgments of queries that have a relevant target; others cannot measure a ranking."""
    kept = {query_id: targets for query_id, targets in qrels.items() if max(targets.values()) > 0}
    if not kept:
        raise FormatError(f"none of {len(qrels)} judged queries has a target of relevance 1 or above; give other qrels")
    return kept


def _values(run: Mapping[str, Ranking], qrels: Qrels) -> dict[str, list[float]]:
    judged = evaluate(qrels, {query_id: [target for target, _ in ranking] for query_id, ranking in run.items()})
    return {name: list(by_query.values()) for name, by_query in judged.items()}


def _table(scores: Sequence[Score], names: Sequence[str], n_queries: int) -> str:
    columns: dict[str, Cell[Score] | Sequence[str]] = {
        f"{n_queries:,} queries": lambda score: score.measure,
        f"{names[0]} [95 %]": lambda score: f"{score.mean:.4f} [{score.low:.4f}, {score.high:.4f}]",
    }
    if len(names) == 1:
        return "\n".join(pivot(scores, columns))
    columns |= {names[1]: lambda score: f"{score.other:.4f}", "p": p_cells([score.p for score in scores])}
    note = "p: two-sided paired randomisation test, adjusted after Holm over the measures."
    return "\n".join([*pivot(scores, columns), "", note])


@program
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("qrels", type=click.Path(path_type=Path))
@click.option("--against", type=click.Path(path_type=Path), help="Another run of the same queries.")
@click.option("--seed", default=0, help="Seed of intervals and tests.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per measure.")
def main(run: Path, qrels: Path, against: Path | None, seed: int, as_json: bool) -> None:
    """Judge the run RUN by the judgments QRELS in TREC's format.

    RUN is in TREC's format, or a run file of this project (.jsonl.gz), of which the rankings are read.

    \b
    Example:
        python -m benchmarks score runs/rfc-bm25-test.trec runs/rfc-test.qrels
        python -m benchmarks score mine.trec runs/rfc-test.qrels --against runs/rfc-bm25-test.trec
    """
    paths = [run, *([against] if against else [])]
    judged = judged_queries(read_qrels(qrels))
    read = [_read(path, judged) for path in paths]
    scores = score_run(read[0], judged, other=read[1] if against else None, seed=seed)
    if as_json:
        click.echo("\n".join(json.dumps(asdict(score)) for score in scores))
    else:
        click.echo(_table(scores, [path.name for path in paths], len(judged)))


def _read(path: Path, qrels: Qrels) -> dict[str, Ranking]:
    if path.name.endswith(".jsonl.gz"):
        run = runs.read_run(path)
        if not run.k:
            raise FormatError(f"{path} holds values and no rankings; rerun it: {run.origin.command}")
        rankings = {case.id: case.ranking for case in run.cases}
    else:
        rankings = read_run(path)
    found = {query_id: ranking for query_id, ranking in rankings.items() if query_id in qrels}
    if not found:
        raise FormatError(f"{path} ranks nothing for any of {len(qrels)} judged queries; give the judgments of its run")
    return found
