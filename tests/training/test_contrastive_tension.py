"""Contrastive tension: the batches, the loss and the vectors of its two encoders."""

from __future__ import annotations

from math import exp, log
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.mean import MeanEncoder
from engine.errors import TrainingError
from engine.training.tasks.contrastive_tension import ContrastiveTension, raw_vectors
from engine.training.tasks.samplers import SAMPLERS, Sampling
from engine.training.tasks.view_pairs import ViewPairs
from tests.fakes import make_document

WORDS = "fox dog river bank model vector house light red green".split()
DOCUMENTS = [make_document(word, f"The {word} is old. " * 9) for word in WORDS]


def tension(bert_folder: Path, *, batch_size: int = 8, negatives: int = 3) -> ContrastiveTension:
    encoder = MeanEncoder(Backbone(bert_folder, device="cpu", dtype=torch.float32), window_tokens=24)
    pairs = ViewPairs(encoder, DOCUMENTS, SAMPLERS[Sampling.CT], batch_size=batch_size, max_tokens=30)
    return ContrastiveTension(encoder, pairs, negatives=negatives)


def test_each_text_is_paired_with_itself_and_with_others(bert_folder: Path) -> None:
    task = tension(bert_folder)
    for step in range(10):
        batch = task.batch(step)
        assert batch.labels == (True, False, False, False) * 2
        for number, one in enumerate(batch.one):
            own = batch.other[4 * number : 4 * number + 4]
            assert own[0] == one
            assert len({text.document.doc_id for text in own}) == 4
        assert max(sum(map(len, text.token_ids)) for text in batch.other) <= 30
    assert task.batch(4) == tension(bert_folder).batch(4)


def test_the_loss_is_of_raw_dot_products(bert_folder: Path) -> None:
    task = tension(bert_folder)
    batch = task.batch(0)
    with torch.no_grad():
        for weight in task.encoders[0].module.parameters():
            weight *= 0.3  # otherwise the products are in the hundreds
        losses = []
        for number, label in enumerate(batch.labels):
            one = raw_vectors(task.encoders[0], batch.one[number // 4 : number // 4 + 1])[0]
            other = raw_vectors(task.encoders[1], batch.other[number : number + 1])[0]
            chance = 1 / (1 + exp(-float(one @ other)))
            losses.append(-log(chance if label else 1 - chance))
    assert task.backward(batch, Tensor.backward)["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-4)


def test_raw_vectors_are_means_over_tokens(bert_folder: Path) -> None:
    encoder = tension(bert_folder).encoders[0]
    document = encoder.segment(DOCUMENTS[0])
    pooled = [encoder.backbone.pool([ids], 100)[0] for ids in document.token_ids]
    assert [len(ids) for ids in document.token_ids] == [20, 15, 10]
    by_hand = (20 * pooled[0] + 15 * pooled[1] + 10 * pooled[2]) / 45
    torch.testing.assert_close(raw_vectors(encoder, [document])[0], by_hand)


@pytest.mark.slow
def test_the_loss_falls_and_the_encoders_become_different(bert_folder: Path) -> None:
    task = tension(bert_folder)
    optimizer = torch.optim.RMSprop(task.module.parameters(), lr=1e-4)
    losses = []
    for step in range(30):
        optimizer.zero_grad()
        losses.append(task.backward(task.batch(step), Tensor.backward)["loss"])
        optimizer.step()
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])
    one, other = (encoder.module.embeddings.word_embeddings.weight for encoder in task.encoders)
    assert not torch.equal(one, other)


def test_the_better_of_both_encoders_is_kept(bert_folder: Path) -> None:
    task = tension(bert_folder)
    first, second = task.encoders
    assert task.better(lambda encoder: float(encoder is second)) is second
    assert task.better(lambda encoder: 0.5) is first


def test_impossible_numbers_of_negatives_and_of_pairs_are_refused(bert_folder: Path) -> None:
    with pytest.raises(TrainingError, match=r"^10 negatives must be at least 1, and fewer than the 10 documents$"):
        tension(bert_folder, negatives=10)
    with pytest.raises(TrainingError, match=r"^a batch of 6 pairs is no multiple of one text with 3 others; take 4$"):
        tension(bert_folder, batch_size=6)


def test_tokens_of_both_encoders_are_counted(bert_folder: Path) -> None:
    task = tension(bert_folder)
    batch = task.batch(0)
    read = (*batch.one, *batch.other)
    assert task.n_tokens(batch) == sum(len(ids) for text in read for ids in text.token_ids)
