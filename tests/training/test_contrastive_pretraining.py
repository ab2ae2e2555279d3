"""Contrastive pretraining: views of a batch, a queue of earlier views, and two encoders."""

from math import exp, log
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.encoders.backbone import Backbone
from engine.encoders.encoder import Pooling
from engine.encoders.trainable import MeanEncoder
from engine.errors import TrainingError
from engine.training.contrastive_pretraining import (
    ContrastivePretraining,
    ContrastiveTension,
    MomentumContrast,
    ProjectionHead,
    ViewsSettings,
    raw_vectors,
)
from engine.training.losses import info_nce
from engine.training.views import Sampling, ViewPairs
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
    pairs = ViewPairs(encoder, DOCUMENTS, sampling, batch_size=batch_size, max_tokens=48)
    return ContrastivePretraining(encoder, pairs, ViewsSettings(**{"mlm_weight": 0.1, **config}))


def test_the_loss_is_the_info_nce_and_masked_words_a_weighted_part_of_it(encoder: MeanEncoder) -> None:
    task = pretraining(encoder, mlm_weight=0.0)
    batch = task.batch(0)
    queries, targets = encoder.embed(batch.queries).documents, encoder.embed(batch.targets).documents
    expected = info_nce(queries, targets, torch.arange(6), temperature=0.05)
    parts = task.backward(batch, Tensor.backward)
    assert parts == pytest.approx({"contrastive": expected.item(), "loss": expected.item()}, rel=1e-4)
    parts = pretraining(encoder, mlm_weight=0.1).backward(pretraining(encoder).batch(0), Tensor.backward)
    assert parts["loss"] == pytest.approx(parts["contrastive"] + 0.1 * parts["mlm"])
    assert 3 < parts["mlm"] < 12  # the log of 150 words is 5


def test_every_parameter_except_the_pooler_has_a_gradient(encoder: MeanEncoder) -> None:
    task = pretraining(encoder, mlp_head=True)
    task.backward(task.batch(0), Tensor.backward)
    without = {name for name, weight in task.module.named_parameters() if weight.grad is None}
    assert without == {"encoder.pooler.dense.weight", "encoder.pooler.dense.bias"}
    assert {name.split(".")[0] for name, _ in task.module.named_parameters()} == {"encoder", "projection", "words"}


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
    with pytest.raises(TrainingError, match=r"^an encoder of type mean has no backbone that guesses words; set mlm_w"):
        ContrastivePretraining(encoder, task.pairs, task.settings)


WORDS = "fox dog river bank model vector house light red green".split()
MOMENTUM_DOCUMENTS = [make_document(word, f"The {word} is old. " * 12) for word in WORDS]


def contrast(bert_folder: Path, *, queue_size: int = 8, momentum: float = 0.9) -> MomentumContrast:
    encoder = MeanEncoder(Backbone(bert_folder, device="cpu", dtype=torch.float32), window_tokens=24)
    pairs = ViewPairs(encoder, MOMENTUM_DOCUMENTS, Sampling.CONTRIEVER, batch_size=3, max_tokens=48)
    return MomentumContrast(encoder, pairs, ViewsSettings(queue=queue_size, momentum=momentum))


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


def test_the_queue_holds_a_batch_and_its_oldest_rows_are_overwritten(bert_folder: Path) -> None:
    task = contrast(bert_folder)
    positions = [position for step in range(3) for position in task.batch(step).positions]
    for step in range(3):
        learn(task, step)
    assert task.module.owners.tolist() == [positions[8], *positions[1:8]]
    torch.testing.assert_close(task.module.queue.norm(dim=1), torch.ones(8))
    with pytest.raises(TrainingError, match="a queue of 2 does not hold a batch of 3"):
        contrast(bert_folder, queue_size=2)


WORDS = "fox dog river bank model vector house light red green".split()
CONTRASTIVE_DOCUMENTS = [make_document(word, f"The {word} is old. " * 9) for word in WORDS]


def tension(bert_folder: Path, *, batch_size: int = 8, negatives: int = 3) -> ContrastiveTension:
    encoder = MeanEncoder(Backbone(bert_folder, device="cpu", dtype=torch.float32), window_tokens=24)
    pairs = ViewPairs(encoder, CONTRASTIVE_DOCUMENTS, Sampling.CT, batch_size=batch_size, max_tokens=30)
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
    document = encoder.segment(CONTRASTIVE_DOCUMENTS[0])
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


def test_impossible_numbers_of_negatives_and_of_pairs_are_refused(bert_folder: Path) -> None:
    with pytest.raises(TrainingError, match=r"^10 negatives must be at least 1, and fewer than the 10 documents$"):
        tension(bert_folder, negatives=10)
    with pytest.raises(TrainingError, match=r"^a batch of 6 pairs is no multiple of one text with 3 others; take 4$"):
        tension(bert_folder, batch_size=6)


def test_tokens_of_both_sides_are_counted(bert_folder: Path, encoder: MeanEncoder) -> None:
    of_views, of_queue, of_two = pretraining(encoder), contrast(bert_folder), tension(bert_folder)
    views, queue, two = of_views.batch(0), of_queue.batch(0), of_two.batch(0)
    for counted, read in (
        (of_views.n_tokens(views), (*views.queries, *views.targets)),
        (of_queue.n_tokens(queue), (*queue.queries, *queue.targets)),
        (of_two.n_tokens(two), (*two.one, *two.other)),
    ):
        assert counted == sum(len(ids) for text in read for ids in text.token_ids)
