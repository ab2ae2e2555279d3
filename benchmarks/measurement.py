"""Options that tasks and studies share: seed, folders, a quick form, and the folder of results."""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from benchmarks.datasets import Dataset, open_dataset
from benchmarks.program import WORK, data_option, origin_of
from benchmarks.quick import quick_part
from benchmarks.runs import RESULTS, Run, write_run
from indexer.origin import Origin

_KEPT = "Folder for indexes and vectors; kept and resumed."


@dataclass(frozen=True)
class Measurement:
    """One call of a task or study."""

    origin: Origin
    is_quick: bool
    out: Path | None  # folder of runs; None to keep none
    data: Path
    given_work: Path | None
    started: float = field(default_factory=time.perf_counter)

    @property
    def seed(self) -> int:
        """The seed of all that is drawn."""
        return self.origin.seed

    @property
    def seconds(self) -> float:
        """Seconds by the clock since the program began, to a tenth."""
        return round(time.perf_counter() - self.started, 1)

    @property
    def work(self) -> Path:
        """Folder of indexes and vectors, which are kept."""
        return self.given_work or WORK

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """The folder of --work, created and kept, or a temporary one."""
        if self.given_work is None:
            with tempfile.TemporaryDirectory(prefix="longmatch-") as place:
                yield Path(place)
            return
        self.given_work.mkdir(parents=True, exist_ok=True)
        yield self.given_work

    def dataset(self, name: str, split: str) -> Dataset:
        """A task by name or a folder; with --quick a small seeded part of it, whose queries are of the split."""
        dataset = open_dataset(name, self.data)
        return quick_part(dataset, split, self.work / "quick", seed=self.seed) if self.is_quick else dataset

    def keep(self, run: Run) -> None:
        """Write a run, unless `out` is None."""
        if self.out is not None:
            write_run(run, self.out)

    def publish(self, runs: Sequence[Run], table: Callable[[Sequence[Run]], str]) -> None:
        """Write runs, and print their table."""
        for run in runs:
            self.keep(run)
        click.echo(table(runs))


def measurement(
    *,
    seed: str = "Seed of the sample of queries.",
    quick: str = "",
    data: bool = False,
    work: str = "",
    encodes: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a program options of these names with these texts as help, and a `Measurement` as its first argument.

    All programs have --seed and --out. With --quick, results are written only with --out. A program that encodes a
    dataset has --data, and --work for indexes and vectors.
    """
    data, work = data or encodes, _KEPT if encodes else work
    folder = click.Path(path_type=Path)
    options = [click.option("--seed", default=0, help=seed)]
    options += [click.option("--quick", is_flag=True, help=f"{quick}; no run without --out.")] * bool(quick)
    options += [data_option] * data
    options += [click.option("--work", type=folder, help=work)] * bool(work)
    shown = "benchmarks/results; with --quick none" if quick else "benchmarks/results"
    options.append(click.option("--out", type=folder, show_default=shown, help="Folder for runs."))

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def call(context: click.Context, **named: Any) -> None:  # noqa: ANN401 - the program's own options
            is_quick = named.pop("quick", False)
            out = named.pop("out") or (None if is_quick else RESULTS)
            places = named.pop("data", Path()), named.pop("work", None)
            function(Measurement(origin_of(context, named.pop("seed")), is_quick, out, *places), **named)

        command: Callable[..., None] = click.pass_context(call)
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
