"""The measurements of a training run, step by step: rows, a CSV file of them, and their curves by matplotlib.

The file is in long format (RFC 4180), a row for each number,

    step,name,value

so that a run can begin to record something new at any step. A step is the number
of updates of the parameters so far: 0 is before training. A name is one of

    loss, loss/PART                 the total, and its parts
    learning rate
    valid METRIC/CORPUS             and valid METRIC/mean, the mean over corpora
    tokens per second, seconds

or any other. Names that are equal up to their first slash are drawn in one picture.

The picture is drawn on a figure of its own, without pyplot: no window opens, and no setting of the caller is changed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.store.durable import write_durably

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

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


# Okabe & Ito (2008): distinguishable for colour-blind readers; without their yellow, too faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
WHOLE_COLOUR = "#000000"  # of the whole loss, and of the mean over corpora
QUIET_COLOUR = "#666666"
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # one more than colours: 42 corpora before a pair of both repeats

SMOOTHED_SHARE = 1 / 25  # window of a smoothed line, as a share of the rows
LOG_SPAN = 30.0  # ratio of the smoothed extremes above which losses get a log axis


def save_curves(history: History, path: Path) -> None:
    """Draw a run into a PNG file, which is replaced in one piece; see `draw_curves`."""
    figure = draw_curves(history)
    write_durably(path, lambda unfinished: figure.savefig(unfinished, format="png", dpi=110))


def draw_curves(history: History) -> Figure:
    """Draw losses, each metric of validation, and the learning rate, one panel each, over steps.

    A loss is a line smoothed by `smooth`, over a faint line of its values. A metric has
    a dotted line at its value before training, and its best step is marked. A panel
    without numbers is left out.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    drawn: list[tuple[float, Callable[[Axes], None]]] = []  # height of a panel, and the function that draws it
    if losses := history.group(LOSS):
        drawn.append((3, partial(_draw_losses, losses=losses)))
    drawn += [(3, partial(_draw_metric, history=history, metric=metric)) for metric in history.metrics]
    if rates := history.group(LEARNING_RATE):
        drawn.append((1.6, partial(_draw_rates, rates=rates)))
    heights = [height for height, _ in drawn] or [1.0]
    figure = Figure(figsize=(9, sum(heights) + 0.6), layout="constrained", facecolor="white")
    panels = figure.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (_, draw) in zip(panels, drawn, strict=False):
        _style(axes)
        draw(axes)
    last = max((row.step for row in history.rows), default=0) or 1
    panels[-1].set_xlim(-0.02 * last, 1.02 * last)
    panels[-1].set_xlabel("step (updates of the weights)", fontsize=11)
    panels[-1].xaxis.set_major_locator(MaxNLocator(8, integer=True))
    panels[-1].xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    figure.align_ylabels()
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


def _smoothed(series: Series) -> NDArray[np.float64]:
    half = int(len(series.values) * SMOOTHED_SHARE / 2)
    return smooth(series.values, 2 * half + 1)


def _draw_losses(axes: Axes, losses: dict[str, Series]) -> None:
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    for name, colour in _colours(losses, whole="").items():
        smoothed = _smoothed(losses[name])
        axes.plot(losses[name].steps, losses[name].values, color=colour, alpha=0.25, linewidth=0.8)
        # Where one part is nearly all of the loss, the line of the whole must not hide it.
        dashes = "--" if len(losses) > 1 and not name else "-"
        axes.plot(losses[name].steps, smoothed, dashes, color=colour, linewidth=1.8, label=_label(name or "whole"))
    axes.set_ylabel("training loss\n(mean of a batch)", fontsize=11)
    extremes = np.concatenate([_smoothed(series) for series in losses.values()])
    extremes = extremes[np.isfinite(extremes)]
    if extremes.size and extremes.min() > 0 and extremes.max() > LOG_SPAN * extremes.min():
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    if len(losses) > 1:
        _legend(axes)


def _draw_metric(axes: Axes, history: History, metric: str) -> None:
    from matplotlib.lines import Line2D

    by_corpus = history.validation(metric)
    if len(by_corpus) == 2:  # the mean over one corpus is that corpus
        del by_corpus[MEAN]
    best_step = history.best_step(metric)
    for number, (corpus, colour) in enumerate(_colours(by_corpus, whole=MEAN).items()):
        series = by_corpus[corpus]
        marker = MARKERS[number % len(MARKERS)]
        axes.plot(series.steps, series.values, color=colour, marker=marker, markersize=4, label=_label(corpus))
        if series.steps[0] == 0:
            axes.axhline(series.values[0], color=colour, linestyle=":", linewidth=1.4)
        best = series.steps == best_step
        axes.plot(series.steps[best], series.values[best], color=colour, marker="*", markersize=14, linestyle="")
    axes.set_ylabel(f"{_label(metric)}\n(validation, 0 to 1)", fontsize=11)
    dotted = Line2D([], [], color=QUIET_COLOUR, linestyle=":", linewidth=1.4, label="before training")
    best_label = "best step: none" if best_step is None else f"best step: {best_step:,}"
    star = Line2D([], [], color=QUIET_COLOUR, marker="*", markersize=11, linestyle="", label=best_label)
    _legend(axes, dotted, star)


def _draw_rates(axes: Axes, rates: dict[str, Series]) -> None:
    from matplotlib.ticker import StrMethodFormatter

    for name, colour in _colours(rates, whole="").items():
        axes.plot(rates[name].steps, rates[name].values, color=colour, linewidth=1.8, label=_label(name))
    axes.set_ylabel("learning rate", fontsize=11)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    if len(rates) > 1:
        _legend(axes)


def _colours(names: dict[str, Series], whole: str) -> dict[str, str]:
    """A colour for each name; the whole is last, so that its line is on top."""
    parts = [name for name in names if name != whole]
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(parts)}
    return {**colours, whole: WHOLE_COLOUR} if whole in names else colours


def _label(name: str) -> str:
    return name.replace("$", r"\$")  # a pair of dollars would be read as mathematics


def _style(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E4E4E4")
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=10)


def _legend(axes: Axes, *more: Line2D) -> None:
    """Draw the legend beside the panel, where it covers no line."""
    handles = [*axes.get_legend_handles_labels()[0], *more]
    axes.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, frameon=False, fontsize=10
    )
