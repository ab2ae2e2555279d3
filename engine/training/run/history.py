"""The measurements of a training run, step by step: rows in memory and in a CSV file. Draws nothing.

The file is in long format (RFC 4180), a row for each number,

    step,name,value

so that a run can begin to record something new at any step. A step is the number
of updates of the parameters so far: 0 is before training. A name is one of

    loss, loss/PART                 the total, and its parts
    learning rate, learning rate/GROUP
    valid METRIC/CORPUS             and valid METRIC/mean, the mean over corpora
    tokens per second, seconds

or any other. Names that are equal up to their first slash are drawn in one picture.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from engine.errors import MissingExtra, TrainingError
from engine.store.durable import write_durably

HISTORY_FILE = "history.csv"
CURVES_FILE = "curves.png"

LOSS = "loss"
LEARNING_RATE = "learning rate"
TOKENS_PER_SECOND = "tokens per second"
SECONDS = "seconds"
VALID = "valid "  # before the name of a metric
MEAN = "mean"  # in place of the name of a corpus: the mean over corpora

_HEADER = ["step", "name", "value"]


class Row(NamedTuple):
    """One number of a run."""

    step: int
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """All numbers of one name, in the order of their steps."""

    steps: NDArray[np.int64]  # (N,)
    values: NDArray[np.float64]  # (N,)


class History:
    """The rows of one run, and the file that they are appended to, if any."""

    def __init__(self, rows: Iterable[Row] = (), path: Path | None = None) -> None:
        """Hold rows; `begin` and `resume` also append them to a file, `read` only reads one."""
        self._rows = list(rows)
        self._path = path

    @classmethod
    def begin(cls, path: Path) -> Self:
        """Begin a new run without rows; an existing file is replaced."""
        history = cls(path=path)
        history._rewrite()
        return history

    @classmethod
    def resume(cls, path: Path, step: int) -> Self:
        """Resume a run after `step`: later rows are dropped, also from the file, which is replaced in one piece.

        Raises:
            TrainingError: the file is missing or damaged.
        """
        history = cls((row for row in _read(path) if row.step <= step), path)
        history._rewrite()
        return history

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the rows that a run has recorded so far; rows added later are not written to the file.

        An incomplete last line is left out.

        Raises:
            TrainingError: the file is missing or damaged.
        """
        return cls(_read(path))

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, in the order they were added."""
        return tuple(self._rows)

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Append numbers by name; when this returns, they are on disk.

        Raises:
            ValueError: the step is before the last one, or a name is empty or has a line break.
        """
        if self._rows and step < self._rows[-1].step:
            raise ValueError(f"step {step} lies before the last one, {self._rows[-1].step}; take the run up: resume")
        if unfit := [name for name in values if name.splitlines() != [name]]:
            raise ValueError(f"{unfit[0]!r} is no name of a number; give it one line of text")
        rows = [Row(step, name, float(value)) for name, value in values.items()]
        if self._path is not None:
            with self._path.open("ab") as stream:
                stream.write(_lines(rows))
                stream.flush()
                os.fsync(stream.fileno())
        self._rows += rows

    def add_step(
        self,
        step: int,
        losses: Mapping[str, float],
        *,
        learning_rate: float,
        tokens_per_second: float,
        seconds: float,
    ) -> None:
        """Append the measurements of one training step.

        Args:
            step: updates so far, this one included: from 1.
            losses: parts by name, and their total as "loss", as `Task.backward` returns them.
            learning_rate: of this update.
            tokens_per_second: read by the encoder in this step.
            seconds: of updates in this run so far, including those before it was resumed.
        """
        parts = {name if name == LOSS else f"{LOSS}/{name}": value for name, value in losses.items()}
        speed = {TOKENS_PER_SECOND: tokens_per_second, SECONDS: seconds}
        self.add(step, {**parts, LEARNING_RATE: learning_rate, **speed})

    def add_validation(self, step: int, metric: str, by_corpus: Mapping[str, float]) -> None:
        """Append a metric of each corpus, and its mean with equal weight for every corpus.

        Args:
            step: updates so far; 0 before training.
            metric: as papers write it, without a slash: nDCG@10.
            by_corpus: at least one; no corpus is named "mean".
        """
        mean = sum(by_corpus.values()) / len(by_corpus)
        self.add(step, {f"{VALID}{metric}/{name}": value for name, value in {**by_corpus, MEAN: mean}.items()})

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics of validation, in the order they were first added."""
        heads = (row.name.partition("/")[0] for row in self._rows)
        return list(dict.fromkeys(head.removeprefix(VALID) for head in heads if head.startswith(VALID)))

    def group(self, head: str) -> dict[str, Series]:
        """The series whose names begin with `head`, by the rest after the slash; "" where there is no slash."""
        rows: dict[str, list[Row]] = {}
        for row in self._rows:
            own_head, _, tail = row.name.partition("/")
            if own_head == head:
                rows.setdefault(tail, []).append(row)
        return {tail: _series(own) for tail, own in rows.items()}

    def validation(self, metric: str) -> dict[str, Series]:
        """The series of a metric by corpus, and of "mean"."""
        return self.group(VALID + metric)

    def best_step(self, metric: str) -> int | None:
        """The step with the highest mean of a metric, the first of equal ones; 0 where training did not help.

        Returns:
            None if the metric has no number.
        """
        means = self.validation(metric).get(MEAN)
        if means is None or np.isnan(means.values).all():
            return None
        return int(means.steps[np.nanargmax(means.values)])

    def save_curves(self, path: Path) -> None:
        """Draw the run into a PNG file.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        try:
            from engine.training.run.curves import save_curves
        except ModuleNotFoundError as error:
            raise MissingExtra("training curves", "matplotlib", "training") from error
        save_curves(self, path)

    def _rewrite(self) -> None:
        assert self._path is not None
        content = (",".join(_HEADER) + "\r\n").encode() + _lines(self._rows)
        write_durably(self._path, lambda unfinished: _write(unfinished, content))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _series(rows: list[Row]) -> Series:
    return Series(np.array([row.step for row in rows], np.int64), np.array([row.value for row in rows], np.float64))


def _lines(rows: Iterable[Row]) -> bytes:
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(rows)  # a float is written by `repr`, and read back the same
    return stream.getvalue().encode()


def _read(path: Path) -> list[Row]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TrainingError(f"{path} cannot be read ({error.strerror}); start the run again") from error
    # A run that was killed while it appended leaves half a line, whose number can look complete.
    whole = content[: content.rfind(b"\n") + 1]
    try:
        return list(_parsed(whole.decode()))
    except (ValueError, csv.Error) as error:
        raise TrainingError(f"{path} is damaged ({error}); start the run again") from error


def _parsed(text: str) -> Iterator[Row]:
    lines = csv.reader(io.StringIO(text, newline=""))
    if (header := next(lines, [])) != _HEADER:
        raise ValueError(f"its columns are {header}, not {_HEADER}")
    for step, name, value in lines:
        yield Row(int(step), name, float(value))
