"""Kills `longmatch index` at random moments and at every durable step, and records what was lost."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.durability.fault_points import FaultPoint
from benchmarks.durability.interrupted import WAYS, Case, Moment, Outcome, Trial, prepare
from benchmarks.durability.records import KillRecord
from benchmarks.options import record_option
from benchmarks.program import origin_of, program
from benchmarks.record_file import write_record
from engine.encoders.loading import load_encoder
from engine.store.snapshot import Snapshot
from indexer.training.origin import Origin

DEMO = Path(__file__).resolve().parents[1] / "demo"
_MOST_FAULT_POINTS = 200
_OPENING_STEPS = 16  # second kills fall on steps up to this: opening, sweeping, first commit


def timed_moments(n: int, seconds: float, rng: np.random.Generator) -> list[float]:
    """Random moments of a run, one in each of `n` equal parts of it."""
    return [float(moment) for moment in (np.arange(n) + rng.random(n)) / n * seconds]


def fault_points(n_steps: int, most: int, rng: np.random.Generator) -> list[FaultPoint]:
    """Before and after every step; of more than `most`, a random choice in order."""
    points = [FaultPoint(step, is_after) for step in range(n_steps) for is_after in (False, True)]
    if len(points) <= most:
        return points
    return [points[number] for number in np.sort(rng.choice(len(points), most, replace=False))]


def run_cases(trial: Trial, n_kills: int, n_points: int, seed: int, log: Callable[[str], None]) -> Outcome:
    """All cases: timed kills, then fault points; every other case is killed again while it goes on."""
    rng = np.random.default_rng(seed)
    outcome = Outcome()
    moments: list[Moment] = [*timed_moments(n_kills, trial.seconds, rng)]
    moments += fault_points(len(trial.steps), n_points, rng)
    for number, moment in enumerate(moments):
        case = Case(trial, f"case-{number:03d}", outcome)
        is_killed = case.kill(moment)
        if isinstance(moment, FaultPoint):
            outcome.n_fault_point_kills += is_killed
        else:
            outcome.n_timed_kills += is_killed
            outcome.last_steps[case.last_step() if is_killed else "ended by itself"] += 1
        if number % 2:
            again = FaultPoint(int(rng.integers(_OPENING_STEPS)), bool(rng.integers(2)))
            outcome.n_second_kills += case.kill(again)
        case.complete()
        log(f"{number + 1} of {len(moments)} cases, {len(outcome.problems)} problems")
    return outcome


def record_of(trial: Trial, outcome: Outcome, origin: Origin) -> KillRecord:
    """Put the counts together."""
    with Snapshot(trial.work / "clean.lm") as snapshot:
        n_chunks = snapshot.n_chunks
    fingerprint = load_encoder(str(trial.encoder)).fingerprint[:12]
    return KillRecord(
        encoder=f"{trial.encoder.name}@{fingerprint}",
        n_documents=len(trial.expected.documents),
        n_chunks=n_chunks,
        clean_seconds=round(trial.seconds, 1),
        clean_steps=dict(Counter(re.sub(r"\d+", "N", step) for step in trial.steps)),
        n_queries=len(trial.expected.hits),
        origin=origin,
        way=trial.way,
        **{**vars(outcome), "last_steps": dict(outcome.last_steps.most_common())},
    )


@program
@click.option("--kills", "n_kills", default=50, show_default=True, type=click.IntRange(0), help="At random moments.")
@click.option(
    "--fault-points", "n_points", default=_MOST_FAULT_POINTS, show_default=True, help="Kills at steps, at most."
)
@click.option(
    "--way", type=click.Choice(WAYS), default="all", show_default=True, help="What is killed: a way of encoding."
)
@click.option("--encoder", type=click.Path(path_type=Path, exists=True), help="Folder; by default a tiny random BERT.")
@click.option("--corpus", default=DEMO / "corpus", type=click.Path(path_type=Path, exists=True))
@click.option("--queries", default=DEMO / "queries", type=click.Path(path_type=Path, exists=True))
@click.option("--seed", default=0, show_default=True, help="Of moments, second kills, queries and the tiny encoder.")
@click.option("--work", type=click.Path(path_type=Path), help="Folder to work in, kept; by default a temporary one.")
@record_option
@click.pass_context
def main(
    context: click.Context,
    n_kills: int,
    n_points: int,
    way: str,
    encoder: Path | None,
    corpus: Path,
    queries: Path,
    seed: int,
    work: Path | None,
    out: Path,
) -> None:
    """Kill `longmatch index` again and again, and write a record of what was lost: nothing.

    \b
    Example:
        python -m benchmarks study kill --kills 50
        python -m benchmarks study kill --kills 20 --way queries
    """
    folder = work or Path(tempfile.mkdtemp(prefix="longmatch-kill-"))
    folder.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        trial = prepare(corpus.resolve(), queries, encoder, folder, seed, way)
        outcome = run_cases(trial, n_kills, n_points, seed, lambda line: click.echo(line, err=True))
    record = record_of(trial, outcome, origin_of(context, seed))
    click.echo(write_record(record, out).read_text("utf-8"))
    if work is None and not outcome.problems:
        shutil.rmtree(folder)
