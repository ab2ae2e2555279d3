"""The training task of TDE against its equations by loops, and that a model of two layers learns from it."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.encoders.encoder import Pooling, SegmentedDocument, Variant
from engine.encoders.tde import TdeConfig, TdeEncoder
from engine.errors import TrainingError
from engine.text.document import Document
from engine.training.pair_tasks import (
    LabelledPair,
    TextPairs,
    TextPairsSettings,
    match_classes,
    pretrain_topics,
    sampled,
)
from tests.fakes import make_document
from tests.training.made import supervised_contrastive_by_hand

ANIMALS = "fox dog river house bank".split()
THINGS = "light model vector search chunk query score".split()
CONFIG = TdeConfig(
    Variant.PAPER, Pooling.MEAN, sentence_tokens=20, n_topics=2, topic_width=6, topic_hidden_width=8, min_df=1, max_df=1
)
TRAINING = TextPairsSettings(max_sentences=3, contrastive_weight=0.7, classification_weight=1.3)


def make_texts(n: int, *, seed: int = 0) -> list[Document]:
    """Texts of two to five sentences; even texts have words of one world, odd texts of another."""
    rng = np.random.default_rng(seed)
    worlds = (ANIMALS, THINGS)
    return [
        make_document(
            f"t{number}",
            " ".join(f"The {' '.join(rng.choice(worlds[number % 2], 5))} was." for _ in range(rng.integers(2, 6))),
        )
        for number in range(n)
    ]


def make_pairs(n: int, n_texts: int, *, seed: int = 0) -> list[LabelledPair]:
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(n_texts, 2, replace=False).tolist() for _ in range(n)]
    return [LabelledPair(one, other, one % 2 == other % 2) for one, other in drawn]


def segmented(encoder: TdeEncoder, texts: list[Document]) -> list[SegmentedDocument]:
    return [encoder.segment(text) for text in texts]


@pytest.fixture
def encoder(bert_folder: Path) -> TdeEncoder:
    return TdeEncoder.create(bert_folder, [text.text for text in make_texts(20)], CONFIG, device="cpu")


@pytest.fixture
def task(encoder: TdeEncoder) -> TextPairs:
    return TextPairs(encoder, segmented(encoder, make_texts(14)), make_pairs(20, 14), TRAINING)


@torch.no_grad()
def test_the_contrastive_part_equals_the_equation(task: TextPairs) -> None:
    batch = task.batch(0)
    embedded = task.encoder.embed(batch.texts)
    of_texts = match_classes(len(batch.texts), batch.pairs)
    vectors, classes = [], []
    for row, text in enumerate(batch.texts):
        for position in range(len(text.chunks)):
            vectors.append(embedded.chunks[row, position])
            classes.append(of_texts[row])
    same = torch.tensor([[one == other for other in classes] for one in classes])
    expected = supervised_contrastive_by_hand(vectors, same, 0.07, torch.zeros_like(same))
    assert len(set(classes)) > 1
    assert task.losses(batch, embedded)["contrastive"].item() == pytest.approx(expected, rel=1e-4)


@torch.no_grad()
def test_the_classification_part_is_the_cross_entropy_of_the_pair_head(task: TextPairs) -> None:
    batch = task.batch(1)
    vectors = task.encoder.embed(batch.texts).documents.numpy()
    expected = 0.0
    for pair in batch.pairs:
        probability = float(task.encoder.match_probability(vectors[pair.query], vectors[pair.target]))
        expected -= math.log(probability if pair.matches else 1 - probability) / len(batch.pairs)
    parts = task.losses(batch, task.encoder.embed(batch.texts))
    assert parts["classification"].item() == pytest.approx(expected, rel=1e-4)


@torch.no_grad()
def test_the_topic_part_is_the_mean_loss_of_texts_and_of_their_sentences(task: TextPairs) -> None:
    model, batch = task.module.topics.model, task.batch(2)
    texts = [model.loss(model.bags([text.document.text])).item() for text in batch.texts]
    sentences = [
        model.loss(model.bags([text.document.text[chunk.start : chunk.stop]])).item()
        for text in batch.texts
        for chunk in text.chunks
    ]
    parts = task.losses(batch, task.encoder.embed(batch.texts))
    assert parts["topics"].item() == pytest.approx((np.mean(texts) + np.mean(sentences)) / 2, rel=1e-4)


@pytest.mark.parametrize("group_tokens", [None, 60, 10_000])
def test_the_gradients_are_those_of_the_weighted_sum(encoder: TdeEncoder, group_tokens: int | None) -> None:
    settings = replace(TRAINING, group_tokens=group_tokens)
    task = TextPairs(encoder, segmented(encoder, make_texts(14)), make_pairs(20, 14), settings)
    batch = task.batch(0)
    reported = task.backward(batch, torch.Tensor.backward)
    gradients = {name: weights.grad for name, weights in task.module.named_parameters()}
    task.module.zero_grad()
    parts = task.losses(batch, task.encoder.embed(batch.texts))
    whole = parts["topics"] + 0.7 * parts["contrastive"] + 1.3 * parts["classification"]
    whole.backward()  # type: ignore[no-untyped-call]
    assert reported == pytest.approx({"loss": whole.item()} | {name: part.item() for name, part in parts.items()})
    unread = [name for name, weights in task.module.named_parameters() if weights.grad is None]
    assert unread == ["backbone.pooler.dense.weight", "backbone.pooler.dense.bias"]
    for name, weights in task.module.named_parameters():
        torch.testing.assert_close(gradients[name], weights.grad, atol=1e-5, rtol=1e-4)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), max_size=15))
def test_classes_are_the_connected_components_of_matches(pairs: list[tuple[int, int, bool]]) -> None:
    reached = np.eye(10, dtype=bool)
    for one, other, matches in pairs:
        reached[one, other] |= matches
        reached[other, one] |= matches
    for _ in range(10):
        reached = reached @ reached
    assert match_classes(10, [LabelledPair(*pair) for pair in pairs]) == reached.argmax(1).tolist()


def test_a_batch_holds_its_pairs_and_each_of_their_texts_once(task: TextPairs) -> None:
    seen = []
    for step in range(2):  # an epoch of 20 pairs in batches of 8
        batch = task.batch(step)
        ids = [text.document.doc_id for text in batch.texts]
        assert len(set(ids)) == len(ids)
        assert task.n_tokens(batch) == sum(len(ids) for text in batch.texts for ids in text.token_ids)
        seen += [(ids[pair.query], ids[pair.target], pair.matches) for pair in batch.pairs]
    given_pairs = [(f"t{pair.query}", f"t{pair.target}", pair.matches) for pair in task.pairs]
    assert len(seen) == 16
    assert all(seen.count(pair) <= given_pairs.count(pair) for pair in seen)


def test_another_seed_draws_other_pairs(task: TextPairs, encoder: TdeEncoder) -> None:
    other = TextPairs(encoder, segmented(encoder, make_texts(14)), make_pairs(20, 14), TRAINING, seed=1)
    assert task.batch(5).pairs != other.batch(5).pairs


def test_of_many_sentences_some_are_drawn_in_reading_order(encoder: TdeEncoder) -> None:
    text = encoder.segment(make_document("d", "The old fox was red. " * 10))
    drawn = [0] * 10
    for seed in range(300):
        few = sampled(text, 4, np.random.default_rng(seed))
        positions = [text.chunks.index(chunk) for chunk in few.chunks]
        assert len(positions) == 4 and positions == sorted(positions)
        assert few.token_ids == tuple(text.token_ids[position] for position in positions)
        assert few.coverage.tokens_read == few.coverage.tokens_total * 0.4
        for position in positions:
            drawn[position] += 1
    assert min(drawn) > 85 and max(drawn) < 155  # 120 each, and chance
    assert sampled(text, 10, np.random.default_rng(0)) is text


def test_without_topics_the_other_parts_are_trained(bert_folder: Path) -> None:
    encoder = TdeEncoder.create(bert_folder, [], replace(CONFIG, n_topics=0), device="cpu")
    task = TextPairs(encoder, segmented(encoder, make_texts(14)), make_pairs(20, 14), TRAINING)
    parts = task.backward(task.batch(0), torch.Tensor.backward)
    assert parts["topics"] == 0
    assert parts["loss"] == pytest.approx(0.7 * parts["contrastive"] + 1.3 * parts["classification"], rel=1e-5)
    assert task.module.head.layers[0].weight.grad is not None


@pytest.mark.parametrize(("batch_pairs", "n_pairs"), [(7, 20), (8, 7), (8, 0)])
def test_too_few_pairs_are_refused(encoder: TdeEncoder, batch_pairs: int, n_pairs: int) -> None:
    with pytest.raises(TrainingError) as raised:
        TextPairs(
            encoder,
            segmented(encoder, make_texts(14)),
            make_pairs(n_pairs, 14),
            TextPairsSettings(batch_pairs=batch_pairs),
        )
    assert str(raised.value) == (
        f"a batch of {batch_pairs} out of {n_pairs} pairs has too few texts that do not match; give at least 8 of both"
    )


@pytest.mark.slow
def test_fitting_topics_changes_the_topic_model_alone_and_separates_both_vocabularies(encoder: TdeEncoder) -> None:
    texts = [text.text for text in make_texts(40)] + ["", "unknown"]
    head, backbone = encoder.module.head.state_dict(), encoder.backbone.model.state_dict()
    kept = {name: value.clone() for name, value in (head | backbone).items()}
    before, state = encoder.fingerprint, torch.get_rng_state()
    losses = pretrain_topics(encoder, texts, epochs=150, batch_texts=16, learning_rate=0.01)
    assert torch.equal(torch.get_rng_state(), state)
    assert not encoder.module.training and encoder.fingerprint != before
    assert all(torch.equal(value, kept[name]) for name, value in (head | backbone).items())
    assert losses[0] > 2.4 > 2.1 > losses[-1]  # log 12 = 2.5 at the start, log 5 to log 7 at best
    model = encoder.module.topics.model
    topics = [{model.vocabulary.words[number] for number in topic} for topic in model.beta().topk(5).indices.tolist()]
    assert {frozenset(words & set(ANIMALS)) for words in topics} == {frozenset(ANIMALS), frozenset()}


def test_fitting_topics_depends_on_its_seed_alone(bert_folder: Path) -> None:
    texts = [text.text for text in make_texts(20)]

    def fitted(seed: int) -> list[float]:
        encoder = TdeEncoder.create(bert_folder, texts, CONFIG, device="cpu")
        return pretrain_topics(encoder, texts, epochs=3, batch_texts=8, seed=seed)

    assert fitted(0) == fitted(0) != fitted(1)


def test_without_a_topic_model_nothing_is_fitted(bert_folder: Path) -> None:
    encoder = TdeEncoder.create(bert_folder, [], replace(CONFIG, n_topics=0), device="cpu")
    with pytest.raises(TrainingError, match=r"^the encoder has n_topics 0, so no topics to fit; create it with"):
        pretrain_topics(encoder, ["fox"])


def test_texts_without_known_words_are_refused(encoder: TdeEncoder) -> None:
    with pytest.raises(TrainingError) as raised:
        pretrain_topics(encoder, ["zebra", ""])
    assert str(raised.value) == (
        "none of 2 texts has one of the 12 words of the vocabulary; fit it to texts like these"
    )
