from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.comparison import Conditions
from benchmarks.papers.pairs_task import EncoderArm, MatchingBench, MatchingTask
from benchmarks.papers.shuffled_task import Numbers, ReadingArm, ShuffledBench, ShuffledTask, Unit
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import COLDE_SIZES, conditions, write_citations

ARM = EncoderArm("colde", COLDE_SIZES)
TASK = ShuffledTask(MatchingTask("clscisumm"), ARM)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def given(tmp_path: Path, bert_folder: Path, origin: Origin, told: list[str]) -> Conditions:
    write_citations(tmp_path / "data")
    return replace(conditions(tmp_path, bert_folder, origin), log=told.append)


def test_as_written_is_pair_matching_as_ever(given: Conditions) -> None:
    measured = ShuffledBench(TASK, given).measure(ReadingArm())
    plain = MatchingBench(TASK.matching, given).measure(ARM)
    assert list(measured.values) == list(plain.values)
    assert (measured.groups, measured.size, measured.n_steps) == (plain.groups, plain.size, plain.n_steps)
    assert (measured.encoder, measured.begins_with) == (plain.encoder, plain.begins_with)


def test_all_orders_are_read_by_one_training(given: Conditions, told: list[str]) -> None:
    arms = [ReadingArm(), ReadingArm(Unit.CHUNKS, Numbers.ANEW), ReadingArm(Unit.SECTIONS, Numbers.FOLLOW)]
    for arm in arms:
        ShuffledBench(TASK, given).measure(arm)
    assert told == ["colde: trained once for all orders"]
    ShuffledBench(TASK, replace(given, scale=replace(given.scale, steps=2))).measure(ReadingArm())
    assert len(told) == 2


def test_values_are_means_over_orders(given: Conditions) -> None:
    bench = ShuffledBench(TASK, given)
    several = bench.measure(ReadingArm(Unit.CHUNKS, Numbers.ANEW, n_orders=4))
    assert np.array_equal(np.round(np.array(several.values) * 4), np.array(several.values) * 4)
    assert several.remark == "4 orders a document"
    assert list(bench.measure(ReadingArm(Unit.CHUNKS, Numbers.ANEW, n_orders=4)).values) == list(several.values)


def test_settings_tell_the_training_and_the_reading() -> None:
    arm = ReadingArm(Unit.SECTIONS, Numbers.ANEW)
    assert arm.settings == {"unit": "sections", "numbers": "anew", "n_orders": 5}
    assert ReadingArm().settings == {"unit": "none"}


def test_the_bench_names_its_training(given: Conditions) -> None:
    settings = ShuffledBench(TASK, given).settings
    assert (settings["trained_recipe"], settings["trained_sizes_lstm_width"]) == ("colde", "16")
