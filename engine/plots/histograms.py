"""Lengths of documents, and how much of them was read. It needs matplotlib."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from engine.plots.style import COLOURS, DARK, FAINT, Plot, plain_axes
from engine.store.snapshot import Snapshot

_BINS = 24
_MOST_KINDS = 12  # kinds of left-out content that are drawn; the most common
_LABEL_SIZE = 9
_LEFT = -0.25  # position of the bar of documents without vectors, left of 0 %
_FEWEST_BARS = 6  # bars for which there is always room, so that one bar does not fill a panel


def plot_lengths(snapshot: Snapshot) -> Plot:
    """Tokens and sections of the documents, each with its median."""
    figure = Plot(figsize=(9, 3.6), facecolor="white", layout="constrained")
    tokens, sections = figure.subplots(1, 2)
    about = " (estimated where there are no vectors)" if not snapshot.has_vectors.all() else ""
    _histogram(tokens, snapshot.tokens, f"tokens of a document{about}")
    _histogram(sections, section_counts(snapshot), "sections of a document")
    tokens.set_title(f"{snapshot.n_documents:,} documents", loc="left", fontsize=11, color=DARK)
    return figure


def section_counts(snapshot: Snapshot) -> NDArray[np.int64]:
    """(N,) sections of each document."""
    found = snapshot.documents(np.arange(snapshot.n_documents))
    return np.array([len(document.sections) for document, _ in found], np.int64)


def _histogram(axes: Axes, values: NDArray[np.int64], label: str) -> None:
    """Draw bars of equal width; on a logarithmic axis if the values span more than a factor of 20."""
    plain_axes(axes)
    axes.set_xlabel(label, fontsize=_LABEL_SIZE, color=DARK)
    axes.set_ylabel("documents", fontsize=_LABEL_SIZE, color=DARK)
    axes.yaxis.set_major_locator(_counts())
    if not len(values):
        return
    low, high = max(1, int(values.min())), max(2, int(values.max()))
    if high > 20 * low:
        axes.set_xscale("log")
        bins = np.geomspace(low, high + 1, _BINS).tolist()
    elif high - low < _BINS:
        bins = (np.arange(low, high + 2) - 0.5).tolist()  # a bar for each number
        axes.set_xlim(low - 2, high + 2)
        axes.xaxis.set_major_locator(_counts())
    else:
        bins = np.linspace(low, high + 1, _BINS + 1).tolist()
        axes.xaxis.set_major_locator(_counts())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.hist(np.maximum(values, 1), bins, color=COLOURS[0], edgecolor="white", linewidth=0.5)
    median = float(np.median(values))
    axes.axvline(median, color=COLOURS[1], linewidth=1.5)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.15)
    place = axes.get_xaxis_transform()
    axes.annotate(
        f"median {median:,.0f}", (median, 0.97), (5, 0), place, "offset points", fontsize=8, va="top", color=DARK
    )


def _counts() -> MaxNLocator:
    """Ticks at whole numbers."""
    return MaxNLocator(6, integer=True, steps=[1, 2, 5, 10])


def plot_coverage(snapshot: Snapshot) -> Plot:
    """The share of each document that the encoder read, and what readers left out of the files."""
    figure = Plot(figsize=(9, 3.6), facecolor="white", layout="constrained")
    read, left_out = figure.subplots(1, 2)
    _draw_shares(read, *read_shares(snapshot))
    _draw_left_out(left_out, left_out_counts(snapshot))
    read.set_title(f"{snapshot.n_documents:,} documents", loc="left", fontsize=11, color=DARK)
    return figure


def read_shares(snapshot: Snapshot) -> tuple[NDArray[np.float64], int]:
    """The share of tokens that the encoder read of each document with vectors, and the number of documents without."""
    found = snapshot.documents(np.arange(snapshot.n_documents))
    shares = [coverage.share for (_, coverage), has in zip(found, snapshot.has_vectors.tolist(), strict=True) if has]
    return np.array(shares), snapshot.n_documents - len(shares)


def left_out_counts(snapshot: Snapshot) -> dict[str, int]:
    """The number of documents for each kind of content that readers left out ("figures"), most common first."""
    counts: dict[str, int] = {}
    for document, _ in snapshot.documents(np.arange(snapshot.n_documents)):
        for kind in document.left_out:
            counts[kind] = counts.get(kind, 0) + 1
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _draw_shares(axes: Axes, shares: NDArray[np.float64], n_missing: int) -> None:
    plain_axes(axes)
    axes.hist(shares, np.linspace(0, 1, 21).tolist(), color=COLOURS[0], edgecolor="white", linewidth=0.5)
    ticks, names = [0.0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"]
    if n_missing:
        axes.bar(_LEFT, n_missing, 0.12, color="white", edgecolor=FAINT, hatch="///")
        axes.annotate(f"{n_missing:,}", (_LEFT, n_missing), (0, 2), "data", "offset points", fontsize=8, ha="center")
        ticks, names = [_LEFT, *ticks], ["no vectors\nyet", *names]
    axes.set_xticks(ticks, names)
    axes.set_xlim(_LEFT - 0.12 if n_missing else -0.05, 1.05)
    axes.yaxis.set_major_locator(_counts())
    axes.set_xlabel("tokens that the encoder read; words are read to the end", fontsize=_LABEL_SIZE, color=DARK)
    axes.set_ylabel("documents", fontsize=_LABEL_SIZE, color=DARK)


def _draw_left_out(axes: Axes, counts: dict[str, int]) -> None:
    plain_axes(axes)
    shown = list(counts.items())[:_MOST_KINDS][::-1]
    names = [kind.replace("_", " ") for kind, _ in shown]
    bars = axes.barh(names, [count for _, count in shown], color=COLOURS[0], height=0.6)
    axes.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=8)
    axes.xaxis.set_major_locator(_counts())
    axes.margins(x=0.12)
    axes.set_ylim(min(0, len(shown) - _FEWEST_BARS) - 0.5, max(1, len(shown)) - 0.5)
    label = "documents, by what their readers left out" if shown else "readers left nothing out"
    axes.set_xlabel(label, fontsize=_LABEL_SIZE, color=DARK)
    if not shown:
        axes.set_xticks([])
        axes.set_yticks([])
