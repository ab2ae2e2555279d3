from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from benchmarks.papers.comparison import Comparison, Conditions, Measured, Size, Variant
from benchmarks.papers.record import PaperRecord
from benchmarks.papers.runner import run_comparison
from benchmarks.record_file import RecordError
from benchmarks.systems import Settings
from engine.errors import TrainingError
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import SCALE, conditions


@dataclass
class FakeArm:
    values: tuple[float, ...]
    failure: str = ""

    @property
    def settings(self) -> Settings:
        return {"mean": sum(self.values)}


@dataclass
class FakeTask:
    """A task that is a bench, too; knows which arms it has measured."""

    dataset: str = "pets@0"
    metric: str = "accuracy"
    asked: list[FakeArm] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        return {"dataset": self.dataset}

    def open(self, conditions: Conditions) -> FakeTask:
        return self

    def measure(self, arm: FakeArm) -> Measured:
        self.asked.append(arm)
        if arm.failure:
            raise TrainingError(arm.failure)
        return Measured(arm.values, [0, 1, 1], "bert@0", "bert", Size(2, 32, 1000), 24, 3, 2, 1.25)


def comparison(task: FakeTask, *, failure: str = "") -> Comparison:
    variants = (
        Variant("np", FakeArm((0.0, 1.0, 0.0), failure), 0.7),
        Variant("wp", FakeArm((1.0, 1.0, 0.0)), 0.8),
    )
    return Comparison("pretraining", "SMITH", "table 5", task, "wp", variants, SCALE)


@pytest.fixture
def given(tmp_path: Path, origin: Origin) -> Conditions:
    return conditions(tmp_path, tmp_path, origin)


def test_records_hold_what_was_measured_and_what_was_published(given: Conditions, tmp_path: Path) -> None:
    one, other = run_comparison(comparison(FakeTask()), [], given, tmp_path / "out")
    assert (one.name, other.name) == ("paper-SMITH-pretraining-np", "paper-SMITH-pretraining-wp")
    assert (one.values, one.groups, one.size) == ([0.0, 1.0, 0.0], [0, 1, 1], Size(2, 32, 1000))
    assert (one.published, one.below, other.below) == (0.7, [], ["np"])
    assert (one.scale, one.n_train, one.n_steps, one.best_step) == (given.scale, 24, 3, 2)


def test_what_was_measured_is_not_measured_again(given: Conditions, tmp_path: Path) -> None:
    task = FakeTask()
    first = run_comparison(comparison(task), ["np"], given, tmp_path / "out")
    again = run_comparison(comparison(task), [], given, tmp_path / "out")
    assert [arm.settings["mean"] for arm in task.asked] == [1.0, 2.0]
    assert again[0] == first[0]
    assert [record.variant for record in again] == ["np", "wp"]


@pytest.mark.parametrize("change", ["dataset", "scale", "seed", "settings"])
def test_what_is_asked_otherwise_is_measured_again(change: str, given: Conditions, tmp_path: Path) -> None:
    run_comparison(comparison(FakeTask()), ["np"], given, tmp_path / "out")
    task = FakeTask("pets@1") if change == "dataset" else FakeTask()
    if change == "scale":
        given = replace(given, scale=replace(given.scale, batch=16))
    if change == "seed":
        given = replace(given, origin=replace(given.origin, seed=1))
    asked = comparison(task)
    if change == "settings":
        asked = replace(asked, variants=(Variant("np", FakeArm((1.0, 1.0, 1.0))), asked.variants[1]))
    run_comparison(asked, ["np"], given, tmp_path / "out")
    assert len(task.asked) == 1


def test_one_that_fails_is_recorded_and_the_rest_goes_on(given: Conditions, tmp_path: Path) -> None:
    task = FakeTask()
    one, other = run_comparison(comparison(task, failure="the loss is nan"), [], given, tmp_path / "out")
    assert (one.failure, one.values, other.failure) == ("the loss is nan", [], "")
    mended = run_comparison(comparison(task), [], given, tmp_path / "out")  # it is tried again
    assert [record.failure for record in mended] == ["", ""]
    assert len(task.asked) == 3


def test_a_failure_takes_no_measurement_away(given: Conditions, tmp_path: Path) -> None:
    run_comparison(comparison(FakeTask()), [], given, tmp_path / "out")
    later = replace(given, scale=replace(given.scale, batch=16))
    run_comparison(comparison(FakeTask(), failure="out of memory"), ["np"], later, tmp_path / "out")
    task = FakeTask()
    kept: PaperRecord = run_comparison(comparison(task), ["np"], given, tmp_path / "out")[0]
    assert (kept.values, task.asked) == ([0.0, 1.0, 0.0], [])


def test_a_smaller_run_replaces_no_larger_one(given: Conditions, tmp_path: Path) -> None:
    run_comparison(comparison(FakeTask()), [], given, tmp_path / "out")
    task, smaller = FakeTask(), replace(given, scale=replace(given.scale, steps=2))
    with pytest.raises(RecordError, match="holds 3 steps to make, not 2; write the smaller one elsewhere"):
        run_comparison(comparison(task), [], smaller, tmp_path / "out")
    assert task.asked == []


def test_without_a_folder_nothing_is_written(given: Conditions, tmp_path: Path) -> None:
    run_comparison(comparison(FakeTask()), [], given, None)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_record_is_named(given: Conditions, tmp_path: Path) -> None:
    (tmp_path / "paper-SMITH-pretraining-np.json").write_text("{}")
    with pytest.raises(RecordError, match=r"paper-SMITH-pretraining-np\.json is no record"):
        run_comparison(comparison(FakeTask()), [], given, tmp_path)
