from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks.baselines.pair_model import CosineHead, SiameseModel
from benchmarks.baselines.pair_training import PairTraining, scores_of, train_pairs
from benchmarks.pairs.scorer import Budget, Course, Pair
from benchmarks.pairs.selection import Selection
from engine.errors import TrainingError

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
PAIRS = [Pair(f"d{number}", f"d{(number * 5 + 1) % 12}", number % 2 == 0) for number in range(12)]
BUDGET = Budget(30, 4, 60.0)


def train(settings: PairTraining, budget: Budget = BUDGET, *, valid: Sequence[Pair] = (), seed: int = 0) -> Linear:
    model = Linear()
    train_pairs(model, INPUTS, PAIRS, valid, settings=settings, budget=budget, seed=seed)
    return model


def weights_of(model: nn.Module) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def test_the_first_step_is_the_plain_one_of_adam() -> None:
    expected = Linear()
    optimizer = torch.optim.Adam(expected.parameters(), lr=1e-2)
    logits = expected([INPUTS[pair.first] for pair in PAIRS], [INPUTS[pair.second] for pair in PAIRS])
    labels = torch.tensor([float(pair.is_match) for pair in PAIRS])
    (-labels * logits.sigmoid().log() - (1 - labels) * (1 - logits.sigmoid()).log()).mean().backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    model = train(PairTraining(learning_rate=1e-2, gradient_norm=1e9), Budget(1, 12, 60.0))
    torch.testing.assert_close(weights_of(model), weights_of(expected))


def test_a_batch_in_parts_has_the_gradient_of_the_whole() -> None:
    whole = train(PairTraining(pairs_at_once=12), Budget(5, 12, 60.0))
    parts = train(PairTraining(pairs_at_once=5), Budget(5, 12, 60.0))
    torch.testing.assert_close(weights_of(parts), weights_of(whole), atol=1e-5, rtol=1e-4)


def test_a_seed_gives_the_same_weights_again_and_another_seed_others() -> None:
    first, again, other = (weights_of(train(PairTraining(), seed=seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_it_stops_when_patience_is_at_its_end() -> None:
    settings = PairTraining(learning_rate=1e-9, selection=Selection(pairs=12, looks=15, patience=3))
    course = train_pairs(Linear(), INPUTS, PAIRS, PAIRS, settings=settings, budget=BUDGET, seed=0)
    assert (course.n_steps, course.best_step) == (6, 0)  # looked at before the first step, after 2, 4 and 6


def test_time_that_is_up_leaves_the_weights_as_they_were() -> None:
    model = Linear()
    course = train_pairs(model, INPUTS, PAIRS, PAIRS, settings=PairTraining(), budget=Budget(1000, 4, 0.0), seed=0)
    assert (course.n_steps, course.best_step) == (0, 0)
    assert torch.equal(weights_of(model), weights_of(Linear()))


def test_without_valid_pairs_all_steps_are_made_and_the_last_weights_kept() -> None:
    course = train_pairs(Linear(), INPUTS, PAIRS, [], settings=PairTraining(), budget=BUDGET, seed=0)
    assert course == Course(n_steps=30, best_step=30, valid_accuracy=None)


def test_the_rate_rises_and_falls() -> None:
    settings = PairTraining(warmup_share=0.4, decays=True)
    shares = [settings.rate_share(step, 10) for step in range(10)]
    assert shares == pytest.approx([0.25, 0.5 * 0.9, 0.75 * 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert [PairTraining().rate_share(step, 10) for step in (0, 9)] == [1.0, 1.0]


def test_a_siamese_model_scores_as_it_does_pair_by_pair_and_encodes_each_document_once() -> None:
    model = Linear()
    scores = scores_of(model, INPUTS, PAIRS, PairTraining(pairs_at_once=2))
    assert model.n_encoded == len({doc_id for pair in PAIRS for doc_id in (pair.first, pair.second)})
    one_by_one = [model([INPUTS[pair.first]], [INPUTS[pair.second]]).item() for pair in PAIRS]
    np.testing.assert_allclose(scores, one_by_one, atol=1e-6)


def test_pairs_of_one_kind_teach_nothing() -> None:
    matches = [pair for pair in PAIRS if pair.is_match]
    with pytest.raises(TrainingError, match="of 6 training pairs 6 match; both kinds are needed"):
        train_pairs(Linear(), INPUTS, matches, [], settings=PairTraining(), budget=BUDGET, seed=0)


def test_a_budget_without_steps_is_refused() -> None:
    with pytest.raises(TrainingError, match="a budget of 0 steps of 4 pairs trains nothing"):
        train(PairTraining(), Budget(0, 4, 60.0))


def test_a_loss_that_is_no_number_ends_it() -> None:
    model = Linear()
    nn.init.constant_(model.layer.bias, float("nan"))
    with pytest.raises(TrainingError, match=r"the loss of step 1 is nan; lower the learning rate \(0.001\)"):
        train_pairs(model, INPUTS, PAIRS, [], settings=PairTraining(), budget=BUDGET, seed=0)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"pairs_at_once": 0}, "pairs_at_once is 0; it must be at least 1"),
        ({"learning_rate": 0.0}, "learning rate 0.0"),
        ({"warmup_share": 1.0}, "warm-up share 1.0"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], told: str) -> None:
    with pytest.raises(TrainingError, match=told):
        PairTraining(**settings)  # type: ignore[arg-type]
