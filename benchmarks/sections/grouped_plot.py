"""Means with intervals, side by side for each of some groups that have no distance between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.plots import add_legend, series_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 0.7  # of a group, where groups are 1 apart


@dataclass(frozen=True, slots=True)
class Mean:
    """What one series shows for one group."""

    value: float  # in [0, 1]
    interval: tuple[float, float]


def draw_groups(axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[Mean]]) -> None:
    """Draw a marker and an interval for each series and group.

    Args:
        axes: empty.
        groups: G names, from left to right.
        series: for each name G means.
    """
    for number, (name, (colour, marker)) in enumerate(series_styles(series).items()):
        x = [place + _WIDTH * ((number + 0.5) / len(series) - 0.5) for place in range(len(groups))]
        low, high = zip(*(mean.interval for mean in series[name]), strict=True)
        axes.vlines(x, low, high, color=colour, linewidth=1.2)
        axes.plot(x, [mean.value for mean in series[name]], marker, color=colour, markersize=6, label=name)
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.set_ylim(-0.02, 1.02)
    axes.grid(visible=False, axis="x")
    add_legend(axes)
