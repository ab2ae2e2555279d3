"""TDE: topics of texts, and the encoder that has them."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import normalize

from engine.encoders import tde as tde_layers
from engine.encoders.encoder import Pooling, Variant
from engine.encoders.loading import load_trainable
from engine.encoders.tde import (
    Bags,
    EmbeddedTopicModel,
    TdeConfig,
    TdeEncoder,
    Vocabulary,
    divergence,
    sentence_windows,
)
from engine.errors import EncoderError
from engine.text.document import Document
from tests.encoders import tiny
from tests.encoders.tiny import TDE, TEXTS, tiny_tde
from tests.fakes import make_document

WORDS = ("chunk", "dog", "fox", "model", "river", "search", "vector")
TOPIC_TEXTS = ["fox dog fox river", "search the vector, search!", "model", "of nothing known", "", "dog model"]


@pytest.fixture
def model() -> EmbeddedTopicModel:
    torch.manual_seed(0)
    return EmbeddedTopicModel(Vocabulary(WORDS), 3, embedding_width=5, hidden_width=6).eval()


def counts(text: str) -> list[int]:
    found = [word.strip(",!") for word in text.split()]
    return [found.count(word) for word in WORDS]


def posterior_by_hand(model: EmbeddedTopicModel, text: str) -> tuple[Tensor, Tensor]:
    x = torch.tensor(counts(text), dtype=torch.float32)
    first = torch.relu(model.word_layer.weight.T @ (x / x.sum()) + model.word_bias)
    second = torch.relu(model.hidden_layer.weight @ first + model.hidden_layer.bias)
    return (model.mean.weight @ second + model.mean.bias, model.log_variance.weight @ second + model.log_variance.bias)


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


def test_losses_equal_the_equation_also_in_mixed_precision(model: EmbeddedTopicModel) -> None:
    expected = [loss_by_hand(model, text) for text in (*TOPIC_TEXTS[:3], TOPIC_TEXTS[5])]
    loss = model.loss(model.bags(TOPIC_TEXTS))
    torch.testing.assert_close(loss[[0, 1, 2, 5]], torch.tensor(expected), atol=1e-5, rtol=1e-5)
    bags = model.bags(TOPIC_TEXTS)
    loss, shares = model.loss(bags), model.shares(bags)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(model.loss(bags), loss)
        assert torch.equal(model.shares(bags), shares)


def test_the_network_reads_word_counts_as_shares(model: EmbeddedTopicModel) -> None:
    mean, log_variance = model.posterior(model.bags(TOPIC_TEXTS))
    for row in (0, 1, 2, 5):
        torch.testing.assert_close((mean[row], log_variance[row]), posterior_by_hand(model, TOPIC_TEXTS[row]))
    once, thrice = model.shares(model.bags(["fox dog", "fox dog fox dog fox dog"]))
    torch.testing.assert_close(once, thrice)


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


def test_the_divergence_is_that_of_torch_and_zero_without_known_words(model: EmbeddedTopicModel) -> None:
    assert divergence(torch.zeros(2, 7), torch.zeros(2, 7)).tolist() == [0.0, 0.0]
    mean, log_variance = torch.randn(4, 7), torch.randn(4, 7)
    expected = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum(-1)
    torch.testing.assert_close(divergence(mean, log_variance), expected)
    bags = model.bags(["of nothing known", ""])
    assert [part.tolist() for part in model.posterior(bags)] == [[[0.0] * 3] * 2] * 2
    torch.testing.assert_close(model.shares(bags), torch.full((2, 3), 1 / 3))
    assert model.loss(bags).tolist() == [0.0, 0.0]


def test_bags_count_each_known_word_and_a_vocabulary_leaves_out_the_rare_and_the_common() -> None:
    bags = Vocabulary(WORDS).bags(TOPIC_TEXTS)
    dense = torch.zeros(len(TOPIC_TEXTS), len(WORDS))
    dense[bags.rows, bags.words] = bags.counts
    assert dense.tolist() == [counts(text) for text in TOPIC_TEXTS]
    assert bags.lengths.tolist() == [4, 3, 1, 0, 0, 2]
    texts = ["The fox, the dog", "FOX and dog 42", "fox; straße", "a fox? dog x"]
    assert Vocabulary.fit(texts, min_df=2, max_df=0.75).words == ("dog",)
    assert Vocabulary.fit(texts, min_df=1, max_df=0.75).words == ("dog", "straße")
    assert Vocabulary.fit(texts, min_df=2, max_df=1.0).words == ("dog", "fox")
    texts = ["cow dog hen", "cow dog", "cow ant hen", "bee"]
    assert Vocabulary.fit(texts, min_df=1, max_df=1.0, max_words=2).words == ("cow", "dog")


@pytest.mark.parametrize("picked", [[5, 0, 3, 1], [3], [2, 2], [4, 3]])
def test_bags_taken_are_the_bags_of_those_texts(picked: list[int]) -> None:
    vocabulary = Vocabulary(WORDS)
    taken = vocabulary.bags(TOPIC_TEXTS).take(torch.tensor(picked))
    expected = vocabulary.bags(TOPIC_TEXTS[number] for number in picked)
    for name in Bags.__slots__:
        assert getattr(taken, name).tolist() == getattr(expected, name).tolist()


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


CONFIG = replace(TDE, variant=Variant.PAPER, pooling=Pooling.MEAN)
Make = Callable[..., TdeEncoder]


@pytest.fixture(scope="module")
def make(bert_folder: Path) -> Make:
    def made(config: TdeConfig = CONFIG, *, seed: int = 0) -> TdeEncoder:
        return tiny_tde(bert_folder, config, seed=seed)

    return made


@pytest.fixture(scope="module")
def encoder(make: Make) -> TdeEncoder:
    return make()


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return [make_document(f"d{number}", text) for number, text in enumerate(TEXTS)]


def sentences_of(encoder: TdeEncoder, document: Document) -> list[str]:
    return [document.text[chunk.start : chunk.stop] for chunk in encoder.segment(document).chunks]


def topics_by_hand(encoder: TdeEncoder, sentence: str, document: str) -> Tensor:
    model, norm = encoder.module.topics.model, encoder.module.topics.norm
    known = model.vocabulary.bags([sentence]).lengths.item()
    theta = model.shares(model.bags([sentence if known >= 3 else document]))[0]
    t = sum(theta[k] * model.alpha[k] for k in range(len(theta)))
    return norm.weight * (t - t.mean()) / (t.var(unbiased=False) + 1e-5).sqrt() + norm.bias


def by_hand(encoder: TdeEncoder, document: Document) -> tuple[Tensor, Tensor]:
    """Unit h and unit x_s, one sentence at a time."""
    rows = []
    for sentence in sentences_of(encoder, document):
        b = encoder.backbone.embed([encoder.backbone.tokenizer.tokenize([sentence])[0][0]], 64)[0]
        rows.append(torch.cat([b, topics_by_hand(encoder, sentence, document.text)]))
    h = sum(rows) / len(rows)
    return normalize(h, dim=0), torch.stack([row / row.norm() for row in rows])


@torch.no_grad()
def test_vectors_equal_the_equation_and_topics_start_as_long(encoder: TdeEncoder, documents: list[Document]) -> None:
    for document, encoded in zip(documents, encoder.encode(documents), strict=True):
        h, x = by_hand(encoder, document)
        np.testing.assert_allclose(encoded.document, h.numpy(), atol=1e-5)
        np.testing.assert_allclose(encoded.chunks, x.numpy(), atol=1e-5)
        assert encoded.chunks.shape[1] == encoder.width == 32 + 6
    for encoded in encoder.encode(documents):
        squares = np.square(encoded.chunks)
        np.testing.assert_allclose(squares[:, :32].sum(1), squares[:, 32:].sum(1), rtol=2e-3)


@torch.no_grad()
def test_a_sentence_of_few_known_words_has_the_topics_of_its_document(encoder: TdeEncoder) -> None:
    assert encoder.module.topics is not None
    text = "Unheard unknown dog river! The quick brown fox, the dog and the river. Fox dog river."
    few, many, enough = encoder.module.topics(["Unheard unknown dog river!", TEXTS[0], "Fox dog river."], text)
    whole = encoder.module.topics([text], text)[0]
    torch.testing.assert_close(few, whole)
    assert not torch.allclose(many, whole, atol=1e-2)
    assert not torch.allclose(enough, whole, atol=1e-2)


@torch.no_grad()
def test_long_documents_read_their_topics_in_parts(encoder: TdeEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert encoder.module.topics is not None
    sentences = [*TEXTS, "fox", *TEXTS[::-1]]
    at_once = encoder.module.topics(sentences, TEXTS[0])
    monkeypatch.setattr(tde_layers, "_SENTENCES_AT_ONCE", 3)
    torch.testing.assert_close(encoder.module.topics(sentences, TEXTS[0]), at_once)


def test_without_topics_vectors_are_means_of_states(make: Make, documents: list[Document]) -> None:
    plain = make(replace(CONFIG, n_topics=0))
    assert (plain.width, plain.module.topics) == (32, None)
    encoded = plain.encode(documents[:1])[0]
    ids = [ids for ids, _ in plain.backbone.tokenizer.tokenize(sentences_of(plain, documents[0]))]
    states = tiny.encoded(plain.backbone, ids, 64)
    np.testing.assert_allclose(encoded.chunks, states, atol=1e-6)
    np.testing.assert_allclose(encoded.document, states.mean(0) / np.linalg.norm(states.mean(0)), atol=1e-6)


def test_the_paper_variant_reads_the_first_token(make: Make, documents: list[Document]) -> None:
    assert TdeConfig(Variant.PAPER).pooling is Pooling.CLS
    assert TdeConfig(Variant.FIXED).pooling is Pooling.MEAN
    paper = make(replace(CONFIG, pooling=Pooling.CLS, n_topics=0))
    segmented = paper.segment(documents[0])
    ids, mask = paper.backbone.tokenizer.pad(segmented.token_ids)
    with torch.no_grad():
        first = paper.backbone.model(input_ids=ids, attention_mask=mask.long())[0][:, 0]
    np.testing.assert_allclose(paper.encode(documents[:1])[0].chunks, normalize(first, dim=-1).numpy(), atol=1e-5)


def test_sentences_are_read_alone_in_the_paper_variant_and_with_a_neighbour_in_the_fixed_one(
    encoder: TdeEncoder, documents: list[Document], make: Make
) -> None:
    assert sentences_of(encoder, documents[0]) == [
        "The quick brown fox jumps over the lazy dog.",
        "A dark house by the river bank!",
        "Search finds it.",
    ]
    fixed = make(replace(CONFIG, variant=Variant.FIXED))
    document = make_document("d", "Model\n\nThe search finds every chunk of a long document. The fox.")
    assert sentences_of(fixed, document) == [document.text]
    first, second = "Model\n\nThe search finds every chunk of a long document.", "The old red dog was brown and quick."
    assert sentences_of(fixed, make_document("d", f"{first} {second}")) == [first, second]


@torch.no_grad()
def test_the_pair_head_reads_two_texts_of_one_width(encoder: TdeEncoder, documents: list[Document]) -> None:
    one, *others = (encoded.document for encoded in encoder.encode(documents))
    first, _, _, last = encoder.module.head.layers
    for other, probability in zip(others, encoder.match_probability(one, np.stack(others)), strict=True):
        h1, h2 = (torch.from_numpy(h) * 38**0.5 for h in (one, other))
        logits = last(torch.relu(first(torch.cat([h1, h2, h1 - h2, h1 * h2]))))
        assert probability == pytest.approx(logits.softmax(0)[1].item(), abs=1e-6)
        assert encoder.match_probability(one, other) == pytest.approx(probability, abs=1e-6)
    with pytest.raises(EncoderError) as raised:
        encoder.match_probability(np.zeros(38, np.float32), np.zeros((4, 7), np.float32))
    assert str(raised.value) == "a vector is 7 wide, those of this encoder 38; encode with it"


def test_the_fingerprint_leaves_the_pair_head_out(make: Make, documents: list[Document], tmp_path: Path) -> None:
    encoder = make()
    before = encoder.fingerprint
    with torch.no_grad():
        encoder.module.head.layers[0].bias.add_(1)
    assert encoder.fingerprint == before
    encoder.save_pretrained(tmp_path)
    again = load_trainable(str(tmp_path), device="cpu", dtype=torch.float32)
    assert isinstance(again, TdeEncoder)
    h = encoder.encode(documents)[0].document
    assert again.match_probability(h, h) == encoder.match_probability(h, h)


def test_a_sentence_without_room_is_refused(make: Make) -> None:
    with pytest.raises(EncoderError) as raised:
        make(replace(CONFIG, sentence_tokens=2))
    assert str(raised.value) == "sentence_tokens is 2, the tokenizer adds 2 of its own; give at least 3"


@pytest.mark.parametrize(
    ("ends", "capacity", "shortest", "expected"),
    [
        ([5, 9, 20], 12, 1, [(0, 5), (5, 9), (9, 20)]),
        ([5, 9, 20], 12, 5, [(0, 5), (5, 9), (9, 20)]),  # 4 and 11 do not fit together
        ([5, 9, 16], 12, 5, [(0, 5), (5, 16)]),
        ([2, 4, 6, 12], 8, 5, [(0, 6), (6, 12)]),
        ([6, 8], 8, 5, [(0, 8)]),  # the last sentence joins the one before it
        ([7, 9], 8, 5, [(0, 7), (7, 9)]),
        ([25], 12, 5, [(0, 8), (8, 16), (16, 25)]),
        ([13, 15], 12, 5, [(0, 6), (6, 13), (13, 15)]),
        ([], 12, 5, []),
    ],
)
def test_windows_are_sentences(ends: list[int], capacity: int, shortest: int, expected: list[tuple[int, int]]) -> None:
    windows = sentence_windows(ends, capacity, shortest=shortest)
    assert [(window.first, window.stop) for window in windows] == expected


@given(st.lists(st.integers(1, 40)), st.integers(1, 30), st.integers(1, 10))
def test_windows_hold_every_token_once_and_fit(lengths: list[int], capacity: int, shortest: int) -> None:
    ends = np.cumsum(lengths, dtype=int).tolist()
    windows = sentence_windows(ends, capacity, shortest=shortest)
    assert [at for window in windows for at in range(window.first, window.stop)] == list(range(sum(lengths)))
    assert all(0 < window.stop - window.first <= capacity for window in windows)
    if shortest == 1:
        cut = {end for end in ends} | {window.stop for window in windows}
        assert {window.stop for window in windows} == cut  # every sentence ends a window
