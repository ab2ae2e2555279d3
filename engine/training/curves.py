"""The curves of a training run as one picture, for its folder and its model card. Needs matplotlib.

It draws on a figure of its own, without pyplot: no window opens, and no setting of the caller is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter
from numpy.typing import NDArray

from engine.store.durable import write_durably
from engine.training.history import LEARNING_RATE, LOSS, MEAN, History, Series

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
