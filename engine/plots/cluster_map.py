"""Clusters of overlapping documents on the map of their corpus. It needs matplotlib.

A cluster has a number, a colour and a marker; lines are the pairs that connect it. Near-duplicates are at the same
point, so a cluster of them can look like one document; the legend shows their number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from engine.pairs import Cluster, Pairs
from engine.plots.corpus_map import CorpusMap, Mapped, add_legend, draw_number, map_figure, point_size, row_of, short
from engine.plots.style import COLOURS, DARK, FAINT, MARKERS, Plot

MOST_NAMED = 20  # clusters with a colour and a name; the largest
_HUES = len(COLOURS) - 1  # black is for the clusters without a name


def plot_clusters(index: Mapped, made: CorpusMap, pairs: Pairs, least: float | None = None) -> Plot:
    """Draw the clusters of an index.

    Args:
        index: the index of the map and of the pairs.
        made: from `corpus_map`, with the documents of the clusters.
        pairs: of the index.
        least: lowest score of a pair that connects a cluster; by default that of `pairs`.

    Raises:
        QueryError: the score is below that of the pairs.
    """
    clusters = pairs.clusters(least)
    figure, axes = map_figure(made)
    rows = {name: row_of(index.snapshot, made.positions, name) for one in clusters for name, _ in one.members}
    shown = {name: row for name, row in rows.items() if row is not None}
    _draw_others(axes, made, list(shown.values()))
    _draw_lines(axes, made, pairs, pairs.least if least is None else least, shown)
    for cluster in clusters[:MOST_NAMED]:
        _draw_cluster(axes, made, cluster, shown)
    _draw_unnamed(axes, made, clusters[MOST_NAMED:], shown)
    n_members = sum(len(one.members) for one in clusters)
    title = f"{axes.get_title('left')}, {n_members:,} in {len(clusters):,} clusters"
    axes.set_title(title, loc="left", fontsize=11, color=DARK)
    add_legend(figure, axes)
    return figure


def _draw_others(axes: Axes, made: CorpusMap, members: Sequence[int]) -> None:
    """Draw the documents that are in no cluster."""
    is_other = np.ones(len(made.points), bool)
    is_other[list(members)] = False
    if is_other.any():
        style = {"linewidths": 0.4, "edgecolors": "white", "alpha": 0.6, "rasterized": len(made.points) > 2_000}
        style |= {"s": 0.6 * point_size(made), "color": FAINT, "label": "in no cluster"}
        axes.scatter(*made.points[is_other].T, **style)  # type: ignore[arg-type]


def _draw_lines(axes: Axes, made: CorpusMap, pairs: Pairs, least: float, shown: dict[str, int]) -> None:
    ends = [
        (made.points[shown[pair.first]], made.points[shown[pair.second]])
        for pair in pairs
        if pair.score >= least and pair.first in shown and pair.second in shown
    ]
    axes.add_collection(LineCollection(ends, colors=FAINT, linewidths=0.7, zorder=1), autolim=False)


def _draw_cluster(axes: Axes, made: CorpusMap, cluster: Cluster, shown: dict[str, int]) -> None:
    own = [shown[name] for name, _ in cluster.members if name in shown]
    size, there = len(cluster.members), f"{len(own):,} of " if len(own) < len(cluster.members) else ""
    label = f"{cluster.number}: {there}{size:,} documents, {short(cluster.members[0][1] or cluster.members[0][0])}"
    points = made.points[own]
    colour, marker = look_of(cluster.number)
    style = {"s": 1.4 * point_size(made), "linewidths": 0.4, "edgecolors": "white"}
    axes.scatter(*points.T, color=colour, marker=marker, label=label, **style)  # type: ignore[arg-type]
    if own:
        first = points[np.argmax(np.linalg.norm(points - made.points.mean(0), axis=1))]
        draw_number(axes, made, cluster.number, (float(first[0]), float(first[1])))


def look_of(number: int) -> tuple[str, str]:
    """Colour and marker of a cluster; no two of the first 42 clusters have both in common."""
    turn, hue = divmod(number - 1, _HUES)
    return COLOURS[hue], MARKERS[(hue + turn) % len(MARKERS)]


def _draw_unnamed(axes: Axes, made: CorpusMap, clusters: Sequence[Cluster], shown: dict[str, int]) -> None:
    own = [shown[name] for one in clusters for name, _ in one.members if name in shown]
    if own:
        label = f"{len(clusters):,} more cluster{'s' if len(clusters) > 1 else ''}"
        style = {"s": 0.8 * point_size(made), "color": COLOURS[-1], "marker": ".", "label": label}
        axes.scatter(*made.points[own].T, **style)  # type: ignore[arg-type]
