"""The measurements of a training run, step by step: rows, and a CSV file of them.

The file is in long format (RFC 4180), a row for each number,

    step,name,value

so that a run can begin to record something new at any step. A step is the number
of updates of the parameters so far: 0 is before training. A name is one of

    loss, loss/PART                 the total, and its parts
    learning rate
    valid nDCG@10/CORPUS            and valid nDCG@10/mean, the mean over corpora
    tokens per second, seconds

or any other.
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

LOSS = "loss"
LEARNING_RATE = "learning rate"
SECONDS = "seconds"
METRIC = "nDCG@10"
VALID = f"valid {METRIC}"
MEAN = "mean"  # in place of the name of a corpus: the mean over corpora


class Number(NamedTuple):
    """One number of a run."""

    step: int
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """All numbers of one name, in the order of their steps."""

    steps: NDArray[np.int64]  # (N,)
    values: NDArray[np.float64]  # (N,)


def rows_of(step: int, values: Mapping[str, float]) -> list[Number]:
    """A row for each number, by name."""
    return [Number(step, name, value) for name, value in values.items()]


def validation_values(by_corpus: Mapping[str, float]) -> dict[str, float]:
    """nDCG@10 of each corpus by name, and the mean with equal weight for every corpus; no corpus is named "mean"."""
    mean = sum(by_corpus.values()) / len(by_corpus)
    return {f"{VALID}/{name}": value for name, value in {**by_corpus, MEAN: mean}.items()}


class History:
    """The rows of one run."""

    def __init__(self, rows: Iterable[Number] = ()) -> None:
        self.rows = tuple(rows)

    def write(self, path: Path) -> None:
        """Write a file, which is replaced in one piece."""
        stream = io.StringIO(newline="")
        # A float is written by `repr`, and read back the same.
        csv.writer(stream).writerows([Number._fields, *self.rows])
        content = stream.getvalue().encode()
        write_durably(path, lambda unfinished: unfinished.write_bytes(content))

    def group(self, head: str) -> dict[str, Series]:
        """The series whose names begin with `head`, by the rest after the slash; "" where there is no slash."""
        rows: dict[str, list[Number]] = {}
        for row in self.rows:
            own_head, _, tail = row.name.partition("/")
            if own_head == head:
                rows.setdefault(tail, []).append(row)
        return {tail: _series(own) for tail, own in rows.items()}

    @property
    def validation(self) -> dict[str, Series]:
        """The series of nDCG@10 by corpus, and of "mean"."""
        return self.group(VALID)


def _series(rows: list[Number]) -> Series:
    return Series(np.array([row.step for row in rows], np.int64), np.array([row.value for row in rows], np.float64))
