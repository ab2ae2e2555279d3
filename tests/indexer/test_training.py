"""`train`: every objective trains, every encoder is trained by what fits it, and runs resume, record and refuse."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from engine.encoders.encoder import Pooling
from engine.encoders.loading import load_trainable
from engine.encoders.trainable import MeanEncoder, TrainableEncoder
from engine.errors import TrainingError
from engine.training.masked_words import Objective as SmithLoss
from engine.training.trainer import Step
from indexer.training.recipe import OBJECTIVES, PairsObjective, TensionObjective, recipe_of
from indexer.training.run import Trained, train
from indexer.training.start import NewEncoder, NewKind, Start
from tests.fakes import make_corpus, make_document
from tests.indexer.training_corpus import COLDE, SMITH, TDE, write_corpus, write_documents

FEW = {"steps": "4", "validate_every": "2", "checkpoint_every": "2", "learning_rate": "1e-3"}
PAIRS = {"queries": "6", "negatives": "1", "miner": "none", "query_chunks": "3", "target_chunks": "2"}
PAIRS |= {"threshold_rank": "2"}
VIEWS = {"batch_size": "4", "view_tokens": "80"}
OF_OBJECTIVE: Mapping[str, Mapping[str, str]] = {
    "pairs": PAIRS,
    "sections": {"n_classes": "4"},
    "text-pairs": {"miner": "none", "max_sentences": "3"},
    "smith": {"batch_size": "4"},
    "ct": {"batch_size": "6", "view_tokens": "60", "negatives": "2"},
}
LONG = {"max_tokens": "64", "window": "8", "block_tokens": "4", "random_blocks": "1"}
SIZES = {NewKind.SMITH: SMITH, NewKind.COLDE: COLDE, NewKind.TDE: TDE, NewKind.LONGFORMER: LONG, NewKind.BIGBIRD: LONG}
MADE_FOR = {"sections": NewKind.COLDE, "text-pairs": NewKind.TDE, "smith": NewKind.SMITH}
TAKEN = {
    NewKind.SMITH: " (the word embeddings alone)",
    NewKind.COLDE: ", under new layers",
    NewKind.TDE: ", beside new topics",
    NewKind.LONGFORMER: " (with the attention of longformer, positions repeated)",
    NewKind.BIGBIRD: " (with the attention of bigbird, positions repeated)",
}
Run = Callable[..., Trained]


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("data") / "papers")


@pytest.fixture(scope="module")
def unsplit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus without valid queries, so that the last parameters are saved."""
    return write_corpus(tmp_path_factory.mktemp("data") / "unsplit", is_split=False)


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents in one file, without valid queries."""
    return write_documents(tmp_path_factory.mktemp("data") / "notes.jsonl", make_corpus(12))


@pytest.fixture
def run(tmp_path: Path, unsplit: Path, bert_folder: Path) -> Run:
    """`train` in a few steps over the tiny backbone, on the CPU."""

    def run(
        objective: str = "pairs", *, out: str = "out", new: NewKind | None = None, encoder: str = "", **more: object
    ) -> Trained:
        kind = MADE_FOR.get(objective) if new is None and not encoder else new
        sizes = {f"size.{name}": value for name, value in SIZES[kind].items()} if kind else {}
        given = {**FEW, **OF_OBJECTIVE.get(objective, VIEWS), **sizes}
        if kind is NewKind.TDE:
            given["topic_epochs"] = "2"
        given |= {name: str(value) for name, value in more.pop("given", {}).items()}
        recipe = recipe_of(objective, given, encoder=encoder or str(bert_folder), new=kind)
        return train(tmp_path / out, more.pop("corpora", [unsplit]), recipe, device="cpu", **more)

    return run


def card(trained: Trained) -> str:
    return (trained.folder / "README.md").read_text()


def moved(before: Path, after: Path) -> set[str]:
    """Names of the parameters that have changed."""
    one, other = (
        {name: weight for file in sorted(folder.glob("*.safetensors")) for name, weight in load_file(file).items()}
        for folder in (before, after)
    )
    assert one
    return {name for name in one if not torch.equal(one[name], other[name])}


def vectors(folder: Path) -> np.ndarray:
    encoder = load_trainable(str(folder), device="cpu", dtype=torch.float32)
    return encoder.encode([make_document("d", "The old fox runs over the river bank. A dog sleeps.")])[0].document


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_trains(objective: str, run: Run, notes: Path, unsplit: Path) -> None:
    needs_pairs = OBJECTIVES[objective].needs_pairs
    trained = run(objective, corpora=[unsplit if needs_pairs else notes])
    assert trained.outcome.steps == trained.outcome.best_step == 4 and trained.outcome.n_tokens > 0
    assert trained.validations == () and "Nothing was validated." in card(trained)
    encoder = load_trainable(str(trained.folder), device="cpu", dtype=torch.float32)
    assert isinstance(encoder, TrainableEncoder) and encoder.kind == MADE_FOR.get(objective, "mean")
    first = moved(trained.folder, trained.folder / "run" / "best")
    assert first == set()
    losses = {
        "text-pairs": {"topics", "contrastive", "classification"},
        "pairs": {"maxsim", "document"},
        "smith": set(map(str, SmithLoss)),
        "docsplit-paper": {"contrastive", "mlm"},
    }
    usual = set() if objective in ("sections", "ct", "contriever") else {"contrastive"}
    recorded = {name.removeprefix("loss/") for _, name, _ in trained.outcome.history.rows if name.startswith("loss")}
    assert recorded == {"loss", *losses.get(objective, usual)}


@pytest.mark.slow
@pytest.mark.parametrize("new", SIZES)
@pytest.mark.parametrize("objective", ["pairs", "docsplit"])
def test_every_new_encoder_learns_and_can_be_trained_again(
    new: NewKind, objective: str, run: Run, unsplit: Path
) -> None:
    first = run(objective, new=new, given={"steps": 2})
    assert f"began with the weights of bert{TAKEN[new]}." in card(first)
    assert ("| mixed precision | no |" in card(first)) == (new is NewKind.BIGBIRD)  # on any processor
    second = run(objective, out="second", encoder=str(first.folder), given={"steps": 2})
    assert load_trainable(str(second.folder), device="cpu").kind == load_trainable(str(first.folder), device="cpu").kind
    assert not np.allclose(vectors(first.folder), vectors(second.folder), atol=1e-5)


@pytest.mark.slow
def test_train_leaves_an_encoder_with_card_and_history(run: Run, papers: Path, tmp_path: Path) -> None:
    trained = run(corpora=[papers], command="longmatch train out papers")
    out = trained.folder
    assert {path.name for path in out.iterdir()} >= {"README.md", "history.csv", "longmatch.json", "run"}
    (change,) = trained.validations
    values = trained.outcome.history.validation["papers"]
    assert change.corpus == "papers" and change.before == values[0] and change.after == max(values.values())
    assert trained.outcome.best_step == max(values, key=values.__getitem__)
    text = card(trained)
    assert "```sh\nlongmatch train out papers\n```" in text and "began with the weights of bert." in text
    assert "| papers | 24 | 28 | " in text and "| CC0 |" in text
    assert "Ranks the targets of each query above the other documents of a batch." in text
    assert "| queries | 6 |" in text and "| losses | maxsim=1,document=0.3 |" in text
    assert str(tmp_path) not in text


@pytest.mark.slow
def test_objectives_alone_are_validated_where_a_corpus_has_valid_queries(run: Run, papers: Path) -> None:
    trained = run("docsplit", corpora=[papers])
    assert [one.corpus for one in trained.validations] == ["papers"]
    assert "| papers | 24 | 0 | " in card(trained)  # no pair was learned from


@pytest.mark.slow
def test_several_corpora_are_validated_by_their_mean(run: Run, papers: Path, tmp_path: Path) -> None:
    steps: list[Step] = []
    trained = run(corpora=[papers, write_corpus(tmp_path / "more", seed=1)], watch=steps.append)
    assert [one.corpus for one in trained.validations] == ["papers", "more", "mean"]
    means = list(trained.outcome.history.validation["mean"].values())
    assert [step.valid for step in steps] == [means[0], means[0], means[1], means[1]]


@pytest.mark.slow
def test_sections_learn_from_a_label(run: Run, tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "labelled", has_pairs=False)
    assert run("sections", given={"label": "tags"}, corpora=[folder]).outcome.n_tokens > 0


@pytest.mark.slow
@pytest.mark.parametrize("miner", ["model", "bm25"])
def test_hard_negatives_come_from_a_miner(miner: str, run: Run, tmp_path: Path) -> None:
    run(given={"miner": miner, "steps": 1}, indexes=tmp_path / "lm")
    assert (tmp_path / "lm" / "unsplit-bert.lm").is_dir() == (miner == "model")


@pytest.mark.slow
def test_a_queue_holds_the_views_of_earlier_steps(run: Run, notes: Path, tmp_path: Path) -> None:
    run("contriever", given={"queue": 20, "momentum": 0.9}, corpora=[notes])
    state = load_file(tmp_path / "out" / "run" / "checkpoints" / "checkpoint-4" / "model.safetensors")
    assert int(state["task.n_written"]) == 16  # four batches of four


@pytest.mark.slow
def test_docsplit_as_published_pools_by_the_first_token_of_a_whole_view(run: Run, notes: Path) -> None:
    folder = run("docsplit-paper", given={"view_tokens": 30}, corpora=[notes]).folder
    encoder = load_trainable(str(folder), device="cpu")
    assert isinstance(encoder, MeanEncoder)
    assert (encoder.backbone.pooling, encoder.chunk_tokens) == (Pooling.CLS, 30)


@pytest.mark.slow
def test_tension_keeps_the_better_encoder_on_valid(run: Run, papers: Path) -> None:
    logged: list[str] = []
    trained = run("ct", corpora=[papers], log=logged.append)
    (line,) = [line for line in logged if line.endswith(" is kept")]
    first, second = (float(word) for word in line.split() if word[0] == "0")
    assert trained.validations[0].after == pytest.approx(max(first, second), abs=1e-4)
    assert f"the {'second' if second > first else 'first'} is kept" in line


@pytest.mark.slow
def test_runs_that_mine_by_their_own_indexes_end_with_equal_parameters(run: Run) -> None:
    one, again, other = (
        run(out=out, given={"miner": "model", "seed": seed}) for out, seed in (("one", 0), ("again", 0), ("other", 1))
    )
    assert moved(one.folder, again.folder) == set() and moved(one.folder, other.folder)


@pytest.mark.slow
def test_a_changed_recipe_is_refused(run: Run) -> None:
    run()
    with pytest.raises(TrainingError, match="began with query chunks 3, not 2; give again what it began with"):
        run(given={"query_chunks": 2})
    with pytest.raises(TrainingError, match="began with objective pairs, not views; "):
        run("docsplit")
    with pytest.raises(TrainingError, match="began with steps 4, not 6; "):
        run(given={"steps": 6})


@pytest.mark.slow
def test_topics_are_not_fitted_again_when_a_run_continues(run: Run) -> None:
    logged: list[str] = []
    run("text-pairs", log=logged.append)
    assert "topics: 2 epochs over 192 documents and sentences" in logged
    logged.clear()
    run("text-pairs", log=logged.append)
    assert not any(line.startswith("topics") for line in logged)


def test_frozen_layers_stay_as_they_are(run: Run, bert_folder: Path) -> None:
    changed = moved(bert_folder, run(given={"frozen_layers": 1}).folder)
    assert {name.split(".")[2] for name in changed if name.startswith("encoder.")} == {"1"}


@pytest.mark.slow
def test_parameters_can_be_saved_in_half_precision(run: Run) -> None:
    trained = run(given={"half": True, "steps": 1})
    assert {weight.dtype for weight in load_file(trained.folder / "model.safetensors").values()} == {torch.float16}


@pytest.mark.parametrize(
    ("objective", "new", "given", "message"),
    [
        ("sections", NewKind.SMITH, {}, "the objective sections does not train an encoder of type smith, but a CoLDE"),
        ("text-pairs", NewKind.COLDE, {}, "the objective text-pairs does not train an encoder of type colde, but a"),
        ("smith", NewKind.COLDE, {}, "the objective smith does not train an encoder of type colde, but a SMITH"),
        ("ct", NewKind.COLDE, {}, "the objective ct does not train an encoder of type colde, but a mean encoder"),
        ("pairs", NewKind.SMITH, {"frozen_layers": 1}, "an encoder of type smith has no layers that can be frozen one"),
        ("pairs", NewKind.SMITH, {"checkpoint_gradients": True}, "an encoder of type smith cannot checkpoint"),
        ("pairs", None, {"patience": 2}, "a patience of 2 counts validations, and no corpus has valid queries"),
    ],
)
def test_what_does_not_fit_is_refused(
    objective: str, new: NewKind | None, given: dict[str, object], message: str, run: Run
) -> None:
    with pytest.raises(TrainingError, match=f"^{message}"):
        run(objective, new=new, given=given)


@pytest.mark.slow
def test_a_pooling_is_refused_for_an_encoder_that_has_its_own(run: Run) -> None:
    smith = run(new=NewKind.SMITH, given={"steps": 1})
    with pytest.raises(TrainingError, match=r"^an encoder of type smith has its own pooling and window; begin with a"):
        run(out="second", encoder=str(smith.folder), given={"pooling": "cls"})


def test_the_recipe_of_python_and_that_of_the_command_line_are_equal() -> None:
    recipe = recipe_of(
        "pairs", {"queries": "8", "dropout": "0", "variant": "paper", "size.width": "64"}, new=NewKind.SMITH
    )
    new = replace(recipe.start.new or NewEncoder(NewKind.SMITH), sizes={"width": "64"})
    assert recipe.start == Start(new=new, dropout=0.0)
    assert isinstance(recipe.objective, PairsObjective) and recipe.objective.queries == 8
    assert json.loads(json.dumps(dict(new.sizes))) == {"width": "64"}
    assert isinstance(OBJECTIVES["ct"].objective, TensionObjective)
