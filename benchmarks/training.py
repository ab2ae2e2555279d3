"""Records the measurements of a training run on valid, step by step; trains nothing itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from benchmarks.markdown import markdown, measured
from benchmarks.options import record_option
from benchmarks.program import program
from benchmarks.record_file import Recorded, write_record
from engine.errors import EngineError
from engine.training.run.history import HISTORY_FILE, MEAN, SECONDS, History
from indexer.origin import Origin, describe_origin

METRIC = "nDCG@10"
RECIPE_FILE = "recipe.json"
_NOTE = (
    "nDCG@10 on valid queries over a part of each corpus: before training, at the best validation, and at the last "
    "validation."
)


@dataclass(frozen=True)
class TrainingRecord(Recorded, kind="training", file="training-{run}"):
    """The measurements of a training run on the valid split, step by step."""

    run: str
    note: str  # what was tried
    corpora: dict[str, str]  # checksum by name
    settings: dict[str, str | int | float | bool | None]
    n_steps: int  # updates made
    seconds: float  # of updates
    valid_steps: list[int]
    valid: dict[str, list[float]]  # nDCG@10 by corpus and "mean", at each of the steps
    origin: Origin


def training_record(run: Path, name: str, note: str, commit: str, is_dirty: bool) -> TrainingRecord:
    """Read the folder of a run; `commit` is the present one by default.

    Raises:
        EngineError: recipe or history are missing or damaged.
    """
    file = run / RECIPE_FILE
    try:
        recipe: Mapping[str, Mapping[str, str | int | float | bool | None]] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise EngineError(f"{file} cannot be read ({error}); name the folder OUT/run of longmatch train") from error
    history = History.read(run / HISTORY_FILE)
    settings = recipe["settings"]
    origin = describe_origin(f"longmatch {recipe['command']}", int(settings["seed"] or 0))
    if commit:
        origin = replace(origin, commit=commit, is_dirty=is_dirty)
    valid = history.validation(METRIC)
    return TrainingRecord(
        run=name,
        note=note,
        corpora={corpus: str(checksum) for corpus, checksum in recipe["corpora"].items()},
        settings=dict(settings),
        n_steps=max((row.step for row in history.rows), default=0),
        seconds=round(max((row.value for row in history.rows if row.name == SECONDS), default=0.0), 1),
        valid_steps=[int(step) for step in next(iter(valid.values())).steps] if valid else [],
        valid={corpus: [round(float(value), 4) for value in series.values] for corpus, series in valid.items()},
        origin=origin,
    )


def training_table(records: Sequence[TrainingRecord]) -> str:
    """A row for each run: nDCG@10 on valid before training, at the best and last validation; "" without the corpus."""
    corpora = [*dict.fromkeys(corpus for record in records for corpus in record.corpora), MEAN]
    head = ["Run", "Method", "Steps x queries", *corpora]
    rows = [
        [
            record.run,
            record.note,
            f"{record.n_steps:,} x {record.settings['queries']}",
            *(_course(record, corpus) for corpus in corpora),
        ]
        for record in records
    ]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", measured(records)])


def _course(record: TrainingRecord, corpus: str) -> str:
    if corpus not in record.valid:
        return ""
    means, values = record.valid[MEAN], record.valid[corpus]
    best = max(range(len(means)), key=means.__getitem__)
    return f"{values[0]:.3f}, {values[best]:.3f}, {values[-1]:.3f}"


@program
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--name", required=True, help="Name of the record.")
@click.option("--note", default="", help="What is tried, in a few words.")
@click.option("--commit", default="", help="Commit of the run; by default the present one.")
@click.option("--dirty", is_flag=True, help="Files differed from that commit.")
@record_option
def main(run: Path, name: str, note: str, commit: str, dirty: bool, out: Path) -> None:
    """Write a record of the training run in the folder RUN.

    \b
    Example:
        python -m benchmarks study training my-encoder/run --name pairs --note "MaxSim over 4 x 3 chunks"
    """
    path = write_record(training_record(run, name, note, commit, dirty), out)
    click.echo(path.name)
