"""Plans an index and makes it, by the command line and in processes of their own, as a user does."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.budgets.record import Kept
from benchmarks.formats.lines import read_lines
from engine.errors import EngineError

_PROGRAM = [sys.executable, "-c", "from indexer.cli import main; main()"]
_LAST_CHARACTERS = 300  # of what a program said, for the message of its failure


class RunFailed(EngineError):
    """Raised when the program did not come to its end, or indexed something else than it was given."""


@dataclass(frozen=True)
class Round:
    """What one plan and its run told."""

    kept: Kept
    factory: str  # that was planned
    n_tokens: int


def draw_corpus(corpus: Path, n_documents: int | None, seed: int, path: Path) -> int:
    """Write some lines of a corpus in their order, all where no number is given; says how many."""
    lines = [line for _, line in read_lines(corpus)]
    drawn = np.sort(np.random.default_rng(seed).permutation(len(lines))[:n_documents])
    path.write_text("".join(f"{lines[row]}\n" for row in drawn), "utf-8")
    return len(drawn)


def plan_and_run(corpus: Path, n_documents: int, encoder: str, memory_bytes: int | None, folder: Path) -> Round:
    """Plan an index of a corpus, make it, and compare.

    Args:
        corpus: a file.
        n_documents: in it, all of which must be indexed.
        encoder: a name or a folder.
        memory_bytes: the budget.
        folder: of the index; must not be there.

    Raises:
        RunFailed: a program failed, or did not index all.
    """
    options = ["--encoder", encoder, "--device", "cpu", "--json"]
    if memory_bytes is not None:
        options += ["--memory", str(memory_bytes)]
    started = time.perf_counter()
    plan = _told(["plan", str(corpus), *options])
    plan_seconds = time.perf_counter() - started
    report = _told(["index", str(folder), str(corpus), *options])
    if report["n_added"] != n_documents:
        raise RunFailed(f"{report['n_added']} of {n_documents} documents were indexed; measure a corpus without holes")
    kept = Kept(
        planned_seconds=round(plan["seconds"]["total"], 2),
        seconds=round(report["seconds"] + report["generation_seconds"], 2),
        planned_bytes=plan["memory"]["total"],
        peak_bytes=report["peak_memory_bytes"],
        planned_disk_bytes=plan["disk"]["total"] - plan["disk"]["replaced_generation"],
        disk_bytes=report["disk_bytes"],
        plan_seconds=round(plan_seconds, 2),
    )
    return Round(kept, plan["factory"], report["n_tokens"])


def _told(arguments: Sequence[str]) -> dict[str, Any]:
    done = subprocess.run([*_PROGRAM, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip()[-_LAST_CHARACTERS:]
        raise RunFailed(f"longmatch {arguments[0]} ended with {done.returncode} ({last}); mend that first")
    told: dict[str, Any] = json.loads(done.stdout)
    return told
