"""Momentum contrast: the queue of keys and the key encoder, step by step."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.mean import MeanEncoder
from engine.errors import TrainingError
from engine.training.tasks.momentum_contrast import MomentumContrast
from engine.training.tasks.samplers import SAMPLERS, Sampling
from engine.training.tasks.view_pairs import ViewPairs
from tests.fakes import make_document

WORDS = "fox dog river bank model vector house light red green".split()
DOCUMENTS = [make_document(word, f"The {word} is old. " * 12) for word in WORDS]


def contrast(bert_folder: Path, *, queue_size: int = 8, momentum: float = 0.9) -> MomentumContrast:
    encoder = MeanEncoder(Backbone(bert_folder, device="cpu", dtype=torch.float32), window_tokens=24)
    pairs = ViewPairs(encoder, DOCUMENTS, SAMPLERS[Sampling.CONTRIEVER], batch_size=3, max_tokens=48)
    return MomentumContrast(encoder, pairs, queue_size=queue_size, momentum=momentum)


def learn(task: MomentumContrast, step: int) -> float:
    task.module.zero_grad()
    loss = task.backward(task.batch(step), Tensor.backward)["loss"]
    with torch.no_grad():
        for weight in task.module.encoder.parameters():
            if weight.grad is not None:
                weight -= 0.01 * weight.grad
    return loss


def test_the_negatives_of_the_loss_are_the_keys_in_the_queue(bert_folder: Path) -> None:
    task = contrast(bert_folder)
    keys: list[tuple[int, Tensor]] = []
    for step in range(5):
        batch = task.batch(step)
        queries = task.encoder.embed(batch.queries).documents.detach()
        found = learn(task, step)
        targets = task._keys.embed(batch.targets).documents.detach()  # the key encoder has followed by now
        keys = [*keys, *zip(batch.positions, targets, strict=True)][-8:]
        losses = []
        for position, query, target in zip(batch.positions, queries, targets, strict=True):
            negatives = [float(query @ key) for other, key in keys if other != position]
            logits = torch.tensor([float(query @ target), *negatives]) / 0.05
            losses.append(float(logits.logsumexp(0) - logits[0]))
        assert found == pytest.approx(sum(losses) / 3, rel=1e-3, abs=1e-5)


def test_the_key_encoder_follows_by_momentum_and_has_no_gradient(bert_folder: Path) -> None:
    task = contrast(bert_folder, momentum=0.75)
    name = "encoder.layer.0.output.dense.weight"
    before = task.module.encoder.get_parameter(name).clone()
    learn(task, 0)
    torch.testing.assert_close(task.module.keys.get_parameter(name), before)
    after = task.module.encoder.get_parameter(name).clone()
    assert not torch.equal(before, after)
    learn(task, 1)
    torch.testing.assert_close(task.module.keys.get_parameter(name), 0.75 * before + 0.25 * after)
    assert all(weight.grad is None for weight in task.module.keys.parameters())


def test_a_resumed_run_continues_with_the_same_losses(bert_folder: Path) -> None:
    task, resumed = contrast(bert_folder), contrast(bert_folder)
    for step in range(3):
        learn(task, step)
    resumed.module.load_state_dict(task.module.state_dict())
    assert [learn(task, step) for step in (3, 4)] == [learn(resumed, step) for step in (3, 4)]


def test_the_oldest_rows_are_overwritten(bert_folder: Path) -> None:
    task = contrast(bert_folder)
    positions = [position for step in range(3) for position in task.batch(step).positions]
    for step in range(3):
        learn(task, step)
    assert task.module.owners.tolist() == [positions[8], *positions[1:8]]
    torch.testing.assert_close(task.module.queue.norm(dim=1), torch.ones(8))


@pytest.mark.parametrize(
    ("queue_size", "momentum", "message"),
    [
        (2, 0.9, "a queue of 2 does not hold a batch of 3"),
        (8, 1.0, r"momentum 1.0 must be in \[0, 1\), temperature 0.05"),
    ],
)
def test_settings_out_of_range_are_refused(bert_folder: Path, queue_size: int, momentum: float, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        contrast(bert_folder, queue_size=queue_size, momentum=momentum)


def test_tokens_of_both_views_are_counted(bert_folder: Path) -> None:
    task = contrast(bert_folder)
    batch = task.batch(0)
    views = (*batch.queries, *batch.targets)
    assert task.n_tokens(batch) == sum(len(ids) for view in views for ids in view.token_ids)
