"""`train` from a folder of documents to a folder with an encoder: objectives, encoders, stops, cards."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file

from engine.encoders.loading import load_encoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.training.run.history import History
from engine.training.run.trainer import TrainerSettings
from engine.training.tasks.fine_tuning import FineTuningSettings, Loss
from engine.training.tasks.section_contrast import ContrastSettings
from engine.training.tasks.text_pairs import TextPairsSettings
from indexer.training import (
    Kind,
    Negatives,
    NewEncoder,
    PairsObjective,
    SectionsObjective,
    Start,
    Step,
    TextPairsObjective,
    Trained,
    TrainingRecipe,
    library,
    train,
)
from tests.fakes import make_document
from tests.indexer.training_corpus import write_corpus
from tests.indexer.training_sizes import COLDE, SMITH, TDE

TRAINER = TrainerSettings(steps=4, validate_every=2, checkpoint_every=2, learning_rate=1e-3)
PAIRS = PairsObjective(
    FineTuningSettings(queries=6, negatives=1, crowd=2), Negatives.NONE, query_chunks=3, target_chunks=2
)
SIZES = {Kind.SMITH: SMITH, Kind.COLDE: COLDE, Kind.TDE: TDE}
TAKEN = {Kind.SMITH: " (the word embeddings alone)", Kind.COLDE: ", under new layers", Kind.TDE: ", beside new topics"}
Run = Callable[..., Trained]


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("data") / "papers")


@pytest.fixture(scope="module")
def unsplit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus without valid queries, so that the last parameters are saved."""
    return write_corpus(tmp_path_factory.mktemp("data") / "unsplit", is_split=False)


@pytest.fixture
def run(tmp_path: Path, papers: Path, bert_folder: Path) -> Run:
    """`train` in a few steps over the tiny backbone, on the CPU."""

    def run(*, out: str = "out", new: Kind | None = None, start: Start | None = None, **more: object) -> Trained:
        new_encoder = None if new is None else NewEncoder(new, sizes=SIZES[new], topic_epochs=2)
        recipe = TrainingRecipe(
            start=replace(start or Start(), encoder=str(bert_folder), new=new_encoder),
            objective=more.pop("objective", PAIRS),
            trainer=more.pop("trainer", TRAINER),
            label=more.pop("label", None),
        )
        return train(tmp_path / out, more.pop("corpora", [papers]), recipe, device="cpu", **more)

    return run


def vectors(folder: Path) -> np.ndarray:
    encoder = load_encoder(str(folder), device="cpu", dtype=torch.float32)
    return encoder.encode([make_document("d", "The old fox runs over the river bank. A dog sleeps.")])[0].document


@pytest.mark.slow
def test_train_leaves_an_encoder_with_card_curves_and_history(run: Run) -> None:
    trained = run()
    out = trained.folder
    assert {path.name for path in out.iterdir()} >= {"README.md", "curves.png", "history.csv", "longmatch.json", "run"}
    (found,) = trained.validations
    measured = History.read(out / "history.csv").validation("nDCG@10")["papers"].values
    assert found.corpus == "papers" and found.before == measured[0] and found.after == measured.max()


@pytest.mark.slow
def test_the_card_has_the_command_data_and_settings_without_folders(run: Run, tmp_path: Path) -> None:
    trained = run(command="longmatch train out papers")
    card = (trained.folder / "README.md").read_text()
    assert "```sh\nlongmatch train out papers\n```" in card
    assert "Training began with the weights of bert." in card
    assert "| papers | 24 | 28 | " in card and "| CC0 |" in card
    assert "Ranks the targets of each query above the other documents of a batch." in card
    assert "| queries | 6 |" in card and "| losses | maxsim=1, document=0.3 |" in card
    assert str(tmp_path) not in card


@pytest.mark.slow
@pytest.mark.parametrize("new", SIZES)
def test_new_encoders_learn_from_pairs(new: Kind, run: Run) -> None:
    trained = run(new=new)
    encoder = load_encoder(str(trained.folder), device="cpu", dtype=torch.float32)
    assert isinstance(encoder, TrainableEncoder) and encoder.kind == new
    assert f"began with the weights of bert{TAKEN[new]}." in (trained.folder / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("new", SIZES)
def test_a_saved_encoder_can_be_trained_further(new: Kind, run: Run, tmp_path: Path, unsplit: Path) -> None:
    first = run(new=new, trainer=replace(TRAINER, steps=1), corpora=[unsplit]).folder
    recipe = TrainingRecipe(start=Start(str(first)), objective=replace(PAIRS, miner=Negatives.MODEL), trainer=TRAINER)
    second = train(tmp_path / "second", [unsplit], recipe, device="cpu")
    assert json.loads((second.folder / "longmatch.json").read_text())["encoder"] == new
    assert (tmp_path / "second" / "indexes" / "unsplit-out.lm").is_dir()
    assert not np.allclose(vectors(first), vectors(second.folder), atol=1e-5)


@pytest.mark.slow
def test_sections_learn_from_a_graph_of_pairs(run: Run) -> None:
    trained = run(new=Kind.COLDE, objective=SectionsObjective(ContrastSettings(n_classes=4)))
    assert "| n classes | 4 |" in (trained.folder / "README.md").read_text()


@pytest.mark.slow
def test_sections_learn_from_a_label(run: Run, tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "labelled", has_pairs=False)
    objective = SectionsObjective(ContrastSettings(n_classes=3))
    trained = run(new=Kind.COLDE, objective=objective, label="tags", corpora=[folder])
    assert trained.outcome.n_tokens > 0


@pytest.mark.slow
def test_text_pairs_teach_a_tde_with_its_topics(run: Run) -> None:
    logged: list[str] = []
    objective = TextPairsObjective(TextPairsSettings(max_sentences=3), Negatives.NONE)
    trained = run(new=Kind.TDE, objective=objective, log=logged.append)
    assert "topics: 2 epochs over 176 documents and sentences" in logged
    assert set(trained.outcome.history.group("loss")) == {"", "topics", "contrastive", "classification"}


@pytest.mark.slow
@pytest.mark.parametrize("miner", [Negatives.MODEL, Negatives.BM25])
def test_hard_negatives_come_from_a_miner(miner: Negatives, run: Run, tmp_path: Path) -> None:
    run(objective=replace(PAIRS, miner=miner), trainer=replace(TRAINER, steps=1), indexes=tmp_path / "lm")
    assert (tmp_path / "lm" / "papers-bert.lm").is_dir() == (miner is Negatives.MODEL)


@pytest.mark.slow
def test_a_run_waits_for_another_process_that_writes_its_index(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_SECONDS_BETWEEN_TRIES", 0.01)
    given = {
        "objective": replace(PAIRS, miner=Negatives.MODEL),
        "trainer": replace(TRAINER, steps=1),
        "indexes": tmp_path / "lm",
    }
    run(out="first", **given)
    lock = FileLock(tmp_path / "lm" / "papers-bert.lm" / "writer.lock")
    logged: list[str] = []

    def log(line: str) -> None:
        logged.append(line)
        if "waits" in line:
            lock.release()

    lock.acquire(timeout=0)
    run(out="second", log=log, **given)
    assert logged.count("papers: waits, since another process is writing papers-bert.lm") == 1


@pytest.mark.slow
def test_an_encoder_learns_from_a_teacher(run: Run, other_bert_folder: Path, tmp_path: Path) -> None:
    settings = replace(PAIRS.settings, losses={Loss.DISTILLATION: 1.0})
    trained = run(objective=replace(PAIRS, settings=settings, teacher=str(other_bert_folder)))
    assert "distillation" in trained.outcome.history.group("loss")
    assert (tmp_path / "out" / "indexes" / "papers-other.lm").is_dir()


@pytest.mark.slow
def test_a_stopped_run_ends_as_one_that_never_stopped(run: Run) -> None:
    def stop(step: Step) -> None:
        if step.number == 3:
            raise KeyboardInterrupt

    whole = run(out="whole")
    with pytest.raises(KeyboardInterrupt):
        run(out="stopped", watch=stop)
    logged: list[str] = []
    stopped = run(out="stopped", log=logged.append)
    assert "continues after step 2 of 4" in logged and not any(line.startswith("step") for line in logged)
    assert stopped.validations == whole.validations
    one, other = (load_file(trained.folder / "model.safetensors") for trained in (whole, stopped))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_two_runs_that_mine_by_their_own_indexes_end_with_equal_parameters(run: Run, unsplit: Path) -> None:
    mined = replace(PAIRS, miner=Negatives.MODEL)
    other_seed = replace(TRAINER, seed=1)
    runs = [
        run(out=out, objective=mined, corpora=[unsplit], trainer=trainer)
        for out, trainer in (("one", TRAINER), ("again", TRAINER), ("other", other_seed))
    ]
    one, again, other = (load_file(trained.folder / "model.safetensors") for trained in runs)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_a_changed_recipe_is_refused_or_recorded_on_the_card(run: Run) -> None:
    run()
    with pytest.raises(TrainingError, match="began with query chunks 3, not 2; give again what it began with"):
        run(objective=replace(PAIRS, query_chunks=2))
    longer = run(trainer=replace(TRAINER, steps=6))
    assert longer.outcome.steps == 6
    card = (longer.folder / "README.md").read_text()
    assert "| changed on the way | steps 4 became 6 after step 4 |" in card
    assert "This command does not give the same weights: " in card


def test_frozen_layers_stay_as_they_are(run: Run, bert_folder: Path, unsplit: Path) -> None:
    trained = run(start=Start(frozen_layers=1), corpora=[unsplit])
    before, after = (load_file(folder / "model.safetensors") for folder in (bert_folder, trained.folder))
    moved = {
        name.split(".")[2] for name in before if name.startswith("encoder.") and not before[name].equal(after[name])
    }
    assert moved == {"1"}


def test_a_frozen_first_stage_keeps_the_backbone(run: Run, bert_folder: Path, unsplit: Path) -> None:
    trained = run(new=Kind.COLDE, start=Start(frozen_first_stage=True), corpora=[unsplit])
    before, after = (load_file(folder / "model.safetensors") for folder in (bert_folder, trained.folder))
    assert all(before[name].equal(after[name]) for name in before if name.startswith("encoder."))


@pytest.mark.slow
def test_checkpointed_gradients_are_the_same(run: Run, unsplit: Path) -> None:
    few = replace(TRAINER, steps=2)
    one = run(out="one", trainer=few, corpora=[unsplit])
    other = run(out="other", trainer=few, corpora=[unsplit], start=Start(checkpoint_gradients=True))
    np.testing.assert_allclose(vectors(one.folder), vectors(other.folder), atol=1e-5)


@pytest.mark.slow
def test_several_corpora_are_validated_by_their_mean(run: Run, papers: Path, tmp_path: Path) -> None:
    steps: list[Step] = []
    trained = run(corpora=[papers, write_corpus(tmp_path / "more", seed=1)], watch=steps.append)
    assert [one.corpus for one in trained.validations] == ["papers", "more", "mean"]
    means = trained.outcome.history.validation("nDCG@10")["mean"].values
    assert [step.valid for step in steps] == [means[0], means[0], means[1], means[1]]


def test_without_valid_queries_the_last_parameters_are_kept(run: Run, unsplit: Path, bert_folder: Path) -> None:
    trained = run(corpora=[unsplit])
    assert trained.outcome.best_step == 4 and trained.validations == ()
    assert not np.allclose(vectors(trained.folder), vectors(bert_folder), atol=1e-4)
    assert "Nothing was validated." in (trained.folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (
            SectionsObjective(),
            "the objective sections trains a CoLDE, the encoder is of type mean; make one: --new colde",
        ),
        (
            TextPairsObjective(),
            "the objective text-pairs trains a TDE, the encoder is of type mean; make one: --new tde",
        ),
    ],
)
def test_an_objective_of_another_encoder_is_refused(objective: object, message: str, run: Run) -> None:
    with pytest.raises(TrainingError, match=f"^{message}, or train what there is: --objective pairs$"):
        run(objective=objective)


@pytest.mark.parametrize(
    ("new", "start", "message"),
    [
        (Kind.SMITH, Start(frozen_layers=1), "smith has no layers that can be frozen one by one"),
        (Kind.SMITH, Start(checkpoint_gradients=True), "smith cannot checkpoint gradients; train it with fewer group"),
        (None, Start(frozen_first_stage=True), "mean has no parameters after its first stage"),
    ],
)
def test_options_that_an_encoder_does_not_support_are_refused(
    new: Kind | None, start: Start, message: str, run: Run
) -> None:
    with pytest.raises(TrainingError, match=message):
        run(new=new, start=start)
