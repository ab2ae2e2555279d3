from __future__ import annotations

import pytest

from benchmarks.plots import new_figure
from benchmarks.sections.grouped_plot import Mean, draw_groups

pytest.importorskip("matplotlib")


def test_series_stand_beside_each_other_in_each_group() -> None:
    _, axes = new_figure("Title", "group", "value")
    low, high = [Mean(0.2, (0.1, 0.3)), Mean(0.4, (0.4, 0.5))], [Mean(0.9, (0.8, 1)), Mean(0.7, (0.6, 0.7))]
    draw_groups(axes, ["one", "two"], {"low": low, "high": high})
    places = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines}
    assert places["low"] == (pytest.approx([-0.175, 0.825]), [0.2, 0.4])
    assert places["high"] == (pytest.approx([0.175, 1.175]), [0.9, 0.7])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["one", "two"]
