"""Settings of encoders and of training, and the history of a run."""

import csv
import math
from collections.abc import Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

from engine.encoders.colde import ColdeConfig
from engine.encoders.cpu import MeanConfig
from engine.encoders.smith_config import SmithConfig
from engine.encoders.tde import TdeConfig
from engine.errors import TrainingError
from engine.settings import Checked, Range, parse, shown_value
from engine.training.fine_tuning import FineTuningSettings, Loss
from engine.training.history import History, Number, validation_values
from engine.training.trainer import TrainerSettings
from indexer.training.recipe import (
    PairsObjective,
    Recipe,
    SectionsObjective,
    SmithObjective,
    TensionObjective,
    TextPairsObjective,
    ViewsObjective,
)
from indexer.training.start import LongSizes, NewEncoder, NewKind, Start

SETTINGS = [
    *(PairsObjective(), SectionsObjective(), TextPairsObjective()),
    *(ViewsObjective(), TensionObjective(), SmithObjective()),
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


def numbers(step: int, values: Mapping[str, float]) -> list[Number]:
    return [Number(step, name, value) for name, value in values.items()]


def three_steps() -> History:
    rows = numbers(0, validation_values({"rfc": 0.25, "proposals": 0.5}))
    for step in (1, 2, 3):
        losses = {"loss": 3.0 / step, "loss/words": 1.0 / step}
        rows += numbers(step, {**losses, "learning rate": 0.1, "tokens per second": 900.0, "seconds": 2.0 * step})
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


def test_metrics_are_found_by_corpus_and_step() -> None:
    assert three_steps().validation == {"rfc": {0: 0.25}, "proposals": {0: 0.5}, "mean": {0: 0.375}}
