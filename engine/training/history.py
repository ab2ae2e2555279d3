"""The measurements of a training run, step by step: rows, and a CSV file of them. Draws nothing.

The file is in long format (RFC 4180), a row for each number,

    step,name,value

so that a run can begin to record something new at any step. A step is the number
of updates of the parameters so far: 0 is before training. A name is one of

    loss, loss/PART                 the total, and its parts
    learning rate
    valid METRIC/CORPUS             and valid METRIC/mean, the mean over corpora
    tokens per second, seconds

or any other. Names that are equal up to their first slash are drawn in one picture.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.store.durable import write_durably

HISTORY_FILE = "history.csv"
CURVES_FILE = "curves.png"

LOSS = "loss"
LEARNING_RATE = "learning rate"
SECONDS = "seconds"
VALID = "valid "  # before the name of a metric
MEAN = "mean"  # in place of the name of a corpus: the mean over corpora


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


def rows_of(step: int, values: Mapping[str, float]) -> list[Row]:
    """A row for each number, by name."""
    return [Row(step, name, value) for name, value in values.items()]


def validation_values(metric: str, by_corpus: Mapping[str, float]) -> dict[str, float]:
    """A metric of each corpus by name, and its mean with equal weight for every corpus; no corpus is named "mean"."""
    mean = sum(by_corpus.values()) / len(by_corpus)
    return {f"{VALID}{metric}/{name}": value for name, value in {**by_corpus, MEAN: mean}.items()}


class History:
    """The rows of one run."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows = tuple(rows)

    def write(self, path: Path) -> None:
        """Write a file, which is replaced in one piece."""
        stream = io.StringIO(newline="")
        csv.writer(stream).writerows([Row._fields, *self.rows])  # a float is written by `repr`, and read back the same
        content = stream.getvalue().encode()
        write_durably(path, lambda unfinished: unfinished.write_bytes(content))

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics of validation, in the order they were first added."""
        heads = (row.name.partition("/")[0] for row in self.rows)
        return list(dict.fromkeys(head.removeprefix(VALID) for head in heads if head.startswith(VALID)))

    def group(self, head: str) -> dict[str, Series]:
        """The series whose names begin with `head`, by the rest after the slash; "" where there is no slash."""
        rows: dict[str, list[Row]] = {}
        for row in self.rows:
            own_head, _, tail = row.name.partition("/")
            if own_head == head:
                rows.setdefault(tail, []).append(row)
        return {tail: _series(own) for tail, own in rows.items()}

    def validation(self, metric: str) -> dict[str, Series]:
        """The series of a metric by corpus, and of "mean"."""
        return self.group(VALID + metric)

    def best_step(self, metric: str) -> int | None:
        """The first step with the highest mean of a metric, 0 where training did not help; None without a number."""
        means = self.validation(metric).get(MEAN)
        if means is None or np.isnan(means.values).all():
            return None
        return int(means.steps[np.nanargmax(means.values)])


def _series(rows: list[Row]) -> Series:
    return Series(np.array([row.step for row in rows], np.int64), np.array([row.value for row in rows], np.float64))
