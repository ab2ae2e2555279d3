"""Heatmaps: labels, lines and numbers, read back from the figure."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.image import imread  # noqa: E402

from engine.encoders.encoder import Vectors  # noqa: E402
from engine.plots.heatmap import Axis, draw_heatmap, section_axis  # noqa: E402
from tests.fakes import make_document  # noqa: E402

DOCUMENT = make_document("d", [("Old", "fox"), ("New", "dog"), ("", "the river bank")], title="Foxes")


def values(n_rows: int, n_columns: int) -> Vectors:
    return np.random.default_rng(0).uniform(-1, 1, (n_rows, n_columns)).astype(np.float32)


def drawn(rows: Axis, columns: Axis) -> Axes:
    axes: Axes = draw_heatmap(values(rows.n_cells, columns.n_cells), rows, columns, measure="cosine").axes[0]
    return axes


def to_png(figure: Figure) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a heading may be in any script
        figure.savefig(stream, format="png", bbox_inches="tight", pad_inches=0.1)
    return stream.getvalue()


def axis_of(*sizes: int) -> Axis:
    return Axis("title", tuple(f"section {number}" for number in range(len(sizes))), sizes)


def test_sections_are_named_by_heading_or_first_words() -> None:
    assert section_axis(DOCUMENT) == Axis("Foxes", ("Old", "New", "“the river bank”"), (1, 1, 1))


def test_a_label_stands_in_the_middle_of_its_cells() -> None:
    axes = drawn(axis_of(1, 3), axis_of(2, 2, 1))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["section 0", "section 1"]
    assert axes.get_yticks().tolist() == [0, 2]
    assert axes.get_xticks().tolist() == [0.5, 2.5, 4]


def test_lines_stand_between_sections_of_several_chunks_and_nowhere_else() -> None:
    lines = drawn(axis_of(1, 3), axis_of(2, 2, 1)).get_lines()
    assert [line.get_ydata()[0] for line in lines[:1]] == [0.5]
    assert [line.get_xdata()[0] for line in lines[1:]] == [1.5, 3.5]
    assert drawn(axis_of(1, 1), axis_of(1, 1, 1)).get_lines() == []


def test_labels_of_narrow_sections_are_thinned_and_the_picture_stays_small() -> None:
    axes = drawn(axis_of(*[2] * 300), axis_of(*[1] * 400))
    assert axes.figure.get_size_inches().max() <= 11
    for ticks, n_cells, side in ((axes.get_yticks(), 600, 1), (axes.get_xticks(), 400, 0)):
        per_cell = axes.figure.get_size_inches()[side] / n_cells
        assert np.diff(ticks).min() * per_cell >= 0.16
        assert 20 < len(ticks) < 100


def test_few_cells_show_their_values_and_many_do_not() -> None:
    axes = draw_heatmap(
        np.array([[0.5, -0.25], [1.0, 0.0]], np.float32), axis_of(1, 1), axis_of(1, 1), measure="cosine"
    ).axes[0]
    assert [text.get_text() for text in axes.texts] == [".50", "-.25", "1.00", ".00"]
    assert len(drawn(axis_of(30), axis_of(30)).texts) == 0


def test_long_headings_are_shortened_at_a_word() -> None:
    heading = "A heading that says far more than fits beside a picture"
    axes = drawn(Axis("t", (heading,), (1,)), Axis("t", ("x" * 80,), (1,)))
    assert axes.get_yticklabels()[0].get_text() == "A heading that says far more than…"
    assert axes.get_xticklabels()[0].get_text() == "x" * 33 + "…"


@pytest.mark.parametrize("heading", ["costs $x and $y^", "价格 与 成本", "a_b \\frac{", "", "<b>&</b>"])
def test_a_heading_of_any_kind_is_drawn_as_it_stands(heading: str) -> None:
    axis = Axis(heading, (heading, "other"), (1, 1))
    figure = draw_heatmap(values(2, 2), axis, axis, measure="cosine")
    assert figure.axes[0].get_yticklabels()[0].get_text() == heading
    assert to_png(figure).startswith(b"\x89PNG\r\n")


def test_the_picture_includes_labels_and_scale() -> None:
    figure = draw_heatmap(values(4, 4), axis_of(1, 1, 1, 1), axis_of(1, 1, 1, 1), measure="cosine")
    height, width, _ = imread(io.BytesIO(to_png(figure))).shape
    matrix_width, matrix_height = figure.get_size_inches() * figure.dpi
    assert height > matrix_height + 30 and width > matrix_width + 80
