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

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

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

    @property
    def validation(self) -> dict[str, dict[int, float]]:
        """nDCG@10 by corpus, and by step; the mean of the corpora is that of "mean"."""
        by_corpus: dict[str, dict[int, float]] = {}
        for step, name, value in self.rows:
            head, _, corpus = name.partition("/")
            if head == VALID:
                by_corpus.setdefault(corpus, {})[step] = value
        return by_corpus
