"""Heat maps of results: the contributions of sections of queries and hits to scores. It needs matplotlib."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import PowerNorm

from engine.encoders.encoder import Vectors
from engine.errors import QueryError
from engine.plots.heatmap import Axis, draw_heatmap, section_axis
from engine.plots.style import DPI, Plot
from engine.report.table import no_hits
from engine.result import Hit, Result

_COLOURS = "Blues"  # from white, so that a cell without contribution is empty
_MEASURE = "contribution to the score"
_ROOT = 0.5  # exponent of values for their shades, since one strong pair would otherwise leave all others white
_LEAST_NUMBER = 0.005  # below it a number would be rounded to zero
_REST = "document vectors"


def plot_hit(result: Result, hit: Hit) -> Plot:
    """The contribution of each pair of a query section and a target section.

    Args:
        result: the result that contains the hit.
        hit: the hit to draw; the title line shows its score and the contribution of its document vectors.
    """
    rows, columns = section_axis(result.query), section_axis(hit.document)
    values = np.zeros((rows.n_cells, columns.n_cells), np.float32)
    for pair in hit.pairs:
        values[pair.query_section, pair.target_section] += pair.contribution
    document = hit.breakdown.document
    whole = "" if document is None else f", {document.contribution:.4f} of it by document vectors"
    return _drawn(values, rows, columns, f"{hit.rank}. score {hit.score:.4f}{whole}")


def plot_result(result: Result) -> Plot:
    """The contribution of each query section to the score of each hit; a column sums to a score, less small pairs.

    Raises:
        QueryError: there are no hits.
    """
    if not result.hits:
        raise QueryError(f"the result of {result.query.title!r} has no hits to draw; {no_hits(result)}")
    sections = section_axis(result.query)
    values = np.zeros((sections.n_cells + 1, len(result.hits)), np.float32)
    for column, hit in enumerate(result.hits):
        for pair in hit.pairs:
            values[pair.query_section, column] += pair.contribution
        if hit.breakdown.document is not None:
            values[-1, column] = hit.breakdown.document.contribution
    rows = Axis(sections.title, (*sections.labels, _REST), (*sections.sizes, 1))
    if not values[-1].any():
        values, rows = values[:-1], sections
    names = tuple(f"{hit.rank}. {hit.score:.4f} {hit.title}" for hit in result.hits)
    return _drawn(values, rows, Axis("hits, best first", names, (1,) * len(names)), f"{result.status.value} result")


def _drawn(values: Vectors, rows: Axis, columns: Axis, title: str) -> Plot:
    figure = Plot(dpi=DPI, facecolor="white")
    norm = PowerNorm(_ROOT, vmin=0.0, vmax=max(float(values.max(initial=0.0)), 1e-6))
    draw_heatmap(
        values, rows, columns, measure=_MEASURE, figure=figure, colours=_COLOURS, norm=norm, least_number=_LEAST_NUMBER
    )
    figure.axes[0].set_title(title, loc="left", y=0, pad=-34, fontsize=9)
    return figure
