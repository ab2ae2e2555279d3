from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.pair_judging import accuracy_threshold, judge
from benchmarks.pair_scorer import Budget, Fit, PairScorer
from benchmarks.pairs.comparing import Comparison, GivenScorer, Shelf
from benchmarks.pairs.trained_encoders import Recipe, TrainedEncoder, ValidAccuracy
from engine.encoders.files import weights_sha256
from engine.encoders.mean import MeanEncoder
from engine.errors import TrainingError
from engine.training.fine_tuning import FineTuningSettings, Loss
from engine.training.section_contrast import ContrastSettings
from engine.training.smith_pretraining import Objective
from engine.training.text_pairs import TextPairsSettings
from indexer.training.start import Kind, NewEncoder, Start
from tests.benchmarks.pairs.pair_cases import BUDGET, TEST, TRAIN, VALID, texts

DOCUMENTS = texts()
BCE = FineTuningSettings(losses={Loss.BCE: 1.0})
SMITH = {
    "block_tokens": "12",
    "max_blocks": "4",
    "width": "32",
    "sentence_layers": "1",
    "sentence_ffn": "64",
    "sentence_positions": "16",
    "document_layers": "1",
    "document_ffn": "64",
    "document_positions": "4",
}
COLDE = {"chunk_tokens": "12", "max_chunks": "2", "lstm_width": "16", "projection_width": "24"}
TDE = {"n_topics": "3", "topic_width": "6", "topic_hidden_width": "8", "min_df": "1", "max_df": "1.0"}


def made(folder: Path, name: str) -> Recipe:
    def new(kind: Kind, sizes: dict[str, str]) -> Start:
        return Start(str(folder), NewEncoder(kind, sizes=sizes))

    both = frozenset(Objective)
    return {
        "bce": Recipe(Start(str(folder)), BCE, Comparison.COSINE, 1e-4),
        "maxsim": Recipe(Start(str(folder)), FineTuningSettings(), Comparison.MAXSIM, 1e-4),
        "smith": Recipe(new(Kind.SMITH, SMITH), BCE, Comparison.COSINE, 1e-3),
        "pretrained smith": Recipe(new(Kind.SMITH, SMITH), BCE, Comparison.COSINE, 1e-3, pretraining=both),
        "colde": Recipe(new(Kind.COLDE, COLDE), ContrastSettings(), Comparison.COSINE, 1e-4, 1e-3),
        "colde by bce": Recipe(new(Kind.COLDE, COLDE), ContrastSettings(contrastive=False), Comparison.COSINE, 1e-4),
        "tde": Recipe(new(Kind.TDE, TDE), TextPairsSettings(), Comparison.HEAD, 1e-4, 1e-3),
    }[name]


def scorer(recipe: Recipe, budget: Budget = BUDGET, *, seed: int = 0) -> TrainedEncoder:
    one = TrainedEncoder("mine", recipe, training_tokens=28, device="cpu")
    one.fit(Fit(DOCUMENTS, TRAIN, VALID, budget, seed))
    return one


def given(folder: Path, work: Path) -> PairScorer:
    one = GivenScorer(str(folder), Comparison.COSINE, Shelf(work, "made@0a"), device="cpu")
    one.fit(Fit(DOCUMENTS, TRAIN, VALID, BUDGET, 0))
    return one


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bce", "maxsim", "smith", "pretrained smith", "colde", "colde by bce", "tde"])
def test_every_kind_learns_within_its_budget_and_scores(bert_folder: Path, name: str) -> None:
    one = scorer(made(bert_folder, name))
    course = one.course
    assert course is not None and course.valid_accuracy is not None
    pretraining = 2 if name == "pretrained smith" else 0
    assert course.pretraining_steps == pretraining
    assert course.best_step <= course.n_steps in range(1, 5 - pretraining)
    assert 0.5 <= course.valid_accuracy <= 1
    scores = one.score(TEST)
    assert scores.shape == (len(TEST),)
    assert np.ptp(scores) > 0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_scores(bert_folder: Path) -> None:
    recipe = made(bert_folder, "smith")
    first, again, other = (scorer(recipe, seed=seed).score(TEST) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.slow
def test_training_separates_pairs_that_were_alike(bert_folder: Path, tmp_path: Path) -> None:
    recipe = replace(made(bert_folder, "bce"), start=Start(str(bert_folder), dropout=0.0), learning_rate=3e-3)
    before = given(bert_folder, tmp_path)
    after = TrainedEncoder("after", recipe, training_tokens=200, device="cpu")
    after.fit(Fit(DOCUMENTS, TRAIN, TRAIN, Budget(steps=30, pairs_per_step=24), 0))
    labels = [pair.is_match for pair in TRAIN]
    accuracies = [
        judge(scores, labels, accuracy_threshold(scores, labels)).accuracy
        for scores in (one.score(TRAIN) for one in (before, after))
    ]
    assert accuracies[0] + 0.1 < accuracies[1]


def test_valid_accuracy_is_that_of_the_best_threshold(mean_encoder: MeanEncoder) -> None:
    whole = ValidAccuracy(mean_encoder, DOCUMENTS, VALID, Comparison.COSINE, chunks=100)
    vectors = {doc_id: mean_encoder.encode([DOCUMENTS[doc_id]])[0].document for doc_id in DOCUMENTS}
    scores = np.array([float(vectors[pair.first] @ vectors[pair.second]) for pair in VALID])
    labels = np.array([pair.is_match for pair in VALID])
    tried = [np.mean((scores > threshold) == labels) for threshold in [-2, *scores]]
    assert whole() == pytest.approx(max(tried))


@pytest.mark.slow
def test_steps_of_pretraining_are_those_that_were_made(bert_folder: Path) -> None:
    one = scorer(made(bert_folder, "pretrained smith"), Budget(steps=5, pairs_per_step=8))
    assert one.course is not None
    assert (one.course.pretraining_steps, one.course.n_steps) == (2, 3)
    with pytest.raises(TrainingError, match="a budget of 1 steps has no half for pretraining; give at least 2"):
        scorer(made(bert_folder, "pretrained smith"), Budget(steps=1, pairs_per_step=8))


@pytest.mark.slow
def test_settings_name_the_backbone_and_what_is_taken_from_it(bert_folder: Path) -> None:
    label = f"bert@{weights_sha256(bert_folder)[:12]}"
    expected = {"bce": label, "colde": f"{label}, under new layers", "smith": f"{label} (the word embeddings alone)"}
    for name, begins_with in expected.items():
        one = scorer(made(bert_folder, name), Budget(steps=1, pairs_per_step=8))
        assert (one.encoder, one.settings["begins_with"]) == (label, begins_with)
    wide = replace(
        made(bert_folder, "smith"),
        start=Start(str(bert_folder), NewEncoder(Kind.SMITH, sizes={**SMITH, "width": "16"})),
    )
    one = scorer(wide, Budget(steps=1, pairs_per_step=8))
    assert (one.encoder, one.settings["begins_with"]) == (label, "random weights")


def test_pretraining_of_other_encoders_than_smith_is_refused(bert_folder: Path) -> None:
    recipe = replace(made(bert_folder, "bce"), pretraining=frozenset({Objective.WORDS}))
    with pytest.raises(TrainingError, match="pretraining by hidden words and blocks is SMITH's, not that of mean"):
        scorer(recipe)


def test_settings_describe_the_recipe(bert_folder: Path) -> None:
    colde = TrainedEncoder("colde", made(bert_folder, "colde"), training_tokens=28).settings
    assert (colde["new"], colde["variant"], colde["labels_alone"]) == ("colde", "fixed", False)
    assert (colde["losses"], colde["size_chunk_tokens"], colde["head_learning_rate"]) == ("sections", "12", 1e-3)
    assert colde.items() >= {"selection_pairs": 100, "selection_looks": 10, "selection_patience": 5}.items()
    smith = TrainedEncoder("smith", made(bert_folder, "pretrained smith"), training_tokens=28).settings
    assert (smith["losses"], smith["pretraining"], smith["labels_alone"]) == ("bce=1", "sp,wp", True)
