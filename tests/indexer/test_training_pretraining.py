"""`pretrain` from documents alone to a folder with an encoder: each task, each encoder, stops, what does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine.encoders.backbone.backbone import Pooling
from engine.encoders.loading import load_encoder
from engine.encoders.mean import MeanEncoder
from engine.errors import TrainingError
from engine.training.run.history import History
from engine.training.run.trainer import TrainerSettings
from engine.training.tasks.samplers import Sampling
from engine.training.tasks.smith_pretraining import Objective
from indexer.training import (
    Kind,
    NewEncoder,
    PretrainingRecipe,
    SmithObjective,
    Start,
    Step,
    TensionObjective,
    Trained,
    TrainingRecipe,
    ViewsObjective,
    WordsObjective,
    pretrain,
    train,
)
from tests.fakes import make_corpus
from tests.indexer.training_corpus import write_corpus, write_documents
from tests.indexer.training_sizes import COLDE, SMITH, TDE

TRAINER = TrainerSettings(steps=3, validate_every=3, checkpoint_every=2, learning_rate=1e-3)
VIEWS = ViewsObjective(batch_size=4, view_tokens=60)
SIZES = {Kind.SMITH: SMITH, Kind.COLDE: COLDE, Kind.TDE: TDE}
Run = Callable[..., Trained]


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents in one file, without valid queries."""
    return write_documents(tmp_path_factory.mktemp("data") / "notes.jsonl", make_corpus(12))


@pytest.fixture
def run(tmp_path: Path, notes: Path, bert_folder: Path) -> Run:
    """`pretrain` in a few steps over the tiny backbone, on the CPU."""

    def run(objective: object = VIEWS, *, out: str = "out", new: Kind | None = None, **more: object) -> Trained:
        made = None if new is None else NewEncoder(new, sizes=SIZES[new], topic_epochs=2)
        start = replace(more.pop("start", Start()), encoder=str(bert_folder), new=made)
        recipe = PretrainingRecipe(start=start, objective=objective, trainer=more.pop("trainer", TRAINER))
        return pretrain(tmp_path / out, more.pop("corpora", [notes]), recipe, device="cpu", **more)

    return run


def moved(before: Path, after: Path) -> set[str]:
    """Names of the parameters that have changed."""
    one, other = (load_file(folder / "model.safetensors") for folder in (before, after))
    return {name for name in one if not torch.equal(one[name], other[name])}


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [one for one in Sampling if one is not Sampling.CT])
def test_each_sampler_trains_a_backbone(sampling: Sampling, run: Run, bert_folder: Path) -> None:
    trained = run(replace(VIEWS, sampling=sampling))
    assert trained.outcome.steps == trained.outcome.best_step == 3 and trained.outcome.n_tokens > 0
    assert moved(bert_folder, trained.folder)
    assert f"| sampling | {sampling} |" in (trained.folder / "README.md").read_text()


@pytest.mark.slow
def test_masked_words_add_a_loss_to_that_of_the_views(run: Run) -> None:
    trained = run(replace(VIEWS, mlm_weight=0.1, mlp_head=True, symmetric=True, group_tokens=100))
    assert set(trained.outcome.history.group("loss")) == {"", "contrastive", "mlm"}


def test_docsplit_as_published_pools_by_the_first_token_of_a_whole_view(run: Run) -> None:
    trained = run(replace(VIEWS, view_tokens=30), start=Start(pooling=Pooling.CLS, window_tokens=30))
    encoder = load_encoder(str(trained.folder), device="cpu")
    assert isinstance(encoder, MeanEncoder)
    assert (encoder.backbone.pooling, encoder.window_tokens) == (Pooling.CLS, 30)


@pytest.mark.slow
def test_a_queue_holds_the_views_of_earlier_steps(run: Run, tmp_path: Path) -> None:
    run(replace(VIEWS, sampling=Sampling.CONTRIEVER, queue=16, momentum=0.9))
    checkpoint = max((tmp_path / "out" / "run" / "checkpoints").iterdir())
    assert int(load_file(checkpoint / "module.safetensors")["n_written"]) == 12  # three batches of four


@pytest.mark.slow
def test_words_alone_train_a_backbone(run: Run, bert_folder: Path) -> None:
    trained = run(WordsObjective(batch_size=4, view_tokens=60))
    assert "embeddings.word_embeddings.weight" in moved(bert_folder, trained.folder)


@pytest.mark.slow
@pytest.mark.parametrize("losses", [None, frozenset({Objective.WORDS})])
def test_smith_guesses_words_and_blocks(losses: frozenset[Objective] | None, run: Run) -> None:
    trained = run(SmithObjective(losses, batch_size=4), new=Kind.SMITH)
    assert set(trained.outcome.history.group("loss")) == {"", *map(str, losses or Objective)}
    assert json.loads((trained.folder / "longmatch.json").read_text())["encoder"] == "smith"


@pytest.mark.slow
@pytest.mark.parametrize("new", SIZES)
def test_views_train_new_encoders_too(new: Kind, run: Run, tmp_path: Path) -> None:
    trained = run(new=new)
    encoder = load_encoder(str(trained.folder), device="cpu", dtype=torch.float32)
    again = pretrain(
        tmp_path / "again",
        [write_documents(tmp_path / "more.jsonl", make_corpus(6, seed=1))],
        PretrainingRecipe(start=Start(str(trained.folder)), objective=VIEWS, trainer=TRAINER),
        device="cpu",
    )
    assert encoder.fingerprint != load_encoder(str(again.folder), device="cpu", dtype=torch.float32).fingerprint


@pytest.mark.slow
def test_tension_trains_an_encoder_without_valid_queries(run: Run, bert_folder: Path) -> None:
    trained = run(TensionObjective(batch_size=6, view_tokens=60, negatives=2))
    assert moved(bert_folder, trained.folder)


@pytest.mark.slow
def test_tension_keeps_the_better_encoder_on_valid(run: Run, tmp_path: Path) -> None:
    logged: list[str] = []
    objective = TensionObjective(batch_size=6, view_tokens=60, negatives=2)
    trained = run(objective, corpora=[write_corpus(tmp_path / "papers")], log=logged.append)
    (line,) = [line for line in logged if line.endswith(" is kept")]
    first, second = (float(word) for word in line.split() if word[0] == "0")
    assert trained.validations[0].after == pytest.approx(max(first, second), abs=1e-4)
    assert f"the {'second' if second > first else 'first'} is kept" in line


@pytest.mark.slow
def test_valid_judgments_choose_the_parameters(run: Run, tmp_path: Path) -> None:
    trained = run(corpora=[write_corpus(tmp_path / "papers")])
    values = History.read(trained.folder / "history.csv").validation("nDCG@10")["papers"]
    assert trained.outcome.best_step == values.steps[values.values.argmax()]
    assert "| papers | 24 | 0 | " in (trained.folder / "README.md").read_text()  # no pair was learned from


@pytest.mark.slow
def test_a_stopped_run_ends_as_one_that_never_stopped(run: Run) -> None:
    def stop(step: Step) -> None:
        if step.number == 3:
            raise KeyboardInterrupt

    objective = replace(VIEWS, sampling=Sampling.CONTRIEVER, queue=8)
    whole = run(objective, out="whole")
    with pytest.raises(KeyboardInterrupt):
        run(objective, out="stopped", watch=stop)
    assert moved(whole.folder, run(objective, out="stopped").folder) == set()


@pytest.mark.slow
def test_topics_are_not_fitted_again_when_a_run_continues(run: Run) -> None:
    logged: list[str] = []
    run(new=Kind.TDE)
    trained = run(new=Kind.TDE, log=logged.append)
    assert trained.outcome.steps == 3 and not any(line.startswith("topics") for line in logged)


@pytest.mark.slow
def test_training_in_the_folder_of_a_pretraining_run_is_refused(run: Run, tmp_path: Path, bert_folder: Path) -> None:
    papers = write_corpus(tmp_path / "papers")
    run(corpora=[papers])
    with pytest.raises(TrainingError, match="began with longmatch pretrain, not train; objective views, not pairs; "):
        train(tmp_path / "out", [papers], TrainingRecipe(start=Start(str(bert_folder))), device="cpu")


@pytest.mark.parametrize(
    ("objective", "new", "message"),
    [
        (SmithObjective(), None, "the task smith does not train an encoder of type mean, but a SMITH; make one: --new"),
        (TensionObjective(), Kind.COLDE, "the task ct does not train an encoder of type colde, but a mean encoder; "),
        (WordsObjective(), Kind.SMITH, "an encoder of kind 'smith' has no backbone that guesses words"),
    ],
)
def test_a_task_of_another_encoder_is_refused(objective: object, new: Kind | None, message: str, run: Run) -> None:
    with pytest.raises(TrainingError, match=f"^{message}"):
        run(objective, new=new)


def test_one_document_is_too_few(run: Run, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"^1 documents in batches of 4 have no negatives; give at least two of"):
        run(corpora=[write_documents(tmp_path / "one.jsonl", make_corpus(1))])


def test_patience_needs_something_to_validate_by(run: Run) -> None:
    with pytest.raises(TrainingError, match=r"^a patience of 2 counts validations, and no corpus has valid queries"):
        run(trainer=replace(TRAINER, patience=2))


@pytest.mark.slow
def test_a_pooling_is_refused_for_an_encoder_that_has_its_own(run: Run, notes: Path, tmp_path: Path) -> None:
    start = Start(str(run(new=Kind.SMITH).folder), pooling=Pooling.CLS)
    with pytest.raises(TrainingError, match=r"^an encoder of type smith has its own pooling and window; begin with a"):
        pretrain(tmp_path / "second", [notes], PretrainingRecipe(start=start), device="cpu")


def test_recipes_of_options_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(TrainingError, match=r"^pretraining reads new texts at every step, so no first stage can be ke"):
        PretrainingRecipe(start=Start(frozen_first_stage=True))
    with pytest.raises(TrainingError, match=r"^Contrastive Tension trains nothing beside its encoders"):
        PretrainingRecipe(objective=TensionObjective(), trainer=TrainerSettings(head_learning_rate=1e-3))
    with pytest.raises(TrainingError, match=r"^a queue of 8 goes with none of symmetric, mlm weight, mlp head and gro"):
        ViewsObjective(queue=8, mlm_weight=0.1)
