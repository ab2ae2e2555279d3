"""What the command lines of measurements share: seed, folders, a quick form, and where the record goes."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.options import WORK, data_option
from benchmarks.program import origin_of
from benchmarks.record_file import RESULTS, Recorded, write_record
from indexer.training.origin import Origin


@dataclass(frozen=True)
class Measurement:
    """One call of a program."""

    origin: Origin
    is_quick: bool
    out: Path | None  # folder of records; None to keep none
    data: Path
    given_work: Path | None

    @property
    def seed(self) -> int:
        """Of all that is drawn."""
        return self.origin.seed

    @property
    def work(self) -> Path:
        """Folder of indexes and vectors, which are kept."""
        return self.given_work or WORK

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """The folder that was given, made and kept, or a temporary one."""
        if self.given_work is None:
            with tempfile.TemporaryDirectory(prefix="longmatch-") as place:
                yield Path(place)
            return
        self.given_work.mkdir(parents=True, exist_ok=True)
        yield self.given_work

    def keep(self, record: Recorded) -> None:
        """Write a record, unless none is wanted."""
        if self.out is not None:
            write_record(record, self.out)


def measurement(
    *, seed: str = "Of the sample of queries.", quick: str = "", data: bool = False, work: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a program --seed, --out, and what else is described, and hand it a `Measurement` as its first argument.

    Args:
        seed: help of --seed.
        quick: help of --quick, which writes a record only with --out.
        data: whether there is --data.
        work: help of --work.
    """
    folder = click.Path(path_type=Path)
    options = [click.option("--seed", default=0, show_default=True, help=seed)]
    options += [click.option("--quick", is_flag=True, help=f"{quick}; a record only with --out.")] * bool(quick)
    options += [data_option] * data
    options += [click.option("--work", type=folder, help=work)] * bool(work)
    shown = "benchmarks/results; with --quick none" if quick else "benchmarks/results"
    options.append(click.option("--out", type=folder, show_default=shown, help="Folder for the record."))

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
