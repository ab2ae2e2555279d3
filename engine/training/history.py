"""The measurements of a training run, step by step: rows, a CSV file of them, and their curves by matplotlib.

The file is in long format (RFC 4180), a row for each number,

    step,name,value

so that a run can begin to record something new at any step. A step is the number
of updates of the parameters so far: 0 is before training. A name is one of

    loss, loss/PART                 the total, and its parts
    learning rate
    valid nDCG@10/CORPUS            and valid nDCG@10/mean, the mean over corpora
    tokens per second, seconds

or any other. Names that are equal up to their first slash are drawn in one picture.

The picture is drawn on a figure of its own, without pyplot: no window opens, and no setting of the caller is changed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.store.durable import write_durably

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HISTORY_FILE = "history.csv"
CURVES_FILE = "curves.png"

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

    @property
    def best_step(self) -> int | None:
        """The first step with the highest mean, 0 where training did not help; None without a number."""
        means = self.validation.get(MEAN)
        if means is None or np.isnan(means.values).all():
            return None
        return int(means.steps[np.nanargmax(means.values)])


def _series(rows: list[Number]) -> Series:
    return Series(np.array([row.step for row in rows], np.int64), np.array([row.value for row in rows], np.float64))


# Okabe & Ito (2008): distinguishable for colour-blind readers; without their yellow, too faint on white.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P")  # one fewer than colours: 42 corpora before a pair of both repeats
SMOOTHED_SHARE = 1 / 25  # window of a smoothed line, as a share of the rows
LOG_SPAN = 30.0  # ratio of the extremes above which losses get a log axis


def save_curves(history: History, path: Path) -> None:
    """Draw a run into a PNG file, which is replaced in one piece; see `draw_curves`."""
    figure = draw_curves(history)
    write_durably(path, lambda unfinished: figure.savefig(unfinished, format="png", dpi=110))


def draw_curves(history: History) -> Figure:
    """Draw losses, validation, and the learning rate, one panel each, over steps.

    A loss is a line smoothed by `smooth`, over a faint line of its values. The best step of validation has a star.
    A panel without numbers is left out.
    """
    from matplotlib.figure import Figure

    labels = {
        LOSS: "training loss\n(mean of a batch)",
        VALID: f"{METRIC}\n(validation, 0 to 1)",
        LEARNING_RATE: "learning rate",
    }
    drawn = {head: by_name for head in labels if (by_name := history.group(head))}
    figure = Figure(figsize=(9, 3 * len(drawn) + 0.6), layout="constrained", facecolor="white")
    panels = figure.subplots(max(1, len(drawn)), sharex=True, squeeze=False)[:, 0]
    panels[-1].set_xlabel("step (updates of the weights)", fontsize=11)
    for axes, (head, by_name) in zip(panels, drawn.items(), strict=False):
        axes.set_ylabel(labels[head], fontsize=11)
        axes.grid(color="#E4E4E4")
        if head == LOSS:
            _draw_losses(axes, by_name)
        else:
            _draw_values(axes, by_name, history.best_step if head == VALID else None)
        if len(axes.get_legend_handles_labels()[0]) > 1:
            # Beside the panel, where it covers no line.
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, frameon=False, fontsize=10)
    return figure


def smooth(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """The mean of the `window` values around each value; of fewer near the ends.

    Args:
        values: (N,).

    Returns:
        (N,); NaN where the window holds a NaN.
    """
    ones = np.ones(window)
    return np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")


def _draw_losses(axes: Axes, losses: dict[str, Series]) -> None:
    for (name, series), colour in zip(losses.items(), cycle(COLOURS)):
        half = int(len(series.values) * SMOOTHED_SHARE / 2)
        axes.plot(series.steps, series.values, color=colour, alpha=0.25, linewidth=0.8)
        axes.plot(series.steps, smooth(series.values, 2 * half + 1), color=colour, label=_plain(name or "whole"))
    values = np.concatenate([series.values for series in losses.values()])
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0 and values.max() > LOG_SPAN * values.min():
        axes.set_yscale("log")


def _draw_values(axes: Axes, by_name: dict[str, Series], best_step: int | None) -> None:
    if len(by_name) == 2:  # the mean over one corpus is that corpus
        by_name.pop(MEAN, None)
    markers = cycle([""] if best_step is None else MARKERS)
    for (name, series), colour, marker in zip(by_name.items(), cycle(COLOURS), markers):
        axes.plot(series.steps, series.values, color=colour, marker=marker, markersize=4, label=_plain(name))
        best = series.steps == best_step
        axes.plot(series.steps[best], series.values[best], color=colour, marker="*", markersize=14, linestyle="")


def _plain(name: str) -> str:
    return name.replace("$", r"\$")  # a pair of dollars would be read as mathematics
