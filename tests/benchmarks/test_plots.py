from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.plots import (
    Curve,
    Point,
    draw_curves,
    draw_pareto,
    new_figure,
    pareto_front,
    save_plot,
)

pytest.importorskip("matplotlib")


def front_by_hand(points: list[Point]) -> list[tuple[float, float]]:
    """Every point compared with every other point."""

    def is_beaten(point: Point) -> bool:
        return any(
            other.x <= point.x and other.y >= point.y and (other.x, other.y) != (point.x, point.y) for other in points
        )

    return sorted((point.x, point.y) for point in points if not is_beaten(point))


@pytest.mark.parametrize("seed", range(5))
def test_the_front_is_what_no_other_point_beats(seed: int) -> None:
    places = np.random.default_rng(seed).integers(0, 12, size=(40, 2))
    points = [Point("a", float(x), float(y)) for x, y in places]
    assert [(point.x, point.y) for point in pareto_front(points)] == front_by_hand(points)


@pytest.mark.slow
def test_a_figure_is_named_and_its_files_are_the_same_each_time(tmp_path: Path) -> None:
    def written(name: str) -> list[bytes]:
        figure, axes = new_figure("Costs $5 to $9", "ms a query", "nDCG@10")
        draw_pareto(axes, [Point("bm25", 1, 0.4, "k1 1.5", (0.3, 0.5)), Point("a $x$", 2, 0.5)])
        return [path.read_bytes() for path in save_plot(figure, tmp_path / name)]

    first, second = written("one/plot"), written("two/plot")
    assert first == second
    assert first[0].startswith(b"\x89PNG")
    assert b"<svg" in first[1]
    assert b"<dc:date>" not in first[1]


def test_the_front_and_each_series_stand_in_the_legend() -> None:
    _, axes = new_figure("", "", "")
    draw_pareto(axes, [Point("slow", 9, 0.9), Point("fast", 1, 0.5), Point("slow", 8, 0.7)])
    assert [line.get_xydata().tolist() for line in axes.lines] == [  # type: ignore[union-attr]
        [[1, 0.5], [8, 0.7], [9, 0.9]],
        [[9, 0.9], [8, 0.7]],
        [[1, 0.5]],
    ]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["Pareto front", "slow", "fast"]


def test_labels_of_the_right_half_stand_to_the_left_and_dollars_are_dollars() -> None:
    _, axes = new_figure("", "", "")
    draw_pareto(axes, [Point("a", 3, 1, "$x$"), Point("a", 1, 0, "y"), Point("$b$", 2, 0)])
    assert [(text.get_text(), text.get_ha()) for text in axes.texts] == [("$x$", "right"), ("y", "left")]
    assert not any(text.get_parse_math() for text in [*axes.texts, *axes.get_legend().get_texts()])


def test_a_curve_has_a_band_where_it_has_intervals() -> None:
    _, axes = new_figure("", "", "")
    draw_curves(axes, [Curve("a", [1, 2], [3, 4], [(2, 4), (3, 5)]), Curve("b", [1, 2], [0, 1])])
    assert len(axes.collections) == 1
    band = axes.collections[0].get_paths()[0].get_extents()
    assert (band.ymin, band.ymax) == (2, 5)
