"""A run continues with its recipe; changes that are allowed are recorded, and others are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import metadata_load

from engine.encoders.files import CARD_FILE
from engine.errors import TrainingError
from engine.training.fine_tuning import FineTuningSettings, Loss
from engine.training.history import History, Row, rows_of, validation_values
from engine.training.trainer import CHECKPOINT_FOLDER, TrainerSettings
from indexer.training.recipe import Negatives, PairsObjective, Recipe, SectionsObjective, settings_of, shown
from indexer.training.record import (
    CHANGES,
    RECIPE_FILE,
    CorpusSummary,
    Record,
    RunSummary,
    ValidationChange,
    compare_validations,
    reached_step,
    reconcile,
    write_card,
    write_record,
)

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


def test_the_reached_step_is_of_the_last_checkpoint(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
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


RUN = RunSummary(
    name="smith-proposals",
    encoder="smith",
    command="longmatch train smith out --corpus proposals --seed 7",
    base="all-MiniLM-L6-v2",
    base_model="sentence-transformers/all-MiniLM-L6-v2",
    licence="apache-2.0",
    corpora=(
        CorpusSummary("proposals", 12345, 678, "d41d8cd98f00", "CC0-1.0"),
        CorpusSummary("rfc", 9000, 0, "0123456789ab", ""),
    ),
    objective="Contrast of a document with the others of its batch.",
    settings={"temperature": 0.05, "batch pairs": 32, "sampler": "headings | citations", "learning rate": 2e-05},
    seed=7,
    steps=3000,
    best_step=1500,
    n_tokens=98765432,
    chunk_tokens=126,
    longest_words=131072,
    seconds=7384.4,
    machine="AMD EPYC 9B14, 2 cores, 8 GiB",
    commit="0c1bbe5",
    validations=(
        ValidationChange("proposals", "nDCG@10", 0.51234, 0.56),
        ValidationChange("rfc", "nDCG@10", 0.44, 0.4301),
        ValidationChange("mean", "nDCG@10", 0.47617, 0.49505),
    ),
)


def card_of(run: RunSummary, folder: Path) -> str:
    write_card(folder, run)
    return (folder / CARD_FILE).read_text("utf-8")


def section(card: str, heading: str) -> list[str]:
    """The lines of a section that are not empty."""
    body = card.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line for line in body.splitlines() if line]


def test_the_front_matter_is_what_the_hub_reads(tmp_path: Path) -> None:
    write_card(tmp_path, RUN)
    assert metadata_load(tmp_path / CARD_FILE) == {
        "library_name": "longmatch",
        "license": "apache-2.0",
        "language": "en",
        "base_model": "sentence-transformers/all-MiniLM-L6-v2",
        "tags": ["feature-extraction", "long-documents", "smith"],
    }


def test_a_licence_or_base_that_is_not_named_is_left_out_of_the_front_matter(tmp_path: Path) -> None:
    card = card_of(replace(RUN, base="", base_model="", licence=""), tmp_path)
    assert sorted(metadata_load(tmp_path / CARD_FILE) or {}) == ["language", "library_name", "tags"]
    assert "Training began with random weights." in card
    assert "No licence was chosen for the weights." in card


@pytest.mark.parametrize("odd", ['a: "b" # c', "- x\\y", "été 文 😀", "{[&*!|>%@`"])
def test_odd_names_do_not_break_the_front_matter(tmp_path: Path, odd: str) -> None:
    write_card(tmp_path, replace(RUN, base_model=odd))
    assert (metadata_load(tmp_path / CARD_FILE) or {})["base_model"] == odd


def test_the_opening_describes_the_encoder_and_gives_the_saved_step(tmp_path: Path) -> None:
    opening = card_of(RUN, tmp_path).partition("# smith-proposals\n\n")[2].splitlines()[0]
    assert opening == (
        "An encoder of type `smith` for longmatch: it turns a document into vectors of its chunks, its sections and "
        "its whole, and queries and targets go through the same weights. Training began with the weights of "
        "all-MiniLM-L6-v2. The saved weights are those of step 1,500 of 3,000."
    )


def test_a_saved_step_of_0_is_described_as_before_any_training(tmp_path: Path) -> None:
    assert "are those of step 0 of 3,000, before any training." in card_of(replace(RUN, best_step=0), tmp_path)


def test_validation_is_shown_before_and_after_with_the_sign_of_the_difference(tmp_path: Path) -> None:
    assert section(card_of(RUN, tmp_path), "Validation") == [
        "| corpus | metric | before | after | difference |",
        "| --- | --- | --- | --- | --- |",
        "| proposals | nDCG@10 | 0.5123 | 0.5600 | +0.0477 |",
        "| rfc | nDCG@10 | 0.4400 | 0.4301 | -0.0099 |",
        "| mean | nDCG@10 | 0.4762 | 0.4950 | +0.0189 |",
        'The saved step was chosen on these queries, so a test on others may come out lower. "mean" gives each corpus '
        "the same weight.",
    ]


def test_a_card_without_validation_states_that_nothing_was_validated(tmp_path: Path) -> None:
    assert section(card_of(replace(RUN, validations=()), tmp_path), "Validation") == ["Nothing was validated."]


def test_curves_and_history_are_linked_where_the_files_exist(tmp_path: Path) -> None:
    (tmp_path / "curves.png").touch()
    (tmp_path / "history.csv").touch()
    assert section(card_of(RUN, tmp_path), "Validation")[-2:] == [
        "![Losses, validation and learning rate over steps](curves.png)",
        "All numbers of the run: [history.csv](history.csv).",
    ]
    (tmp_path / "curves.png").unlink()
    assert "curves.png" not in card_of(RUN, tmp_path)


def test_training_data_are_listed_with_counts_checksums_and_licences(tmp_path: Path) -> None:
    assert section(card_of(RUN, tmp_path), "Training data")[2:] == [
        "| proposals | 12,345 | 678 | d41d8cd98f00 | CC0-1.0 |",
        "| rfc | 9,000 | 0 | 0123456789ab | not stated |",
    ]


def test_the_objective_has_a_table_of_settings(tmp_path: Path) -> None:
    assert section(card_of(RUN, tmp_path), "Objective") == [
        "Contrast of a document with the others of its batch.",
        "| setting | value |",
        "| --- | --- |",
        "| temperature | 0.05 |",
        "| batch pairs | 32 |",
        r"| sampler | headings \| citations |",
        "| learning rate | 2e-05 |",
    ]


def test_the_card_holds_everything_needed_to_rerun_the_training(tmp_path: Path) -> None:
    assert section(card_of(RUN, tmp_path), "How it was trained") == [
        "```sh",
        "longmatch train smith out --corpus proposals --seed 7",
        "```",
        "|  |  |",
        "| --- | --- |",
        "| seed | 7 |",
        "| steps | 3,000 |",
        "| best step | 1,500 |",
        "| tokens read | 98,765,432 |",
        "| wall time | 2 h 3 min 4 s |",
        "| machine | AMD EPYC 9B14, 2 cores, 8 GiB |",
        "| commit | 0c1bbe5 |",
    ]


def test_the_card_rounds_seconds_and_states_that_there_is_no_checkout(tmp_path: Path) -> None:
    rows = section(card_of(replace(RUN, seconds=59.6, commit=""), tmp_path), "How it was trained")
    assert "| wall time | 1 min 0 s |" in rows
    assert "| commit | none: not run from a git checkout |" in rows


def test_limits_state_language_lengths_and_licence(tmp_path: Path) -> None:
    limits = " ".join(section(card_of(RUN, tmp_path), "Intended use and limits"))
    assert "validated on English text" in limits
    assert "chunks of at most 126 tokens. The longest document of its corpora had 131,072 words" in limits
    assert "The weights are under the licence apache-2.0." in limits


def test_the_card_replaces_an_existing_card(tmp_path: Path) -> None:
    (tmp_path / CARD_FILE).write_text("old")
    assert re.match(r"---\nlibrary_name: ", card_of(RUN, tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == [CARD_FILE]


def test_validations_are_compared_before_training_and_at_the_best_step() -> None:
    rows: list[Row] = []
    for step, value in ((0, 0.25), (50, 0.75), (100, 0.5)):
        rows += rows_of(step, validation_values("nDCG@10", {"rfc": value, "proposals": 0.25}))
        rows += rows_of(step, validation_values("R@100", {"rfc": value / 2}))
    history = History([*rows, *rows_of(100, validation_values("late", {"rfc": 1.0}))])
    assert compare_validations(history, 50) == (
        ValidationChange("rfc", "nDCG@10", 0.25, 0.75),
        ValidationChange("proposals", "nDCG@10", 0.25, 0.25),
        ValidationChange("mean", "nDCG@10", 0.25, 0.5),
        ValidationChange("rfc", "R@100", 0.125, 0.375),
    )


def test_a_card_warns_when_its_command_does_not_reproduce_the_run(tmp_path: Path) -> None:
    lines = section(card_of(RUN, tmp_path), "How it was trained")
    assert lines[:3] == ["```sh", RUN.command, "```"]
    assert lines[3].startswith("|")
    changed = replace(RUN, settings={**RUN.settings, CHANGES: "steps 300 became 600 after step 75"})
    (warning,) = [line for line in section(card_of(changed, tmp_path), "How it was trained") if line not in lines]
    assert warning.startswith("This command does not give the same weights: ")
    assert "(steps 300 became 600 after step 75)" in warning
