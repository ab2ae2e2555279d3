"""Heat maps of results: cells are contributions, columns sum to scores; and figures as PNG and SVG files."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread

from engine.encoders.encoder import Vectors
from engine.errors import MissingExtra, QueryError
from engine.index import Index
from engine.plots import COLOURS, MARKERS, Axis, Plot, draw_heatmap, figure_file, section_axis
from engine.search.request import Request
from engine.views import Result
from tests.fakes import make_document

DOCUMENT = make_document("d", [("Old", "fox"), ("New", "dog"), ("", "the river bank")], title="Foxes")


@pytest.fixture
def result(index: Index) -> Result:
    return index.search("doc003", Request(k=4))


def cells(figure: Figure) -> np.ndarray:
    return np.asarray(figure.axes[0].images[0].get_array())


def texts(labels: list[object]) -> list[str]:
    return [label.get_text() for label in labels]  # type: ignore[attr-defined]


def test_a_hit_has_a_cell_for_each_section_pair_and_its_score(result: Result) -> None:
    hit = result[0]
    figure = hit.plot()
    expected = np.zeros((len(result.query.sections), len(hit.document.sections)))
    for pair in hit.pairs:
        expected[pair.query_section, pair.target_section] += pair.contribution
    np.testing.assert_allclose(cells(figure), expected, atol=1e-6)
    assert cells(figure).sum() == pytest.approx(hit.score, abs=1e-5)
    assert figure.axes[0].get_title("left") == f"1. score {hit.score:.4f}"


def test_columns_of_a_result_sum_to_the_scores(result: Result) -> None:
    figure = result.plot()
    np.testing.assert_allclose(cells(figure).sum(0), [hit.score for hit in result], atol=1e-5)
    axes = figure.axes[0]
    assert texts(axes.get_xticklabels()) == [f"{hit.rank}. {hit.score:.4f} {hit.title}" for hit in result]
    assert texts(axes.get_yticklabels()) == ["part one", "part two", "part three"]
    assert len(axes.texts) == int((cells(figure) >= 0.005).sum())


def test_what_cannot_be_drawn_is_refused(index: Index, result: Result) -> None:
    with pytest.raises(QueryError, match="the result of 'Title 3' has no hits to draw; "):
        index.search("doc003", Request(where="year > 9999")).plot()
    with pytest.raises(QueryError, match="belongs to no result"):
        replace(result[0], _answer=None).plot()


def test_without_matplotlib_the_error_has_the_command(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for plot, name in ((result.plot, "Result.plot()"), (result[0].plot, "Hit.plot()")):
        with pytest.raises(MissingExtra) as caught:
            plot()
        assert str(caught.value) == f"{name} needs matplotlib; install it: pip install 'matplotlib>=3.9'"


def values(n_rows: int, n_columns: int) -> Vectors:
    return np.random.default_rng(0).uniform(0, 1, (n_rows, n_columns)).astype(np.float32)


def axis(n: int) -> Axis:
    return Axis("title", tuple(f"section {number}" for number in range(n)))


def drawn(rows: Axis, columns: Axis) -> Axes:
    return draw_heatmap(values(len(rows.labels), len(columns.labels)), rows, columns, "title").axes[0]


def test_sections_are_named_by_heading_or_first_words_and_long_ones_shortened_at_a_word() -> None:
    assert section_axis(DOCUMENT) == Axis("Foxes", ("Old", "New", "“the river bank”"))
    heading = "A heading that says far more than fits beside a picture"
    axes = drawn(Axis("t", (heading,)), Axis("t", ("x" * 80,)))
    assert texts(axes.get_yticklabels()) == ["A heading that says far more than…"]
    assert texts(axes.get_xticklabels()) == ["x" * 33 + "…"]


def test_labels_of_narrow_cells_are_thinned_and_the_picture_stays_small() -> None:
    axes = drawn(axis(600), axis(400))
    assert axes.figure.get_size_inches().max() <= 11
    for ticks, n_cells, side in ((axes.get_yticks(), 600, 1), (axes.get_xticks(), 400, 0)):
        per_cell = axes.figure.get_size_inches()[side] / n_cells
        assert np.diff(ticks).min() * per_cell >= 0.16
        assert 20 < len(ticks) < 100


def test_few_cells_show_their_values_and_many_do_not() -> None:
    contributions = np.array([[0.5, 0.004], [1.0, 0.006]], np.float32)
    axes = draw_heatmap(contributions, axis(2), axis(2), "title").axes[0]
    assert [text.get_text() for text in axes.texts] == [".50", "1.00", ".01"]
    assert len(drawn(axis(30), axis(30)).texts) == 0


@pytest.mark.parametrize("heading", ["costs $x and $y^", "价格 与 成本", "a_b \\frac{", "", "<b>&</b>"])
def test_a_heading_of_any_kind_is_drawn_as_it_stands(heading: str) -> None:
    side = Axis(heading, (heading, "other"))
    figure = draw_heatmap(values(2, 2), side, side, "title")
    assert figure.axes[0].get_yticklabels()[0].get_text() == heading
    assert figure_file(figure, "png").startswith(b"\x89PNG\r\n")


def figure(title: str = "A title") -> Plot:
    made = Plot(figsize=(2, 1), facecolor="white")
    made.add_subplot().set_title(title)
    return made


def test_a_picture_is_white_around_what_is_drawn_and_every_colour_has_a_marker() -> None:
    image = imread(io.BytesIO(figure_file(figure(), "png")))
    assert (image[[0, -1], :, :3] == 1).all() and (image[:, [0, -1], :3] == 1).all()
    assert (image[..., :3] < 0.5).any()
    assert len(set(COLOURS)) == len(set(MARKERS)) == len(COLOURS) == len(MARKERS)


@pytest.mark.parametrize("form", ["png", "svg"])
def test_the_same_figure_gives_the_same_bytes(form: str) -> None:
    assert figure_file(figure(), form) == figure_file(figure(), form)  # type: ignore[arg-type]
    assert figure()._repr_png_() == figure_file(figure(), "png")  # as a notebook shows it


def test_titles_of_any_script_are_drawn_and_stay_text_in_an_svg() -> None:
    svg = figure_file(figure("Foxes & hens"), "svg").decode()
    assert ">Foxes &amp; hens</text>" in svg and "<dc:date>" not in svg
    assert figure_file(figure("狐狸"), "png").startswith(b"\x89PNG")  # without a warning
