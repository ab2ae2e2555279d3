"""The embedded topic model against its equations, one text and one word at a time, and on texts of two worlds."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from engine.encoders.tde import Bags, EmbeddedTopicModel, Vocabulary, divergence
from engine.errors import EncoderError

WORDS = ("chunk", "dog", "fox", "model", "river", "search", "vector")
TEXTS = ["fox dog fox river", "search the vector, search!", "model", "of nothing known", "", "dog model"]

ANIMALS = "fox dog horse cow sheep goat hen duck".split()
PLANETS = "mars venus earth saturn uranus pluto ceres titan".split()


@pytest.fixture
def model() -> EmbeddedTopicModel:
    torch.manual_seed(0)
    return EmbeddedTopicModel(Vocabulary(WORDS), 3, embedding_width=5, hidden_width=6).eval()


def two_worlds(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(ANIMALS if number % 2 else PLANETS, 12)) for number in range(n)]


def counts(text: str) -> list[int]:
    found = [word.strip(",!") for word in text.split()]
    return [found.count(word) for word in WORDS]


def posterior_by_hand(model: EmbeddedTopicModel, text: str) -> tuple[Tensor, Tensor]:
    x = torch.tensor(counts(text), dtype=torch.float32)
    first = torch.relu(model.word_layer.weight.T @ (x / x.sum()) + model.word_bias)
    second = torch.relu(model.hidden_layer.weight @ first + model.hidden_layer.bias)
    return (
        model.mean.weight @ second + model.mean.bias,
        model.log_variance.weight @ second + model.log_variance.bias,
    )


@torch.no_grad()
def loss_by_hand(model: EmbeddedTopicModel, text: str) -> float:
    """The equation, one word and one topic at a time; at the mean of delta."""
    mean, log_variance = posterior_by_hand(model, text)
    theta = mean.exp() / mean.exp().sum()
    unexplained = divergence = 0.0
    for word, count in enumerate(counts(text)):
        likely = 0.0
        for topic in range(len(model.alpha)):
            logits = [float(model.alpha[topic] @ rho) for rho in model.rho]
            likely += float(theta[topic]) * math.exp(logits[word]) / sum(map(math.exp, logits))
        unexplained -= count * math.log(likely + 1e-6)
    for mu, s in zip(mean.tolist(), log_variance.tolist(), strict=True):
        divergence -= 0.5 * (1 + s - mu**2 - math.exp(s))
    return (unexplained + divergence) / sum(counts(text))


def test_the_loss_equals_the_equation(model: EmbeddedTopicModel) -> None:
    expected = [loss_by_hand(model, text) for text in (*TEXTS[:3], TEXTS[5])]
    loss = model.loss(model.bags(TEXTS))
    torch.testing.assert_close(loss[[0, 1, 2, 5]], torch.tensor(expected), atol=1e-5, rtol=1e-5)


def test_the_network_reads_word_counts_as_shares(model: EmbeddedTopicModel) -> None:
    mean, log_variance = model.posterior(model.bags(TEXTS))
    for row in (0, 1, 2, 5):
        torch.testing.assert_close((mean[row], log_variance[row]), posterior_by_hand(model, TEXTS[row]))
    once, thrice = model.shares(model.bags(["fox dog", "fox dog fox dog fox dog"]))
    torch.testing.assert_close(once, thrice)


def test_shares_sum_to_one_in_training_too(model: EmbeddedTopicModel) -> None:
    for training in (False, True):
        shares = model.train(training).shares(model.bags(TEXTS))
        assert shares.shape == (6, 3)
        assert (shares > 0).all()
        torch.testing.assert_close(shares.sum(1), torch.ones(6))


@torch.no_grad()
def test_shares_are_samples_in_training_and_the_mean_afterwards(model: EmbeddedTopicModel) -> None:
    bags = model.bags(["fox dog"] * 4000)
    mean, log_variance = model.posterior(bags)
    torch.testing.assert_close(model.shares(bags), mean.softmax(-1))
    torch.manual_seed(0)
    drawn = model.train().shares(bags).log()
    # Softmax removes a constant of delta, which the difference of two components does not depend on.
    difference = drawn[:, 0] - drawn[:, 1]
    assert float(difference.mean()) == pytest.approx(float(mean[0, 0] - mean[0, 1]), abs=0.1)
    assert float(difference.var()) == pytest.approx(float(log_variance[0, :2].exp().sum()), rel=0.1)


def test_the_divergence_is_zero_at_the_prior_and_that_of_torch_elsewhere() -> None:
    assert divergence(torch.zeros(2, 7), torch.zeros(2, 7)).tolist() == [0.0, 0.0]
    mean, log_variance = torch.randn(4, 7), torch.randn(4, 7)
    expected = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum(-1)
    torch.testing.assert_close(divergence(mean, log_variance), expected)


def test_a_text_without_known_words_is_at_the_prior(model: EmbeddedTopicModel) -> None:
    bags = model.bags(["of nothing known", ""])
    assert [part.tolist() for part in model.posterior(bags)] == [[[0.0] * 3] * 2] * 2
    torch.testing.assert_close(model.shares(bags), torch.full((2, 3), 1 / 3))
    assert model.loss(bags).tolist() == [0.0, 0.0]


def test_the_words_of_a_topic_sum_to_one(model: EmbeddedTopicModel) -> None:
    torch.testing.assert_close(model.beta().sum(1), torch.ones(3))
    by_hand = (model.rho @ model.alpha[1]).softmax(0)
    torch.testing.assert_close(model.beta()[1], by_hand)


def test_mixed_precision_does_not_change_losses_or_shares(model: EmbeddedTopicModel) -> None:
    bags = model.bags(TEXTS)
    loss, shares = model.loss(bags), model.shares(bags)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(model.loss(bags), loss)
        assert torch.equal(model.shares(bags), shares)


def test_topics_separate_two_vocabularies() -> None:
    texts = two_worlds(40)
    torch.manual_seed(0)
    model = EmbeddedTopicModel(Vocabulary.fit(texts), 2, embedding_width=8, hidden_width=16)
    optimizer, bags, losses = torch.optim.Adam(model.parameters(), lr=0.01), model.bags(texts), []
    for _ in range(150):
        loss = model.loss(bags).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 2.7 > 2.5 > losses[-1]  # log 16 = 2.77 at the start, log 8 = 2.08 where the topic is known
    one, other = (set(words) for words in model.top_words(8))
    assert {frozenset(one), frozenset(other)} == {frozenset(ANIMALS), frozenset(PLANETS)}
    shares = model.eval().shares(bags)
    assert (shares[::2].argmax(1) == shares[0].argmax()).all()
    assert (shares[1::2].argmax(1) == 1 - shares[0].argmax()).all()


def test_top_words_are_the_likeliest_first(model: EmbeddedTopicModel) -> None:
    order = model.beta()[0].argsort(descending=True).tolist()
    assert model.top_words(2)[0] == [WORDS[number] for number in order[:2]]
    assert [len(words) for words in model.top_words(100)] == [7, 7, 7]


def test_bags_count_each_known_word() -> None:
    bags = Vocabulary(WORDS).bags(TEXTS)
    dense = torch.zeros(len(TEXTS), len(WORDS))
    dense[bags.rows, bags.words] = bags.counts
    assert dense.tolist() == [counts(text) for text in TEXTS]
    assert bags.lengths.tolist() == [4, 3, 1, 0, 0, 2]


@pytest.mark.parametrize("picked", [[5, 0, 3, 1], [3], [2, 2], [4, 3]])
def test_bags_taken_are_the_bags_of_those_texts(picked: list[int]) -> None:
    vocabulary = Vocabulary(WORDS)
    taken = vocabulary.bags(TEXTS).take(torch.tensor(picked))
    expected = vocabulary.bags(TEXTS[number] for number in picked)
    for name in Bags.__slots__:
        assert getattr(taken, name).tolist() == getattr(expected, name).tolist()


def test_a_vocabulary_leaves_out_what_is_rare_common_or_a_stop_word() -> None:
    texts = ["The fox, the dog", "FOX and dog 42", "fox; straße", "a fox? dog x"]
    assert Vocabulary.fit(texts, min_df=2, max_df=0.75).words == ("dog",)
    assert Vocabulary.fit(texts, min_df=1, max_df=0.75).words == ("dog", "straße")
    assert Vocabulary.fit(texts, min_df=2, max_df=1.0).words == ("dog", "fox")


def test_of_too_many_words_those_in_most_texts_are_taken() -> None:
    texts = ["cow dog hen", "cow dog", "cow ant hen", "bee"]
    assert Vocabulary.fit(texts, min_df=1, max_df=1.0, max_words=2).words == ("cow", "dog")


def test_texts_without_a_fitting_word_are_refused() -> None:
    with pytest.raises(EncoderError) as raised:
        Vocabulary.fit(["fox dog", "cow hen"])
    assert str(raised.value) == (
        "of 4 words none stands in at least 2 and at most 70% of 2 texts; "
        "give more texts, or a wider range of min_df and max_df"
    )


def test_a_saved_vocabulary_loads_the_same(tmp_path: Path) -> None:
    Vocabulary(("dog", "straße")).save(tmp_path / "words.json")
    assert json.loads((tmp_path / "words.json").read_text(encoding="utf-8")) == ["dog", "straße"]
    assert Vocabulary.load(tmp_path / "words.json").words == ("dog", "straße")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"cannot be read \(no such file\)"),
        ("{", "cannot be read"),
        ('{"dog": 1}', "is no list of words"),
        ("[1]", "is no list"),
        ('["a", "a"]', "has 2 words, 1 distinct"),
    ],
)
def test_a_damaged_vocabulary_is_an_encoder_error(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "words.json").write_text(content)
    with pytest.raises(EncoderError, match=f"words.json {message}"):
        Vocabulary.load(tmp_path / "words.json")
