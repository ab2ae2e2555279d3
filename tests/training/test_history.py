"""Settings of encoders and of training, and the history of a run with its curves."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
from dataclasses import Field, fields
from itertools import chain
from pathlib import Path
from typing import Any, get_type_hints

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread
from matplotlib.lines import Line2D

from engine.encoders.colde import ColdeConfig
from engine.encoders.cpu import MeanConfig
from engine.encoders.smith_config import SmithConfig
from engine.encoders.tde import TdeConfig
from engine.errors import TrainingError
from engine.settings import Checked, Range, parse, shown_value
from engine.training.fine_tuning import FineTuningSettings, Loss
from engine.training.history import History, Number, draw_curves, rows_of, save_curves, smooth, validation_values
from engine.training.trainer import TrainerSettings
from indexer.training import (
    NewEncoder,
    NewKind,
    PairsObjective,
    Recipe,
    SectionsObjective,
    SmithObjective,
    Start,
    TensionObjective,
    TextPairsObjective,
    ViewsObjective,
    WordsObjective,
)
from indexer.training.start import LongSizes

SETTINGS = [
    *(PairsObjective(), SectionsObjective(), TextPairsObjective()),
    *(ViewsObjective(), TensionObjective(), WordsObjective(), SmithObjective()),
    *(TrainerSettings(), Start(), NewEncoder(NewKind.TDE), Recipe()),
    *(SmithConfig(), ColdeConfig(), TdeConfig(), MeanConfig(), LongSizes()),
]
FIELDS = [(settings, one) for settings in SETTINGS for one in fields(settings) if "meaning" in one.metadata]
NAMES = [f"{type(settings).__name__}.{one.name}" for settings, one in FIELDS]


def outside(within: Range) -> list[float]:
    numbers = [(within.least, -1), (within.above, 0), (within.below, 0), (within.most, 1)]
    return [end + step for end, step in numbers if end is not None]


@pytest.mark.parametrize(("settings", "one"), FIELDS, ids=NAMES)
def test_every_number_is_refused_outside_of_its_range(settings: Checked, one: Field[Any]) -> None:
    kinds = str(get_type_hints(type(settings))[one.name])
    within = one.metadata["range"]
    assert ("int" in kinds or "float" in kinds) == (within is not None) or "Mapping" in kinds
    required = {"kind": NewKind.TDE} if isinstance(settings, NewEncoder) else {}
    for value in outside(within) if within else ():
        with pytest.raises(settings.error) as raised:
            type(settings)(**required, **{one.name: value})
        assert str(raised.value) == f"{one.name} is {value}; it must be {within}"


@pytest.mark.parametrize(("settings", "one"), FIELDS, ids=NAMES)
def test_every_default_is_read_from_the_text_that_is_listed(settings: Checked, one: Field[Any]) -> None:
    value = getattr(settings, one.name)
    assert parse(one.name, shown_value(value), get_type_hints(type(settings))[one.name]) == value
    assert one.metadata["meaning"][-1] != "."


def test_ranges_are_written_out() -> None:
    assert (
        str(Range(least=0, below=1)) == "at least 0 and below 1"
        and str(Range(above=0, most=2)) == "above 0 and at most 2"
        and str(Range(least=1, most=8)) == "from 1 to 8"
    )


@pytest.mark.parametrize("losses", [{}, {Loss.BCE: 0.0}, {Loss.BCE: 1.0, Loss.MAXSIM: -1.0}])
def test_losses_without_weight_are_refused(losses: dict[Loss, float]) -> None:
    with pytest.raises(TrainingError, match=r"give each a weight of at least 0, and one of them more$"):
        FineTuningSettings(losses=losses)


ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.csv"


def three_steps() -> History:
    rows = rows_of(0, validation_values({"rfc": 0.25, "proposals": 0.5}))
    for step in (1, 2, 3):
        losses = {"loss": 3.0 / step, "loss/words": 1.0 / step}
        rows += rows_of(step, {**losses, "learning rate": 0.1, "tokens per second": 900.0, "seconds": 2.0 * step})
    return History(rows)


def test_the_file_is_plain_csv_a_row_for_each_number(path: Path) -> None:
    three_steps().write(path)
    assert path.read_bytes().split(b"\r\n")[:9] == [
        b"step,name,value",
        b"0,valid nDCG@10/rfc,0.25",
        b"0,valid nDCG@10/proposals,0.5",
        b"0,valid nDCG@10/mean,0.375",
        b"1,loss,3.0",
        b"1,loss/words,1.0",
        b"1,learning rate,0.1",
        b"1,tokens per second,900.0",
        b"1,seconds,2.0",
    ]
    assert [file.name for file in path.parent.iterdir()] == ["history.csv"]


def test_every_number_and_name_comes_back_as_it_was(path: Path) -> None:
    values = [0.1 + 0.2, 1e-300, 5e-324, -0.0, math.inf, float(np.float32(0.1)), math.nan]
    names = [f'valid R@5/"a", b{number}' for number in range(len(values))]
    History(Number(1, name, value) for name, value in zip(names, values, strict=True)).write(path)
    with path.open(newline="") as stream:
        _, *rows = csv.reader(stream)
    assert [row[1] for row in rows] == names
    np.testing.assert_array_equal([float(row[2]) for row in rows], values)


def test_series_are_grouped_by_the_name_before_the_slash_and_metrics_by_corpus() -> None:
    losses = three_steps().group("loss")
    assert list(losses) == ["", "words"]
    assert losses[""].steps.tolist() == [1, 2, 3]
    assert losses[""].values.tolist() == [3.0, 1.5, 1.0]
    assert losses["words"].values.tolist() == [1.0, 0.5, 1.0 / 3]
    history = three_steps()
    means = {corpus: series.values.tolist() for corpus, series in history.validation.items()}
    assert means == {"rfc": [0.25], "proposals": [0.5], "mean": [0.375]}


@pytest.mark.parametrize(
    ("values", "best"),
    [([0.4, 0.6, 0.6], 10), ([0.4, 0.3, 0.2], 0), ([math.nan, 0.1, 0.2], 20), ([math.nan] * 3, None), ([], None)],
)
def test_the_best_step_is_the_first_with_the_highest_mean(values: list[float], best: int | None) -> None:
    rows = (rows_of(10 * at, validation_values({"rfc": value})) for at, value in enumerate(values))
    assert History(chain.from_iterable(rows)).best_step == best


def made_history(*, corpora: tuple[str, ...] = ("rfc", "proposals"), scale: float = 1.0) -> History:
    """Sixty steps of two losses, and a metric that is best at step 20."""
    rows: list[Number] = []
    for step in range(61):
        if step:
            losses = {"loss": 1 + 2 / step + scale, "loss/words": 1 + 2 / step, "loss/matching": scale}
            rows += rows_of(step, {**losses, "learning rate": 1e-4 * step})
        if step % 20 == 0:
            value = {0: 0.25, 20: 0.75, 40: 0.5, 60: 0.375}[step]
            by_corpus = {name: value / n for n, name in enumerate(corpora, 1)}
            rows += rows_of(step, validation_values(by_corpus))
    return History(rows)


def values(line: Line2D) -> list[float]:
    drawn: list[float] = np.asarray(line.get_ydata()).tolist()
    return drawn


def labelled(axes: Axes) -> dict[str, list[float]]:
    return {str(line.get_label()): values(line) for line in axes.lines if str(line.get_label())[0] != "_"}


def of_style(axes: Axes, linestyle: str) -> list[list[float]]:
    return [values(line) for line in axes.lines if line.get_linestyle() == linestyle]


def smooth_by_hand(rows: list[float], window: int) -> list[float]:
    half = window // 2
    around = [rows[max(0, at - half) : at + half + 1] for at in range(len(rows))]
    return [sum(own) / len(own) for own in around]


@pytest.mark.parametrize(("n", "window"), [(1, 1), (5, 1), (5, 5), (40, 7)])
def test_smoothing_is_the_mean_around_each_value(n: int, window: int) -> None:
    rows = np.random.default_rng(0).standard_normal(n)
    np.testing.assert_allclose(smooth(rows, window), smooth_by_hand(rows.tolist(), window), atol=1e-12)


def test_a_value_that_is_not_a_number_leaves_a_gap_of_one_window() -> None:
    smoothed = smooth(np.array([1.0, 1.0, math.nan, 1.0, 1.0, 1.0]), 3)
    assert np.isnan(smoothed).tolist() == [False, True, True, True, False, False]


def test_each_kind_of_number_has_its_panel_with_a_named_axis_and_a_legend_beside_it() -> None:
    panels = draw_curves(made_history()).axes
    assert [axes.get_ylabel() for axes in panels] == [
        "training loss\n(mean of a batch)",
        "nDCG@10\n(validation, 0 to 1)",
        "learning rate",
    ]
    assert panels[-1].get_xlabel() == "step (updates of the weights)"
    figure = draw_curves(made_history())
    figure.draw_without_rendering()
    for axes in figure.axes[:2]:
        legend = axes.get_legend()
        assert legend.get_window_extent().x0 > axes.get_window_extent().x1


def test_losses_are_drawn_raw_and_smoothed_and_on_a_log_axis_where_far_apart() -> None:
    losses = draw_curves(made_history()).axes[0]
    assert list(labelled(losses)) == ["whole", "words", "matching"]
    raw = [1 + 2 / step for step in range(1, 61)]
    assert values(losses.lines[2]) == raw
    assert losses.lines[2].get_alpha() == 0.25
    np.testing.assert_allclose(labelled(losses)["words"], smooth_by_hand(raw, 3))
    assert draw_curves(made_history(scale=1.0)).axes[0].get_yscale() == "linear"
    assert draw_curves(made_history(scale=100.0)).axes[0].get_yscale() == "log"
    assert draw_curves(made_history(scale=-100.0)).axes[0].get_yscale() == "linear"


def test_a_metric_is_drawn_by_corpus_with_its_best_and_one_corpus_once() -> None:
    metric = draw_curves(made_history()).axes[1]
    assert labelled(metric) == {
        "rfc": [0.25, 0.75, 0.5, 0.375],
        "proposals": [0.125, 0.375, 0.25, 0.1875],
        "mean": [0.1875, 0.5625, 0.375, 0.28125],
    }
    assert of_style(metric, "None") == [[0.75], [0.375], [0.5625]]
    assert list(labelled(draw_curves(made_history(corpora=("rfc",))).axes[1])) == ["rfc"]


def test_no_two_of_forty_corpora_look_alike() -> None:
    metric = draw_curves(made_history(corpora=tuple(f"c{number}" for number in range(40)))).axes[1]
    looks = [(line.get_color(), line.get_marker()) for line in metric.lines if line.get_label() in labelled(metric)]
    assert len(set(looks)) == len(looks) == 41


def test_the_picture_is_a_png_alone_in_its_folder_also_of_a_run_without_a_number(tmp_path: Path) -> None:
    save_curves(made_history(), tmp_path / "curves.png")
    assert [file.name for file in tmp_path.iterdir()] == ["curves.png"]
    pixels = imread(tmp_path / "curves.png")
    assert pixels.shape == (1056, 990, 4)
    assert pixels[0, 0].tolist() == [1, 1, 1, 1]
    save_curves(History(), tmp_path / "empty.png")
    rows = [Number(1, name, math.nan) for name in ("valid nDCG@10/a$b^$", "valid nDCG@10/mean", "loss")]
    save_curves(History([*rows, Number(1, "learning rate", 0.0)]), tmp_path / "nan.png")
    assert imread(tmp_path / "nan.png").shape == (1056, 990, 4)


@pytest.mark.slow
def test_drawing_changes_no_setting_and_loads_no_pyplot() -> None:
    before = dict(mpl.rcParams)
    draw_curves(made_history())
    assert dict(mpl.rcParams) == before
    code = "import sys, engine.training.history; print('matplotlib.pyplot' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
