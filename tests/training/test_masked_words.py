"""Masked words, their head and their loss; and the losses of the other objectives."""

import math
from math import exp, log
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy, gelu, layer_norm, normalize
from transformers import AlbertConfig, AlbertModel

from engine.encoders.backbone import Backbone
from engine.encoders.trainable import MeanEncoder
from engine.errors import TrainingError
from engine.training.losses import (
    ScaledCosine,
    bce_of_cosine,
    best_matches,
    chunk_weights,
    contrastive_tension,
    info_nce,
    ranking_loss,
    supervised_contrastive,
)
from engine.training.masked_words import (
    IGNORED,
    MaskedWordHead,
    MaskedWordLoss,
    choose_by_chance,
    choose_by_count,
    mask_words,
    maskable,
)
from tests.fakes import make_document
from tests.training.made import supervised_contrastive_by_hand

CLS, SEP, PAD, MASK = 2, 3, 0, 4
SPECIAL = {CLS, SEP, PAD, MASK}
VOCABULARY = 1000


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def padded(lengths: list[int]) -> tuple[Tensor, Tensor]:
    """Sequences [CLS] words [SEP] [SEP] of these lengths, all of it counted; words are from 5 on."""
    ids = torch.full((len(lengths), max(lengths)), PAD)
    for row, length in enumerate(lengths):
        words = [5 + (row + at) % 900 for at in range(length - 3)]
        ids[row, :length] = torch.tensor([CLS, *words, SEP, SEP])
    return ids, torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def test_special_and_padded_tokens_are_never_masked_and_few_words_are_all() -> None:
    ids = torch.tensor([[CLS, 7, SEP, 8, MASK, SEP, SEP, 9]])
    mask = torch.tensor([[True] * 7 + [False]])
    assert maskable(ids, mask, SPECIAL).tolist() == [[False, True, False, True, False, False, False, False]]
    ids = torch.tensor([[CLS, *[MASK] * 20, 7, SEP], [CLS, *[MASK] * 21, SEP]])
    mask = torch.ones_like(ids, dtype=torch.bool)
    chosen = choose_by_count(maskable(ids, mask, SPECIAL), mask, seeded())
    assert chosen.nonzero().tolist() == [[0, 21]]


@pytest.mark.parametrize(
    ("length", "expected"), [(4, 1), (9, 1), (10, 2), (11, 2), (16, 2), (17, 3), (30, 4), (32, 5), (60, 5)]
)
def test_the_count_is_that_of_the_released_code(length: int, expected: int) -> None:
    ids, mask = padded([length, 64])
    chosen = choose_by_count(maskable(ids, mask, SPECIAL), mask, seeded())
    assert int(chosen[0].sum()) == expected == min(5, max(1, round(length * 0.15)))


def test_every_word_is_chosen_with_equal_probability_and_special_tokens_never() -> None:
    ids, mask = padded([23] * 4000)
    free = maskable(ids, mask, SPECIAL)
    for chosen, expected in ((choose_by_count(free, mask, seeded()), 3 / 20), (choose_by_chance(free, seeded()), 0.15)):
        assert not chosen[~free].any()
        shares = chosen.float().mean(0)[free[0]]
        assert shares.tolist() == pytest.approx([expected] * 20, abs=5 * math.sqrt(0.15 * 0.85 / 4000))


def test_the_same_seed_hides_the_same_words() -> None:
    ids, mask = padded([20, 9, 31])
    free = maskable(ids, mask, SPECIAL)

    def hide(seed: int) -> Tensor:
        generator = seeded(seed)
        chosen = choose_by_chance(free, generator)
        return mask_words(ids, chosen, generator, mask_id=MASK, vocabulary_size=VOCABULARY).ids

    assert torch.equal(hide(1), hide(1))
    assert not torch.equal(hide(1), hide(2))


def test_eighty_percent_become_the_mask_and_ten_any_word() -> None:
    ids, mask = padded([103] * 2000)
    chosen = maskable(ids, mask, SPECIAL)
    hidden = mask_words(ids, chosen, seeded(), mask_id=MASK, vocabulary_size=VOCABULARY)
    read, original = hidden.ids[chosen], ids[chosen]
    n = len(read)
    assert float((read == MASK).sum() / n) == pytest.approx(0.8, abs=0.005)
    assert float((read == original).sum() / n) == pytest.approx(0.1, abs=0.005)
    assert int(read.max()) < VOCABULARY
    assert len(read.unique()) == VOCABULARY


def test_targets_are_the_chosen_words_as_they_were() -> None:
    ids, mask = padded([12, 8])
    chosen = choose_by_count(maskable(ids, mask, SPECIAL), mask, seeded())
    before = ids.clone()
    hidden = mask_words(ids, chosen, seeded(), mask_id=MASK, vocabulary_size=VOCABULARY)
    assert torch.equal(ids, before)
    assert torch.equal(hidden.ids[~chosen], ids[~chosen])
    for row in range(2):
        for at in range(12):
            assert int(hidden.targets[row, at]) == (int(ids[row, at]) if chosen[row, at] else IGNORED)


@torch.no_grad()
def test_the_head_is_the_equation_with_tied_embeddings() -> None:
    head = MaskedWordHead(16, 50, seeded())
    head.bias.uniform_(-1, 1)
    states, embeddings = torch.randn(3, 16, generator=seeded(1)), torch.randn(50, 16, generator=seeded(2))
    logits = head(states, embeddings)
    dense = head.transform.dense
    for state, row in zip(states, logits, strict=True):
        transformed = layer_norm(gelu(dense.weight @ state + dense.bias, approximate="tanh"), (16,), eps=1e-12)
        for word in range(50):
            assert float(row[word]) == pytest.approx(float(embeddings[word] @ transformed + head.bias[word]), abs=1e-4)


def test_the_embeddings_learn_from_the_head() -> None:
    head = MaskedWordHead(16, 50, seeded())
    embeddings = torch.randn(50, 16, requires_grad=True)
    head(torch.randn(3, 16), embeddings)[:, 7].sum().backward()
    assert embeddings.grad.any(1).nonzero().flatten().tolist() == [7]
    assert "embeddings" not in dict(head.named_parameters())


@pytest.fixture
def backbone(bert_folder: Path) -> Backbone:
    return Backbone(bert_folder, device="cpu", dtype=torch.float32)


def sequences_of(backbone: Backbone) -> list[list[int]]:
    texts = ["the old fox runs over the house", "a model finds every vector of a long document", "one two three four"]
    return [list(ids) for ids, _ in backbone.tokenizer.tokenize(texts * 3)]


def gradients(backbone: Backbone, loss: MaskedWordLoss) -> list[Tensor]:
    weights = [*backbone.model.parameters(), *loss.parameters()]
    found = [weight.grad.clone() for weight in weights if weight.grad is not None]
    for weight in weights:
        weight.grad = None
    return found


def test_the_loss_is_the_mean_cross_entropy_of_the_hidden_words(backbone: Backbone) -> None:
    loss, sequences = MaskedWordLoss(backbone), sequences_of(backbone)[:1] * 4
    ids, mask = backbone.tokenizer.pad(sequences)
    generator = torch.Generator().manual_seed(7)
    chosen = choose_by_chance(maskable(ids, mask, loss.special), generator)
    n_words = backbone.tokenizer.vocabulary_size
    hidden = mask_words(ids, chosen, generator, mask_id=loss.mask_id, vocabulary_size=n_words)
    logits = loss.head(
        backbone.model(input_ids=hidden.ids)[0][chosen], backbone.model.embeddings.word_embeddings.weight
    )
    expected = cross_entropy(logits, ids[chosen])
    found = loss.backward(backbone, sequences, Tensor.backward, weight=1.0, token_budget=10_000, seed=7)
    assert found == pytest.approx(expected.item(), rel=1e-5)


def test_the_weight_scales_gradients_and_the_value_stays(backbone: Backbone) -> None:
    loss, sequences = MaskedWordLoss(backbone), sequences_of(backbone)
    values, found = [], []
    for weight in (1.0, 0.1):
        values.append(loss.backward(backbone, sequences, Tensor.backward, weight=weight, token_budget=40, seed=1))
        found.append(gradients(backbone, loss))
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    for one, tenth in zip(*found, strict=True):
        torch.testing.assert_close(tenth, one / 10, atol=1e-6, rtol=1e-4)


def test_passes_add_up_to_the_loss_of_the_batch(backbone: Backbone) -> None:
    """With all sequences alike, how they are batched does not change what is hidden, only when."""
    loss, parts = MaskedWordLoss(backbone), []
    sequences = sequences_of(backbone)[:1] * 60

    def counted(value: Tensor) -> None:
        parts.append(value.item())
        value.backward()

    mean = loss.backward(backbone, sequences, counted, weight=1.0, token_budget=90, seed=1)
    assert len(parts) == 6
    assert mean == pytest.approx(sum(parts), rel=1e-6)
    whole = loss.backward(backbone, sequences, Tensor.backward, weight=1.0, token_budget=10_000, seed=1)
    assert whole == pytest.approx(mean, rel=0.1)


def test_where_nothing_is_hidden_there_is_no_loss(backbone: Backbone) -> None:
    loss = MaskedWordLoss(backbone)
    values = [
        loss.backward(backbone, [[7]], Tensor.backward, weight=1.0, token_budget=10, seed=seed) for seed in range(20)
    ]
    assert 0.0 in values


def test_embeddings_of_another_width_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    for file in bert_folder.glob("*token*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = AlbertConfig(
        vocab_size=300, embedding_size=16, hidden_size=32, num_attention_heads=4, intermediate_size=64
    )
    AlbertModel(config).save_pretrained(tmp_path)
    with pytest.raises(TrainingError, match="are 16 wide, its states 32; train without masked words"):
        MaskedWordLoss(Backbone(tmp_path, device="cpu", dtype=torch.float32))


SEEDS = st.integers(0, 10_000)


def unit(seed: int, *shape: int) -> Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return normalize(drawn, dim=-1)


def coins(seed: int, *shape: int, share: float = 0.3) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share


def info_nce_by_hand(queries: Tensor, targets: Tensor, positives: list[int], tau: float, excluded: Tensor) -> float:
    losses = []
    for i, p in enumerate(positives):
        terms = [exp(float(queries[i] @ targets[j]) / tau) for j in range(len(targets)) if j == p or not excluded[i, j]]
        losses.append(-log(exp(float(queries[i] @ targets[p]) / tau) / sum(terms)))
    return sum(losses) / len(losses)


@given(seed=SEEDS, n_queries=st.integers(1, 5), n_targets=st.integers(1, 7))
def test_info_nce_equals_the_equation(seed: int, n_queries: int, n_targets: int) -> None:
    queries, targets = unit(seed, n_queries, 6), unit(seed + 1, n_targets, 6)
    positives = torch.randint(n_targets, (n_queries,), generator=torch.Generator().manual_seed(seed))
    excluded = coins(seed, n_queries, n_targets)
    found = info_nce(queries, targets, positives, temperature=0.5, excluded=excluded)
    assert found.item() == pytest.approx(info_nce_by_hand(queries, targets, positives.tolist(), 0.5, excluded))


@given(seed=SEEDS, n_vectors=st.integers(0, 7), share=st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_supervised_contrastive_equals_the_equation(seed: int, n_vectors: int, share: float) -> None:
    vectors = unit(seed, n_vectors, 6).requires_grad_()
    positives, ignored = (
        coins(seed, n_vectors, n_vectors, share=share),
        coins(seed + 1, n_vectors, n_vectors, share=share),
    )
    found = supervised_contrastive(vectors, positives, temperature=0.5, ignored=ignored)
    assert found.item() == pytest.approx(supervised_contrastive_by_hand(vectors.detach(), positives, 0.5, ignored))
    found.backward()
    assert vectors.grad.isfinite().all()


@pytest.mark.parametrize(("raw", "scale"), [(-1e9, 1.0), (1e9, 50.0)])
def test_the_scale_stays_in_its_range(raw: float, scale: float) -> None:
    layer = ScaledCosine()
    torch.nn.init.constant_(layer.raw_scale, raw)
    assert layer.scale.item() == scale


def test_bce_of_cosine_equals_the_equation_and_its_scale_learns() -> None:
    cosine, labels = torch.tensor([0.9, -0.2, 0.4]), torch.tensor([True, False, True])
    chances = [1 / (1 + exp(-(6 * c + 0.5))) for c in (0.9, -0.2, 0.4)]
    by_hand = -(log(chances[0]) + log(1 - chances[1]) + log(chances[2])) / 3
    assert bce_of_cosine(cosine, labels, 6.0, 0.5).item() == pytest.approx(by_hand)
    layer = ScaledCosine()
    torch.testing.assert_close(layer(torch.tensor([-1.0, 0.5])), torch.tensor([-6.0, 3.0]))
    layer(torch.tensor(1.0)).backward()
    assert layer.bias.grad == 1.0
    assert layer.raw_scale.grad is not None
    assert layer.raw_scale.grad > 0


def ranking_by_hand(scores: Tensor, positives: Tensor, excluded: Tensor, tau: float) -> float:
    losses = []
    for row, positive, left_out in zip(scores.tolist(), positives.tolist(), excluded.tolist(), strict=True):
        places = [t for t in range(len(row)) if not left_out[t]]
        negatives = sum(exp(row[t] / tau) for t in places if not positive[t])
        own = [exp(row[t] / tau) for t in places if positive[t]]
        losses += [-log(up / (up + negatives)) for up in own]
    return sum(losses) / len(losses) if losses else 0.0


@given(seed=SEEDS, share=st.sampled_from([0.0, 0.3, 1.0]), left_out=st.sampled_from([0.0, 0.3, 1.0]))
def test_the_ranking_loss_equals_the_equation(seed: int, share: float, left_out: float) -> None:
    scores = torch.rand(3, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()
    positives, excluded = coins(seed, 3, 6, share=share), coins(seed + 1, 3, 6, share=left_out)
    found = ranking_loss(scores, positives, excluded, temperature=0.3)
    assert found.item() == pytest.approx(ranking_by_hand(scores.detach(), positives, excluded, 0.3))
    found.backward()
    assert scores.grad.isfinite().all()


def test_contrastive_tension_is_the_cross_entropy_of_dot_products() -> None:
    one, other = torch.tensor([[2.0, 0.0], [1.0, 1.0]]), torch.tensor([[1.5, 3.0], [-1.0, 0.5]])
    by_hand = (-log(1 / (1 + exp(-3.0))) - log(1 - 1 / (1 + exp(0.5)))) / 2
    assert contrastive_tension(one, other, torch.tensor([True, False])).item() == pytest.approx(by_hand)


def unit_rows(seed: int, *shape: int) -> Tensor:
    return normalize(torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + 0.7, dim=-1)


def test_padding_never_wins_and_best_matches_send_gradients_to_the_best_chunk_alone() -> None:
    targets = torch.tensor([[[-1.0, 0.0], [0.0, 0.0]]])  # the second chunk is padding
    assert best_matches(torch.tensor([[[1.0, 0.0]]]), targets, torch.tensor([[True, False]])).item() == -1.0
    queries, targets = unit_rows(0, 2, 3, 4), unit_rows(1, 2, 5, 4).requires_grad_()
    best_matches(queries, targets, torch.ones(2, 5, dtype=torch.bool)).sum().backward()
    by_hand = torch.zeros_like(targets)
    for q in range(2):
        for i in range(3):
            for t in range(2):
                by_hand[t, int((targets[t] @ queries[q, i]).argmax())] += queries[q, i]
    torch.testing.assert_close(targets.grad, by_hand)


def test_a_chunk_weighs_the_root_of_its_tokens_and_padding_nothing(mean_encoder: MeanEncoder) -> None:
    texts = ["fox " * 12 + "dog dog dog dog", "the old house is red"]
    documents = [mean_encoder.segment(make_document("d", text)) for text in texts]
    tokens = [[chunk.n_tokens for chunk in document.chunks] for document in documents]
    torch.testing.assert_close(
        chunk_weights(documents), torch.tensor([[n**0.5 for n in tokens[0]], [tokens[1][0] ** 0.5, 0.0]])
    )
