"""Contrastive pretraining on views: the loss against its parts, gradients, and that a small model learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.encoders.backbone.backbone import Backbone, Pooling
from engine.encoders.mean import MeanEncoder
from engine.errors import TrainingError
from engine.training.tasks.contrastive_pretraining import ContrastiveConfig, ContrastivePretraining, ProjectionHead
from engine.training.tasks.objectives import info_nce
from engine.training.tasks.samplers import SAMPLERS, Sampling
from engine.training.tasks.view_pairs import ViewPairs
from tests.fakes import make_document

TOPICS = [
    "fox dog lazy",
    "river bank left",
    "model vector search",
    "house light dark",
    "red green slow",
    "one two three",
]
DOCUMENTS = [
    make_document(topic, " ".join(f"The {topic} {word} is old." for word in "long many few some every right".split()))
    for topic in TOPICS
]


@pytest.fixture
def encoder(bert_folder: Path) -> MeanEncoder:
    return MeanEncoder(Backbone(bert_folder, device="cpu", dtype=torch.float32), window_tokens=24)


def pretraining(
    encoder: MeanEncoder,
    sampling: Sampling = Sampling.DOCSPLIT,
    *,
    batch_size: int = 6,
    **config: Any,  # noqa: ANN401
) -> ContrastivePretraining:
    pairs = ViewPairs(encoder, DOCUMENTS, SAMPLERS[sampling], batch_size=batch_size, max_tokens=48)
    return ContrastivePretraining(encoder, pairs, ContrastiveConfig(**config))


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {name: weight.grad.clone() for name, weight in module.named_parameters() if weight.grad is not None}


def test_the_loss_is_the_symmetric_info_nce_of_both_views(encoder: MeanEncoder) -> None:
    task = pretraining(encoder, mlm_weight=0.0, symmetric=True)
    batch = task.batch(0)
    queries, targets = encoder.embed(batch.queries).documents, encoder.embed(batch.targets).documents
    expected = info_nce(queries, targets, torch.arange(6), temperature=0.05, symmetric=True)
    parts = task.backward(batch, Tensor.backward)
    assert parts == pytest.approx({"contrastive": expected.item(), "loss": expected.item()}, rel=1e-4)


def test_the_loss_of_masked_words_is_a_weighted_part_of_the_loss(encoder: MeanEncoder) -> None:
    parts = pretraining(encoder, mlm_weight=0.1).backward(pretraining(encoder).batch(0), Tensor.backward)
    assert parts["loss"] == pytest.approx(parts["contrastive"] + 0.1 * parts["mlm"])
    assert 3 < parts["mlm"] < 12  # the log of 150 words is 5


@pytest.mark.slow
@pytest.mark.parametrize("mlp_head", [False, True])
def test_a_gradient_cache_changes_nothing(encoder: MeanEncoder, mlp_head: bool) -> None:
    found = []
    for group_tokens in (None, 30):
        task = pretraining(encoder, mlm_weight=0.0, mlp_head=mlp_head, group_tokens=group_tokens)
        task.module.zero_grad()
        parts = task.backward(task.batch(3), Tensor.backward)
        found.append((parts["loss"], gradients(task.module)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-4)
    assert found[0][1].keys() == found[1][1].keys()
    largest = max(float(gradient.abs().max()) for gradient in found[0][1].values())
    for name, gradient in found[0][1].items():
        torch.testing.assert_close(found[1][1][name], gradient, atol=2e-5 * largest, rtol=1e-4)


def test_every_parameter_except_the_pooler_has_a_gradient(encoder: MeanEncoder) -> None:
    task = pretraining(encoder, mlp_head=True)
    task.backward(task.batch(0), Tensor.backward)
    without = {name for name, weight in task.module.named_parameters() if weight.grad is None}
    assert without == {"encoder.pooler.dense.weight", "encoder.pooler.dense.bias"}
    assert {name.split(".")[0] for name, _ in task.module.named_parameters()} == {"encoder", "projection", "words"}


@pytest.mark.slow
@pytest.mark.parametrize("sampling", Sampling)
def test_batches_of_every_sampler_have_finite_losses(encoder: MeanEncoder, sampling: Sampling) -> None:
    task = pretraining(encoder, sampling)
    task.module.train()
    for step in range(2):
        parts = task.backward(task.batch(step), Tensor.backward)
        assert all(value == pytest.approx(value) and value >= 0 for value in parts.values())


@pytest.mark.slow
def test_a_small_model_overfits_a_few_documents(encoder: MeanEncoder) -> None:
    task = pretraining(encoder, mlm_weight=0.0)
    optimizer = torch.optim.AdamW(task.module.parameters(), lr=1e-3)
    losses = []
    for step in range(80):
        optimizer.zero_grad()
        losses.append(task.backward(task.batch(step), Tensor.backward)["loss"])
        optimizer.step()
    assert sum(losses[-10:]) < 0.1 * sum(losses[:10])


def test_first_token_vectors_under_a_head_equal_the_equation_of_the_paper(bert_folder: Path) -> None:
    backbone = Backbone(bert_folder, device="cpu", dtype=torch.float32, pooling=Pooling.CLS)
    task = pretraining(MeanEncoder(backbone, window_tokens=46), mlm_weight=0.0, mlp_head=True)
    batch = task.batch(0)
    head = task.module["projection"]
    assert isinstance(head, ProjectionHead)
    ids, mask = backbone.tokenizer.pad([batch.queries[0].token_ids[0]])
    cls = backbone.hidden_states(ids, mask)[:, 0]
    scale = backbone.width**0.5 / cls.norm()
    by_hand = nn.functional.normalize((cls * scale @ head.dense.weight.T + head.dense.bias).tanh(), dim=-1)
    assert len(batch.queries[0].chunks) == 1
    torch.testing.assert_close(head(task.encoder.embed(batch.queries[:1]).documents), by_hand, atol=1e-5, rtol=0)


def test_an_encoder_without_a_backbone_cannot_guess_words(encoder: MeanEncoder) -> None:
    task = pretraining(encoder)
    del encoder.backbone
    with pytest.raises(
        TrainingError, match=r"^an encoder of kind 'mean' has no backbone that guesses words; set mlm_w"
    ):
        ContrastivePretraining(encoder, task.pairs)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"temperature": 0.0}, "temperature 0.0 must be above 0"),
        ({"mlm_weight": -1.0}, "mlm_weight -1.0 must be 0 or above"),
        ({"group_tokens": 0}, "groups of 0 tokens hold nothing"),
    ],
)
def test_settings_out_of_range_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        ContrastiveConfig(**setting)


def test_tokens_of_both_views_are_counted(encoder: MeanEncoder) -> None:
    task = pretraining(encoder)
    batch = task.batch(0)
    views = (*batch.queries, *batch.targets)
    assert task.n_tokens(batch) == sum(len(ids) for view in views for ids in view.token_ids)
