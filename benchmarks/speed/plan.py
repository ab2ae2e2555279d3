"""Compares plans with runs: time, memory and disk as `index --dry-run` estimates and `longmatch index` uses them.

Both run by the command line and in processes of their own, as a user runs them.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from benchmarks.datasets import checksum, open_dataset
from benchmarks.formats.lines import read_lines
from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.record_file import Recorded, name_of
from benchmarks.speed.commands import run_python
from engine.encoders.loading import DEFAULT_ENCODER
from engine.errors import EngineError
from indexer.cli.reading import parse_bytes
from indexer.origin import Origin

ROUNDS, QUICK_ROUNDS, QUICK_DOCUMENTS = 5, 1, 20
_PROGRAM = ["-c", "from indexer.cli import main; main()"]
_NOTE = (
    "Medians over rounds. Each round plans and then indexes by the command line, each in a process of its own. Ratio: "
    "measured divided by planned, median (lowest to highest). Memory: peak of the private memory of the process. "
    "Disk: size of the index afterwards."
)


@dataclass(frozen=True)
class PlannedRun:
    """One plan, and the run after it, each a process of its own."""

    planned_seconds: float
    seconds: float  # of the run, from its first document to its published index
    planned_bytes: int  # peak of the own memory of the process
    peak_bytes: int
    planned_disk_bytes: int  # of the index afterwards
    disk_bytes: int
    plan_seconds: float  # of planning, start of the program included


@dataclass(frozen=True)
class PlanRecord(Recorded, kind="plan"):
    """Plans of indexing one corpus under one budget, and the costs of the runs."""

    dataset: str  # name@checksum
    is_quick: bool
    n_documents: int
    n_tokens: int  # encoded
    encoder: str
    memory_bytes: int | None  # the budget
    factory: str  # that the plans name; "" for none
    rounds: list[PlannedRun]
    origin: Origin

    @property
    def name(self) -> str:
        """The name of the file, without suffix."""
        limit = f"memory{round(self.memory_bytes / 1e6)}m" if self.memory_bytes else ""
        quick = "quick" if self.is_quick else ""
        return name_of("plan", self.dataset.partition("@")[0], str(self.n_documents), limit, quick)


def draw_corpus(corpus: Path, n_documents: int | None, seed: int, path: Path) -> int:
    """Write some lines of a corpus in their order, all where no number is given; returns their number."""
    lines = [line for _, line in read_lines(corpus)]
    drawn = np.sort(np.random.default_rng(seed).permutation(len(lines))[:n_documents])
    path.write_text("".join(f"{lines[row]}\n" for row in drawn), "utf-8")
    return len(drawn)


def plan_and_run(
    corpus: Path, n_documents: int, encoder: str, memory_bytes: int | None, folder: Path
) -> tuple[PlannedRun, str, int]:
    """Plan an index of a file, build it, and compare; also returns the planned factory string and the tokens."""
    options = ["--encoder", encoder, "--device", "cpu", "--json"]
    if memory_bytes is not None:
        options += ["--memory", str(memory_bytes)]
    started = time.perf_counter()
    plan = _printed(["index", str(folder), str(corpus), "--dry-run", *options])
    plan_seconds = time.perf_counter() - started
    way = next(way for way in plan["ways"] if way["encode"] == "all")
    report = _printed(["index", str(folder), str(corpus), *options])
    if report["n_added"] != n_documents:
        done = f"{report['n_added']} of {n_documents} documents were indexed"
        raise EngineError(f"{done}; measure a corpus without holes")
    kept = PlannedRun(
        planned_seconds=round(way["seconds"], 2),
        seconds=round(report["seconds"] + report["generation_seconds"], 2),
        planned_bytes=plan["memory_bytes"],
        peak_bytes=report["peak_memory_bytes"],
        planned_disk_bytes=way["disk_bytes"],
        disk_bytes=report["disk_bytes"],
        plan_seconds=round(plan_seconds, 2),
    )
    return kept, plan["factory"], report["n_tokens"]


def _printed(arguments: Sequence[str]) -> dict[str, Any]:
    printed: dict[str, Any] = json.loads(run_python([*_PROGRAM, *arguments], f"longmatch {arguments[0]}"))
    return printed


def plan_table(records: Sequence[PlanRecord]) -> str:
    """A row for each corpus and budget: medians, and in brackets the extremes of the ratio of taken to planned."""
    head = [
        "Corpus",
        "Documents",
        "Tokens",
        "Budget, MB",
        "FAISS index",
        "Rounds",
        "Time planned / measured, s",
        "Ratio",
    ]
    head += ["Memory planned / measured, MB", "Ratio", "Disk planned / measured, MB", "Ratio", "Planning, s"]
    rows = [_row(record) for record in sorted(records, key=lambda record: (record.dataset, record.n_documents))]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(records)])


def _row(record: PlanRecord) -> list[str]:
    rounds = record.rounds
    return [
        record.dataset.partition("@")[0],
        f"{record.n_documents:,}",
        f"{record.n_tokens:,}",
        f"{record.memory_bytes / 1e6:,.0f}" if record.memory_bytes else "",
        record.factory or "none",
        str(len(rounds)),
        *_pair([one.planned_seconds for one in rounds], [one.seconds for one in rounds], 1.0),
        *_pair([one.planned_bytes for one in rounds], [one.peak_bytes for one in rounds], 1e6),
        *_pair([one.planned_disk_bytes for one in rounds], [one.disk_bytes for one in rounds], 1e6),
        f"{median(one.plan_seconds for one in rounds):.1f}",
    ]


def _pair(planned: Sequence[float], taken: Sequence[float], unit: float) -> tuple[str, str]:
    ratios = [came / foreseen for foreseen, came in zip(planned, taken, strict=True)]
    return (
        f"{median(planned) / unit:,.1f} / {median(taken) / unit:,.1f}",
        f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
    )


@program
@click.argument("name", metavar="DATASET")
@click.option("--documents", "n_documents", type=click.IntRange(1), help="Documents to draw; all by default.")
@click.option("--memory", "memory_bytes", type=parse_bytes, metavar="SIZE", help="Memory budget of plan and run.")
@click.option("--rounds", type=click.IntRange(1), help=f"Rounds of plan and run.  [default: {ROUNDS}]")
@click.option("--encoder", default=DEFAULT_ENCODER, help="Name or folder of an encoder.")
@measurement(seed="Seed of the draw.", quick=f"{QUICK_DOCUMENTS} documents, one round", data=True)
def main(
    run: Measurement, name: str, n_documents: int | None, memory_bytes: int | None, rounds: int | None, encoder: str
) -> None:
    """Plan an index of DATASET, a task by name or a folder, and make it, several times.

    \b
    Example:
        python -m benchmarks study plan proposals --documents 300
        python -m benchmarks study plan proposals --documents 300 --memory 600M
    """
    n_rounds = rounds or (QUICK_ROUNDS if run.is_quick else ROUNDS)
    n_documents = n_documents or (QUICK_DOCUMENTS if run.is_quick else None)
    done = []
    dataset = open_dataset(name, run.data)
    with tempfile.TemporaryDirectory(prefix="longmatch-plans-") as place:
        corpus, folder = Path(place) / "corpus.jsonl", Path(place) / "index.lm"
        n_drawn = draw_corpus(dataset.corpus, n_documents, run.seed, corpus)
        for number in range(1, n_rounds + 1):
            kept, factory, n_tokens = plan_and_run(corpus, n_drawn, encoder, memory_bytes, folder)
            shutil.rmtree(folder)
            done.append(kept)
            log(f"round {number} of {n_rounds}: {kept.planned_seconds:.1f} s planned, {kept.seconds:.1f} s taken")
    label = f"{dataset.name}@{checksum(dataset)}"
    record = PlanRecord(label, run.is_quick, n_drawn, n_tokens, encoder, memory_bytes, factory, done, run.origin)
    run.publish([record], plan_table)
