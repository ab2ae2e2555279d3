"""A run continues with its recipe, and no other."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from huggingface_hub import metadata_load

from engine.encoders.files import CARD_FILE
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.machine import Machine, Origin
from engine.training.corpus import TrainingCorpus
from engine.training.fine_tuning import Loss
from engine.training.history import History, Number, validation_values
from engine.training.trainer import CHECKPOINT_FOLDER, Outcome, TrainerSettings
from indexer.training import recipe
from indexer.training.recipe import (
    RECIPE_FILE,
    Negatives,
    PairsObjective,
    Recipe,
    Record,
    SectionsObjective,
    ValidationChange,
    check_record,
    compare_validations,
    reached_step,
    settings_of,
    shown,
    write_card,
    write_record,
)
from indexer.training.start import Start, StartingEncoder
from tests.fakes import make_document

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


def test_a_run_without_a_checkpoint_starts_over(tmp_path: Path) -> None:
    write_record(tmp_path, BEGUN)
    check_record(tmp_path, changed(queries=24))


def test_the_same_recipe_continues_the_run_also_with_settings_that_do_not_affect_the_parameters(folder: Path) -> None:
    check_record(folder, BEGUN)
    check_record(folder, changed(group_tokens=512, checkpoint_gradients=True, licence="mit", half=True))


@pytest.mark.parametrize(
    ("requested", "difference"),
    [
        (replace(BEGUN, corpora={"papers": "aaaa"}), "corpora papers, rfc, not papers"),
        (replace(BEGUN, corpora={"rfc": "bbbb", "papers": "aaaa"}), "corpora papers, rfc, not rfc, papers"),
        (replace(BEGUN, corpora={"papers": "cccc", "rfc": "bbbb"}), "checksum of papers aaaa, not cccc"),
        (changed(queries=24), "queries 20, not 24"),
        (changed(learning_rate=1e-5, steps=600), "steps 300, not 600; learning rate 3e-05, not 1e-05"),
        (changed(frozen_layers=2, seed=1), "frozen layers 0, not 2; seed 0, not 1"),
        (replace(BEGUN, settings=settings_of(Recipe(objective=SectionsObjective()))), "objective pairs, not s"),
    ],
)
def test_another_recipe_is_refused(folder: Path, requested: Record, difference: str) -> None:
    with pytest.raises(TrainingError) as raised:
        check_record(folder, requested)
    assert str(raised.value).startswith(f"the run in {folder} began with {difference}")
    assert str(raised.value).endswith("; give again what it began with, or name another folder for a new run")


def test_a_damaged_record_raises_an_error(folder: Path) -> None:
    (folder / RECIPE_FILE).write_text("{")
    with pytest.raises(TrainingError) as raised:
        check_record(folder, BEGUN)
    assert str(raised.value).startswith(f"{folder / RECIPE_FILE} is damaged (JSONDecodeError(")
    assert str(raised.value).endswith("; delete it, and the run goes on with what it is given now")


def test_settings_are_flat_and_without_folders_and_names_on_the_hub_stay(tmp_path: Path) -> None:
    encoder = tmp_path / "bert"
    encoder.mkdir()
    objective = PairsObjective(losses={Loss.MAXSIM: 0.5, Loss.BCE: 1.0}, queries=4, miner=Negatives.NONE)
    recipe = Recipe(start=Start(str(encoder)), objective=objective, trainer=TrainerSettings(steps=7))
    recorded = settings_of(recipe)
    assert (recorded["objective"], recorded["queries"], recorded["miner"], recorded["steps"]) == ("pairs", 4, "none", 7)
    assert recorded["losses"] == "maxsim=0.5,bce=1"
    assert (recorded["encoder"], recorded["new"], recorded["seed"]) == ("bert", None, 0)
    assert (shown("allenai/specter"), shown("")) == ("allenai/specter", "")


RECIPE = Recipe(start=Start("all-MiniLM-L6-v2"), trainer=TrainerSettings(seed=7), licence="apache-2.0")
STARTING = StartingEncoder(cast(TrainableEncoder, SimpleNamespace(kind="smith", chunk_tokens=126)), "")
OUTCOME = Outcome(Path("best"), best_step=1500, steps=3000, n_tokens=98765432, seconds=7384.4, history=History())
LONG = make_document("long", [("", "word " * 131071)])
CORPORA = (
    TrainingCorpus("proposals", {"long": LONG}, {"long": dict.fromkeys("abc", 1)}, checksum="d41d8", licence="CC0 | 1"),
    TrainingCorpus("rfc", {"short": make_document("short", "a fox")}, checksum="01234"),
)
VALIDATIONS = (
    ValidationChange("proposals", 0.51234, 0.56),
    ValidationChange("rfc", 0.44, 0.4301),
    ValidationChange("mean", 0.47617, 0.49505),
)
COMMAND = "longmatch train smith out proposals --set seed=7"


def card_of(folder: Path, **changed: Any) -> str:  # noqa: ANN401
    run = {"recipe": RECIPE, "trained": STARTING, "outcome": OUTCOME, "validations": VALIDATIONS, "command": COMMAND}
    write_card(folder, corpora=CORPORA, **{**run, **changed})
    return (folder / CARD_FILE).read_text("utf-8")


def section(card: str, heading: str) -> list[str]:
    """The lines of a section that are not empty."""
    body = card.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line for line in body.splitlines() if line]


def test_the_front_matter_is_what_the_hub_reads(tmp_path: Path) -> None:
    (tmp_path / CARD_FILE).write_text("old")
    card_of(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [CARD_FILE]
    assert metadata_load(tmp_path / CARD_FILE) == {
        "library_name": "longmatch",
        "license": "apache-2.0",
        "language": "en",
        "base_model": "sentence-transformers/all-MiniLM-L6-v2",
        "tags": ["feature-extraction", "long-documents", "smith"],
    }


def test_a_licence_or_base_that_is_not_named_is_left_out_of_the_front_matter(tmp_path: Path) -> None:
    card = card_of(tmp_path, trained=replace(STARTING, inherited=None), recipe=replace(RECIPE, licence=""))
    assert sorted(metadata_load(tmp_path / CARD_FILE) or {}) == ["language", "library_name", "tags"]
    assert "Training began with random weights." in card
    assert "No licence was chosen for the weights." in card


@pytest.mark.parametrize("odd", ['a: "b" # c', "- x\\y", "été 文 😀", "{[&*!|>%@`"])
def test_odd_names_do_not_break_the_front_matter(tmp_path: Path, odd: str) -> None:
    card_of(tmp_path, recipe=replace(RECIPE, licence=odd))
    assert (metadata_load(tmp_path / CARD_FILE) or {})["license"] == odd


@pytest.mark.parametrize(("best_step", "end"), [(1500, "1,500 of 3,000."), (0, "0 of 3,000, before any training.")])
def test_the_opening_describes_the_encoder_and_gives_the_saved_step(tmp_path: Path, best_step: int, end: str) -> None:
    opening = card_of(tmp_path, outcome=replace(OUTCOME, best_step=best_step)).partition(f"# {tmp_path.name}\n\n")[2]
    assert opening.splitlines()[0] == (
        "An encoder of type `smith` for longmatch: it turns a document into vectors of its chunks, its sections and "
        "its whole, and queries and targets go through the same weights. Training began with the weights of "
        f"all-MiniLM-L6-v2. The saved weights are those of step {end}"
    )


def test_validation_is_shown_before_and_after_with_the_sign_of_the_difference(tmp_path: Path) -> None:
    assert section(card_of(tmp_path), "Validation") == [
        "| corpus | nDCG@10 before | after | difference |",
        "| --- | --- | --- | --- |",
        "| proposals | 0.5123 | 0.5600 | +0.0477 |",
        "| rfc | 0.4400 | 0.4301 | -0.0099 |",
        "| mean | 0.4762 | 0.4950 | +0.0189 |",
        'The saved step was chosen on these queries, so a test on others may come out lower. "mean" gives each corpus '
        "the same weight.",
    ]
    assert section(card_of(tmp_path, validations=()), "Validation") == ["Nothing was validated."]


def test_the_history_is_linked_where_the_file_exists(tmp_path: Path) -> None:
    assert "history.csv" not in card_of(tmp_path)
    (tmp_path / "history.csv").touch()
    assert section(card_of(tmp_path), "Validation")[-1] == "All numbers of the run: [history.csv](history.csv)."


def test_training_data_and_limits_are_listed_with_counts_and_licences(tmp_path: Path) -> None:
    assert section(card_of(tmp_path), "Training data")[2:] == [
        r"| proposals | 1 | 3 | d41d8 | CC0 \| 1 |",
        "| rfc | 1 | 0 | 01234 | not stated |",
    ]
    limits = " ".join(section(card_of(tmp_path), "Intended use and limits"))
    assert "validated on English text" in limits
    assert "chunks of at most 126 tokens. The longest document of its corpora had 131,071 words" in limits
    assert "The weights are under the licence apache-2.0." in limits


def test_the_objective_has_a_table_of_settings(tmp_path: Path) -> None:
    objective = section(card_of(tmp_path), "Objective")
    assert objective[0] == "Ranks the targets of each query above the other documents of a batch."
    rows = {"| losses | maxsim=1,document=0.3 |", "| learning rate | 3e-05 |", "| half | no |", "| dropout | 0 |"}
    assert rows - {*objective} == {"| dropout | 0 |"}  # a setting without a value has no row
    start = replace(RECIPE.start, dropout=0.0)
    assert "| dropout | 0.0 |" in section(card_of(tmp_path, recipe=replace(RECIPE, start=start)), "Objective")
    assert not [line for line in objective if line.startswith(("| seed", "| licence", "| changed"))]


@pytest.mark.parametrize(("seconds", "wall_time"), [(7384.4, "2 h 3 min"), (59.6, "1 min 0 s")])
@pytest.mark.parametrize(("commit", "shown_commit"), [("0c1b", "0c1b"), ("", "none: not run from a git checkout")])
def test_the_card_holds_everything_needed_to_rerun_the_training(
    seconds: float, wall_time: str, commit: str, shown_commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine("AMD EPYC 9B14", 2, 8, "NVIDIA H200")
    monkeypatch.setattr(recipe, "describe_origin", lambda *_: Origin(COMMAND, commit, False, 7, machine, {}))
    assert section(card_of(tmp_path, outcome=replace(OUTCOME, seconds=seconds)), "How it was trained") == [
        "```sh",
        COMMAND,
        "```",
        "|  |  |",
        "| --- | --- |",
        "| seed | 7 |",
        "| steps | 3,000 |",
        "| best step | 1,500 |",
        "| tokens read | 98,765,432 |",
        f"| wall time | {wall_time} |",
        "| machine | AMD EPYC 9B14, 2 cores, 8 GiB, NVIDIA H200 |",
        f"| commit | {shown_commit} |",
    ]


def test_validations_are_compared_before_training_and_at_the_best_step() -> None:
    rows = [
        Number(step, name, number)
        for step, value in ((0, 0.25), (50, 0.75), (100, 0.5))
        for name, number in validation_values({"rfc": value, "proposals": 0.25}).items()
    ]
    history = History([*rows, Number(100, "valid nDCG@10/late", 1.0)])
    assert compare_validations(history, 50) == (
        ValidationChange("rfc", 0.25, 0.75),
        ValidationChange("proposals", 0.25, 0.25),
        ValidationChange("mean", 0.25, 0.5),
    )
