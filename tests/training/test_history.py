"""The history of a training run: rows written to a file, read back, and grouped."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.errors import MissingExtra, TrainingError
from engine.training.run.history import History, Row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.csv"


def write_three_steps(path: Path) -> History:
    history = History.begin(path)
    history.add_validation(0, "nDCG@10", {"rfc": 0.25, "proposals": 0.5})
    for step in (1, 2, 3):
        history.add_step(
            step,
            {"loss": 3.0 / step, "words": 1.0 / step},
            learning_rate=0.1,
            tokens_per_second=900.0,
            seconds=2.0 * step,
        )
    return history


def test_the_file_is_plain_csv_a_row_for_each_number(path: Path) -> None:
    write_three_steps(path)
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


def test_what_was_added_is_read_back(path: Path) -> None:
    rows = write_three_steps(path).rows
    assert History.read(path).rows == rows
    assert rows[4] == Row(1, "loss/words", 1.0)


def test_every_float_comes_back_as_it_was(path: Path) -> None:
    values = [0.1 + 0.2, 1e-300, 5e-324, -0.0, math.inf, float(np.float32(0.1))]
    history = History.begin(path)
    history.add(1, {f"x/{number}": value for number, value in enumerate(values)})
    assert [row.value for row in History.read(path).rows] == values
    history.add(2, {"x/nan": math.nan})
    assert math.isnan(History.read(path).rows[-1].value)


def test_names_are_quoted_where_csv_requires_it(path: Path) -> None:
    History.begin(path).add(1, {'valid R@5/"a", b': 0.5})
    assert History.read(path).rows == (Row(1, 'valid R@5/"a", b', 0.5),)
    with path.open(newline="") as stream:
        assert list(csv.reader(stream))[1] == ["1", 'valid R@5/"a", b', "0.5"]


def test_resuming_drops_rows_after_the_step_and_appends(path: Path) -> None:
    rows = write_three_steps(path).rows
    history = History.resume(path, 2)
    assert history.rows == History.read(path).rows == tuple(row for row in rows if row.step <= 2)
    history.add(3, {"loss": 7.0, "gradient norm": 1.5})
    assert History.read(path).rows[-2:] == (Row(3, "loss", 7.0), Row(3, "gradient norm", 1.5))
    assert [file.name for file in path.parent.iterdir()] == ["history.csv"]


@pytest.mark.parametrize("n_lost", range(1, 14))
def test_a_line_that_was_cut_off_does_not_count(path: Path, n_lost: int) -> None:
    rows = write_three_steps(path).rows
    path.write_bytes(path.read_bytes()[:-n_lost])  # the last line: 3,seconds,6.0 and CR LF
    assert History.read(path).rows == rows[:-1]
    History.resume(path, 3).add(3, {"seconds": 8.0})
    assert History.read(path).rows == (*rows[:-1], Row(3, "seconds", 8.0))


def test_a_file_saved_with_plain_line_ends_is_read(path: Path) -> None:
    rows = write_three_steps(path).rows
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
    assert History.read(path).rows == rows


def test_rows_added_to_a_history_that_was_read_stay_in_memory(path: Path) -> None:
    write_three_steps(path)
    before = path.read_bytes()
    History.read(path).add(4, {"loss": 1.0})
    assert path.read_bytes() == before


def test_a_new_run_replaces_the_old_one(path: Path) -> None:
    write_three_steps(path)
    assert History.begin(path).rows == History.read(path).rows == ()


def test_resuming_without_a_file_raises_an_error(path: Path) -> None:
    with pytest.raises(TrainingError) as raised:
        History.resume(path, 1)
    assert str(raised.value) == f"{path} cannot be read (No such file or directory); start the run again"


@pytest.mark.parametrize(
    "content",
    [b"", b"step,loss\n1,2\n", b"step,name,value\n1,loss\n", b"step,name,value\none,loss,1\n", b"\xff\n"],
)
def test_a_damaged_file_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(TrainingError, match=r"history.csv is damaged \(.*\); start the run again"):
        History.resume(path, 1)
    assert path.read_bytes() == content


def test_steps_do_not_go_back(path: Path) -> None:
    history = write_three_steps(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"^step 2 lies before the last one, 3; take the run up: resume$"):
        history.add(2, {"loss": 1.0})
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["", "a\nb", "a\rb", "a\n"])
def test_an_empty_name_or_one_with_a_line_break_is_refused(path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a number"):
        History.begin(path).add(1, {name: 1.0})


def test_series_are_grouped_by_the_name_before_the_slash(path: Path) -> None:
    losses = write_three_steps(path).group("loss")
    assert list(losses) == ["", "words"]
    assert losses[""].steps.tolist() == [1, 2, 3]
    assert losses[""].values.tolist() == [3.0, 1.5, 1.0]
    assert losses["words"].values.tolist() == [1.0, 0.5, 1.0 / 3]


def test_a_metric_is_given_by_corpus_and_as_their_mean(path: Path) -> None:
    history = write_three_steps(path)
    assert history.metrics == ["nDCG@10"]
    means = {corpus: series.values.tolist() for corpus, series in history.validation("nDCG@10").items()}
    assert means == {"rfc": [0.25], "proposals": [0.5], "mean": [0.375]}


@pytest.mark.parametrize(
    ("values", "best"),
    [([0.4, 0.6, 0.6], 10), ([0.4, 0.3, 0.2], 0), ([math.nan, 0.1, 0.2], 20), ([math.nan] * 3, None), ([], None)],
)
def test_the_best_step_is_the_first_with_the_highest_mean(values: list[float], best: int | None) -> None:
    history = History()
    for number, value in enumerate(values):
        history.add_validation(10 * number, "nDCG@10", {"rfc": value})
    assert history.best_step("nDCG@10") == best


def test_a_missing_matplotlib_raises_an_error_with_the_install_command(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.ticker"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "engine.training.run.curves", raising=False)
    with pytest.raises(MissingExtra) as raised:
        History().save_curves(path)
    assert str(raised.value).startswith("training curves needs matplotlib; install it: pip install 'accelerate>=1.10' ")
