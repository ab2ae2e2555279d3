"""A run continues with its recipe; changes that are allowed are recorded, and others are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import TrainingError
from engine.training.fine_tuning import FineTuningSettings, Loss
from engine.training.trainer import CHECKPOINT_FOLDER, TrainerSettings
from indexer.training.recipe import Negatives, PairsObjective, Recipe, SectionsObjective, settings_of, shown
from indexer.training.record import RECIPE_FILE, Record, reached_step, reconcile, write_record

BEGUN = Record({"papers": "aaaa", "rfc": "bbbb"}, settings_of(Recipe()))


def changed(**settings: object) -> Record:
    return replace(
        BEGUN, settings={**BEGUN.settings, **{name.replace("_", " "): one for name, one in settings.items()}}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that was stopped after step 75."""
    checkpoint = tmp_path / CHECKPOINT_FOLDER / "checkpoint-75"
    checkpoint.mkdir(parents=True)
    (checkpoint / "trainer_state.json").write_text('{"global_step": 75}')
    write_record(tmp_path, BEGUN)
    return tmp_path


def test_the_reached_step_is_that_of_the_last_checkpoint(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert reached_step(folder) == 75
    assert reached_step(tmp_path_factory.mktemp("empty")) is None


def test_the_same_recipe_continues_the_run(folder: Path) -> None:
    assert reconcile(folder, BEGUN) == BEGUN


@pytest.mark.parametrize(
    ("requested", "difference"),
    [
        (replace(BEGUN, corpora={"papers": "aaaa"}), "corpora papers, rfc, not papers"),
        (replace(BEGUN, corpora={"rfc": "bbbb", "papers": "aaaa"}), "corpora papers, rfc, not rfc, papers"),
        (replace(BEGUN, corpora={"papers": "cccc", "rfc": "bbbb"}), "checksum of papers aaaa, not cccc"),
        (changed(queries=24), "queries 20, not 24"),
        (changed(label="topic", seed=1), "label none, not topic; seed 0, not 1"),
        (
            replace(BEGUN, settings=settings_of(Recipe(objective=SectionsObjective()))),
            "objective pairs, not s",
        ),
    ],
)
def test_another_recipe_is_refused(folder: Path, requested: Record, difference: str) -> None:
    with pytest.raises(TrainingError) as raised:
        reconcile(folder, requested)
    assert str(raised.value).startswith(f"the run in {folder} began with {difference}")
    assert str(raised.value).endswith("; give again what it began with, or name another folder for a new run")


def test_settings_that_do_not_affect_the_parameters_may_change_without_a_record(folder: Path) -> None:
    other = changed(group_tokens=512, checkpoint_gradients=True, licence="mit", half=True)
    assert reconcile(folder, other).changes == ()


def test_changes_during_a_run_are_recorded(folder: Path) -> None:
    first = reconcile(folder, changed(learning_rate=1e-5, steps=600))
    assert first.changes == ("steps 300 became 600 after step 75", "learning rate 3e-05 became 1e-05 after step 75")
    write_record(folder, first)
    assert reconcile(folder, first).changes == first.changes
    patient = replace(first, settings={**first.settings, "patience": 3})
    assert reconcile(folder, patient).changes == (*first.changes, "patience none became 3 after step 75")


def test_a_run_without_a_checkpoint_starts_over(tmp_path: Path) -> None:
    write_record(tmp_path, BEGUN)
    assert reconcile(tmp_path, changed(queries=24)) == changed(queries=24)


def test_a_damaged_record_raises_an_error(folder: Path) -> None:
    (folder / RECIPE_FILE).write_text("{")
    with pytest.raises(TrainingError) as raised:
        reconcile(folder, BEGUN)
    assert str(raised.value).startswith(f"{folder / RECIPE_FILE} is damaged (JSONDecodeError(")
    assert str(raised.value).endswith("; delete it, and the run goes on with what it is given now")


def test_settings_are_flat_and_without_folders(tmp_path: Path) -> None:
    encoder = tmp_path / "bert"
    encoder.mkdir()
    settings = FineTuningSettings(losses={Loss.MAXSIM: 0.5, Loss.DISTILLATION: 1.0}, queries=4)
    recipe = Recipe(
        objective=PairsObjective(settings, Negatives.BM25, teacher=str(encoder)), trainer=TrainerSettings(steps=7)
    )
    recorded = settings_of(recipe)
    assert (recorded["objective"], recorded["queries"], recorded["miner"], recorded["steps"]) == ("pairs", 4, "bm25", 7)
    assert (recorded["losses"], recorded["teacher"]) == ("maxsim=0.5,distillation=1", "bert")
    assert (recorded["encoder"], recorded["new"], recorded["seed"]) == ("longmatch-minilm", None, 0)


def test_a_name_on_the_hub_is_shown_as_it_is() -> None:
    assert (shown("allenai/specter"), shown("")) == ("allenai/specter", "")
