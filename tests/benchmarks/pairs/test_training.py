from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks.pairs.neural import dssm, neural_scorer
from benchmarks.pairs.pair_model import CosineHead, PairTraining, SiameseModel, scores_of, train_pairs
from benchmarks.pairs.scoring import Budget, Course, Fit, Pair
from benchmarks.pairs.siamese import DssmConfig
from benchmarks.pairs.training import Selection, best_accuracy, sample_valid, train_to_best
from engine.encoders.files import weights_sha256
from engine.errors import TrainingError
from engine.training.task import Backward
from engine.training.trainer import TrainerSettings
from tests.benchmarks.pairs.cases import OVERFITTING, fitted, topical_documents, topical_pairs

PAIRS = [Pair(f"a{number}", f"b{number}", number % 3 == 0) for number in range(30)]


def test_a_score_that_is_no_number_ends_training() -> None:
    with pytest.raises(TrainingError, match="2 of 30 valid pairs have a score that is no finite number; lower the"):
        best_accuracy([float("nan"), float("inf"), *[0.0] * 28], PAIRS)


def test_valid_pairs_are_sampled_by_a_seed_as_many_of_either_kind() -> None:
    drawn = sample_valid(PAIRS, 8, seed=1)
    assert [pair.is_match for pair in drawn].count(True) == 4
    assert drawn == sample_valid(PAIRS, 8, seed=1) != sample_valid(PAIRS, 8, seed=2)
    assert [PAIRS.index(pair) for pair in drawn] == sorted(PAIRS.index(pair) for pair in drawn)
    assert sample_valid(PAIRS, 100, seed=1) == PAIRS


class Counting:
    """A `Task` and its model: one number, which each step raises; `validate` returns the given values in turn."""

    def __init__(self, values: Sequence[float]) -> None:
        self.module = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.module.weight)
        self.validated_at: list[float] = []
        self._values = values

    def batch(self, step: int) -> int:
        return step

    def n_tokens(self, batch: int) -> int:
        return 1

    def backward(self, batch: int, backward: Backward) -> Mapping[str, float]:
        backward(-self.module.weight.sum())
        return {"loss": 1.0}

    def validate(self) -> float:
        self.validated_at.append(round(self.module.weight.item()))
        return self._values[len(self.validated_at) - 1]

    def train(self, *, steps: int = 6, patience: int = 9, between: int = 1, is_validated: bool = True) -> Course:
        # Adam moves a number by the learning rate where gradients are all the same.
        settings = TrainerSettings(steps=steps, learning_rate=1.0, weight_decay=0.0)
        selection = Selection(looks=3, between=between, patience=patience)
        validate = self.validate if is_validated else None
        rate = lambda step, of: 1.0  # noqa: E731
        return train_to_best(self, self, validate, settings, selection=selection, rate=rate)


def test_the_best_weights_are_taken() -> None:
    task = Counting([0.5, 0.9, 0.6, 0.8])
    assert task.train() == Course(n_steps=6, best_step=2, valid_accuracy=0.9, n_tokens=6)
    assert task.validated_at == [0, 2, 4, 6]
    assert task.module.weight.item() == pytest.approx(2, abs=1e-3)


def test_evaluations_are_at_least_some_steps_apart() -> None:
    task = Counting([0.5, 0.9, 0.6])
    task.train(between=3)
    assert task.validated_at == [0, 3, 6]


@pytest.mark.slow
def test_patience_ends_training() -> None:
    task = Counting([0.5, 0.5, 0.5])
    assert task.train(patience=2) == Course(4, 0, 0.5, n_tokens=4)
    assert (task.validated_at, task.module.weight.item()) == ([0, 2, 4], 0)


def test_without_valid_pairs_the_last_weights_stay() -> None:
    task = Counting([])
    assert task.train(is_validated=False) == Course(6, 6, None, n_tokens=6)
    assert task.module.weight.item() == pytest.approx(6, abs=1e-3)


def test_a_selection_that_chooses_nothing_is_refused() -> None:
    with pytest.raises(TrainingError, match="1 pairs, 10 looks and a patience of 5 choose nothing; take at least 2"):
        Selection(pairs=1)


pytest.importorskip("accelerate")


class Linear(SiameseModel[list[float]]):
    """One matrix over given numbers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 3)
        self.head = CosineHead()
        self.n_encoded = 0

    def encode(self, documents: Sequence[list[float]]) -> Tensor:
        self.n_encoded += len(documents)
        rows: Tensor = self.layer(torch.tensor(documents))
        return rows


INPUTS = {f"d{number}": [float(np.cos(number * row)) for row in range(1, 5)] for number in range(12)}


LINEAR_PAIRS = [Pair(f"d{number}", f"d{(number * 5 + 1) % 12}", number % 2 == 0) for number in range(12)]


BUDGET = Budget(30, 4)


def train(settings: PairTraining, budget: Budget = BUDGET, *, valid: Sequence[Pair] = (), seed: int = 0) -> Linear:
    model = Linear()
    train_pairs(model, INPUTS, Fit({}, LINEAR_PAIRS, valid, budget, seed), settings)
    return model


def weights_of(model: nn.Module) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def test_the_first_step_is_the_plain_one_of_adam() -> None:
    expected = Linear()
    optimizer = torch.optim.Adam(expected.parameters(), lr=1e-2)
    logits = expected([INPUTS[pair.first] for pair in LINEAR_PAIRS], [INPUTS[pair.second] for pair in LINEAR_PAIRS])
    labels = torch.tensor([float(pair.is_match) for pair in LINEAR_PAIRS])
    (-labels * logits.sigmoid().log() - (1 - labels) * (1 - logits.sigmoid()).log()).mean().backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    model = train(PairTraining(learning_rate=1e-2, gradient_norm=1e9), Budget(1, 12))
    torch.testing.assert_close(weights_of(model), weights_of(expected))


def test_a_batch_in_parts_has_the_gradient_of_the_whole() -> None:
    whole = train(PairTraining(pairs_at_once=12), Budget(5, 12))
    parts = train(PairTraining(pairs_at_once=5), Budget(5, 12))
    torch.testing.assert_close(weights_of(parts), weights_of(whole), atol=1e-5, rtol=1e-4)


def test_training_stops_when_patience_runs_out() -> None:
    settings = PairTraining(learning_rate=1e-9, selection=Selection(pairs=12, looks=15, between=1, patience=3))
    course = train_pairs(Linear(), INPUTS, Fit({}, LINEAR_PAIRS, LINEAR_PAIRS, BUDGET, 0), settings)
    assert (course.n_steps, course.best_step) == (6, 0)  # validated before the first step, and after 2, 4 and 6


def test_the_rate_rises_and_falls() -> None:
    settings = PairTraining(warmup_share=0.4, decays=True)
    shares = [settings.rate_share(step, 10) for step in range(10)]
    assert shares == pytest.approx([0.25, 0.5 * 0.9, 0.75 * 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert [PairTraining().rate_share(step, 10) for step in (0, 9)] == [1.0, 1.0]


def test_a_siamese_model_scores_as_it_does_pair_by_pair_and_encodes_each_document_once() -> None:
    model = Linear()
    scores = scores_of(model, INPUTS, LINEAR_PAIRS, PairTraining(pairs_at_once=2))
    assert model.n_encoded == len({doc_id for pair in LINEAR_PAIRS for doc_id in (pair.first, pair.second)})
    one_by_one = [model([INPUTS[pair.first]], [INPUTS[pair.second]]).item() for pair in LINEAR_PAIRS]
    np.testing.assert_allclose(scores, one_by_one, atol=1e-6)


def test_training_pairs_of_one_kind_are_refused() -> None:
    matches = [pair for pair in LINEAR_PAIRS if pair.is_match]
    with pytest.raises(TrainingError, match="of 6 training pairs 6 match; both kinds are needed"):
        train_pairs(Linear(), INPUTS, Fit({}, matches, [], BUDGET, 0), PairTraining())


def test_a_budget_without_steps_is_refused() -> None:
    with pytest.raises(TrainingError, match="a budget of 0 steps of 4 pairs trains nothing"):
        train(PairTraining(), Budget(0, 4))


def test_a_loss_that_is_not_a_number_stops_training() -> None:
    model = Linear()
    nn.init.constant_(model.layer.bias, float("nan"))
    with pytest.raises(TrainingError, match=r"the loss of step 1 is nan; lower the learning rate \(0.001\)"):
        train_pairs(model, INPUTS, Fit({}, LINEAR_PAIRS, [], BUDGET, 0), PairTraining())


SMALL = DssmConfig((16, 8), 500, 1)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_scores_and_leaves_torchs_random_numbers_alone() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first, again, other = (fitted(dssm(SMALL, OVERFITTING), steps=5, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    pairs = topical_pairs()
    np.testing.assert_array_equal(first.score(pairs), again.score(pairs))
    assert not np.allclose(first.score(pairs), other.score(pairs))


def test_settings_and_course_describe_model_and_training() -> None:
    scorer = fitted(dssm(SMALL, OVERFITTING), steps=3)
    expected = {"widths": "16 8", "max_trigrams": 500, "learning_rate": 1e-2, "selection_pairs": 100}
    assert expected.items() <= scorer.settings.items()
    assert scorer.course is not None
    assert (scorer.course.n_steps, scorer.course.best_step, scorer.encoder) == (3, 3, "")
    n_trigrams = (scorer.settings["n_parameters"] - 16 - (16 * 8 + 8) - 2) / 16  # type: ignore[operator]
    assert n_trigrams == int(n_trigrams) > 0


def test_words_are_learned_from_documents_of_train_alone() -> None:
    documents, pairs = topical_documents(), topical_pairs()
    train = pairs[:16]
    named = {doc_id for pair in train for doc_id in (pair.first, pair.second)}
    scorers = [dssm(SMALL, OVERFITTING) for _ in range(2)]
    given = (documents, {doc_id: documents[doc_id] for doc_id in documents if doc_id in named})
    for scorer, texts in zip(scorers, given, strict=True):
        scorer.fit(Fit(texts, train, [], Budget(2, 16), 0))
    assert len(given[1]) < len(documents)
    np.testing.assert_array_equal(*(scorer.score(train) for scorer in scorers))


def test_a_missing_device_raises_an_error() -> None:
    scorer = dssm(SMALL, OVERFITTING, device="cuda:63")
    with pytest.raises(TrainingError, match=r"device 'cuda:63' cannot be used .*; take another, as cpu"):
        scorer.fit(Fit(topical_documents(), topical_pairs(), [], Budget(1, 8), 0))


def test_given_weights_are_used(bert_folder: Path, tmp_path: Path) -> None:
    pairs = topical_pairs()
    scorer = neural_scorer("matchbert", bert=str(bert_folder), device="cpu")
    scorer.fit(Fit(topical_documents(), pairs, [], Budget(1, 4), 0))
    assert scorer.encoder == f"{bert_folder.name}@{weights_sha256(bert_folder)[:12]}"
