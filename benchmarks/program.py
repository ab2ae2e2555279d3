"""A program: a command that prints errors of the engine as one line, with the options that tasks and studies share:
seed, folders, a quick form, and the folder of results; and the origin of the runs it writes."""

from __future__ import annotations

import functools
import inspect
import shlex
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from benchmarks.datasets import DATA, Dataset, open_dataset
from benchmarks.quick import quick_part
from benchmarks.runs import RESULTS, Run, write_run
from engine.errors import EngineError
from engine.machine import Origin, describe_origin

PLACES = frozenset(("data", "out", "work"))  # parameters that differ between machines


class Program(click.Command):
    """A command without tracebacks for errors that a user can act on."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        """Run the command."""
        try:
            return super().invoke(ctx)
        except EngineError as error:
            raise click.ClickException(str(error)) from error


class Task(Program):
    """A program whose runs have a case for each query, pair or document."""


ProgramT = TypeVar("ProgramT", bound=Program)


def program(function: Callable[..., None]) -> Program:
    """Make `main` of a module the study or verb with the name of the module: `python -m benchmarks study NAME`."""
    return _shown(click.command(cls=Program)(function))


def task(function: Callable[..., None]) -> Task:
    """Make `main` of a module the task with the name of the module: `python -m benchmarks run NAME`."""
    return _shown(click.command(cls=Task)(function))


def _shown(command: ProgramT) -> ProgramT:
    """Show the defaults of options in the help, except of flags, folders and empty texts."""
    for option in command.params:
        is_plain = not isinstance(option.default, bool) and isinstance(option.default, str | int | float)
        if isinstance(option, click.Option) and option.show_default is None and is_plain and option.default != "":
            option.show_default = True
    return command


def origin_of(context: click.Context, seed: int) -> Origin:
    """The origin of the records of this call; its command leaves out `PLACES`."""
    assert context.command.callback is not None
    name = Path(inspect.getfile(inspect.unwrap(context.command.callback))).stem
    verb = "run" if isinstance(context.command, Task) else "study"
    return describe_origin(command_line(f"{verb} {name}", context, leave_out=PLACES), seed)


def command_line(name: str, context: click.Context, leave_out: Collection[str]) -> str:
    """The command line of this call, without the parameters in `leave_out`; of a path only the last part."""
    words: list[str] = []
    for parameter in context.command.params:
        of = parameter.name or ""
        given = context.get_parameter_source(of) is ParameterSource.COMMANDLINE
        if given and of not in leave_out:
            words += _words(parameter, context.params[of])
    return shlex.join(["python", "-m", "benchmarks", *name.split(), *words])


def _words(parameter: click.Parameter, value: object) -> Iterable[str]:
    if isinstance(parameter, click.Argument):
        return map(_word, value) if isinstance(value, tuple) else [_word(value)]
    option = max(parameter.opts, key=len)
    if value is True:
        return [option]
    if isinstance(value, Mapping):
        return [option, ",".join(f"{name}={_word(one)}" for name, one in value.items())]
    if not isinstance(value, tuple):
        return [option, _word(value)]
    if isinstance(parameter, click.Option) and parameter.multiple:
        return [word for one in value for word in (option, _word(one))]
    return [option, ",".join(map(_word, value))]


def _word(value: object) -> str:
    """A value as text: of a path only the last part, of an address only the scheme."""
    word = str(value)
    if "://" in word:
        return word.partition("://")[0] + "://..."
    return Path(word).name or word if isinstance(value, Path) or _is_place(word) else word


def _is_place(text: str) -> bool:
    """Whether a text is a path on this machine; names on a hub contain a slash too."""
    return "/" in text and (Path(text).is_absolute() or Path(text).exists())


WORK = Path(__file__).resolve().parent / ".work"  # folder of indexes, which are kept and resumed
data_option = click.option(
    "--data", default=DATA, type=click.Path(path_type=Path), help="Folder that holds the datasets."
)


def log(line: str) -> None:
    """Print a line of progress to standard error."""
    click.echo(line, err=True)


def names_of(known: Collection[str]) -> Callable[[click.Context, click.Parameter, str], tuple[str, ...]]:
    """A callback that reads names of `known`, separated by commas, without duplicates."""

    def read(_context: click.Context, _parameter: click.Parameter, names: str) -> tuple[str, ...]:
        chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
        if unknown := [name for name in chosen if name not in known]:
            raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(known)}")
        return chosen

    return read


def read_numbers(_context: click.Context, _parameter: click.Parameter, numbers: str | None) -> tuple[int, ...]:
    """A callback that reads whole numbers from 1 on, separated by commas, without duplicates; () without the option."""
    if numbers is None:
        return ()
    if not all(number.strip().isdecimal() and int(number) > 0 for number in numbers.split(",")):
        raise click.BadParameter(f"{numbers!r} must be whole numbers from 1 on, separated by commas")
    return tuple(dict.fromkeys(int(number) for number in numbers.split(",")))


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
