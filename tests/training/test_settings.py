"""Settings: every number keeps its range, and every default is read back from the text that is listed."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any, get_type_hints

import pytest

from engine.errors import TrainingError
from engine.training.fine_tuning import FineTuningSettings, Loss
from engine.training.settings import Range, Settings, parse, shown_value
from engine.training.trainer import TrainerSettings
from indexer.training import (
    Kind,
    NewEncoder,
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

SETTINGS = [
    *(PairsObjective(), SectionsObjective(), TextPairsObjective()),
    *(ViewsObjective(), TensionObjective(), WordsObjective(), SmithObjective()),
    *(TrainerSettings(), Start(), NewEncoder(Kind.TDE), Recipe()),
]
FIELDS = [(settings, one) for settings in SETTINGS for one in fields(settings) if "meaning" in one.metadata]
NAMES = [f"{type(settings).__name__}.{one.name}" for settings, one in FIELDS]


def outside(within: Range) -> list[float]:
    numbers = [(within.least, -1), (within.above, 0), (within.below, 0), (within.most, 1)]
    return [end + step for end, step in numbers if end is not None]


@pytest.mark.parametrize(("settings", "one"), FIELDS, ids=NAMES)
def test_every_number_is_refused_outside_of_its_range(settings: Settings, one: Field[Any]) -> None:
    kinds = str(get_type_hints(type(settings))[one.name])
    within = one.metadata["range"]
    assert ("int" in kinds or "float" in kinds) == (within is not None) or "Mapping" in kinds
    required = {"kind": Kind.TDE} if isinstance(settings, NewEncoder) else {}
    for value in outside(within) if within else ():
        with pytest.raises(TrainingError) as raised:
            type(settings)(**required, **{one.name: value})
        assert str(raised.value) == f"{one.name.replace('_', ' ')} is {value}; it must be {within}"


@pytest.mark.parametrize(("settings", "one"), FIELDS, ids=NAMES)
def test_every_default_is_read_from_the_text_that_is_listed(settings: Settings, one: Field[Any]) -> None:
    value = getattr(settings, one.name)
    assert parse(one.name, shown_value(value), get_type_hints(type(settings))[one.name]) == value
    assert one.metadata["meaning"][-1] != "."


def test_ranges_are_written_out() -> None:
    assert (
        str(Range(least=0, below=1)) == "at least 0 and below 1"
        and str(Range(above=0, most=2)) == "above 0 and at most 2"
    )


@pytest.mark.parametrize("losses", [{}, {Loss.BCE: 0.0}, {Loss.BCE: 1.0, Loss.MAXSIM: -1.0}])
def test_losses_without_weight_are_refused(losses: dict[Loss, float]) -> None:
    with pytest.raises(TrainingError, match=r"give each a weight of at least 0, and one of them more$"):
        FineTuningSettings(losses=losses)
