"""Hiding of words: which and how many are chosen, and what replaces them; the head against its equation."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm

from engine.training.tasks.masked_words import (
    IGNORED,
    MaskedWordHead,
    choose_by_chance,
    choose_by_count,
    mask_words,
    maskable,
)

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


def test_special_and_padded_tokens_are_never_maskable() -> None:
    ids = torch.tensor([[CLS, 7, SEP, 8, MASK, SEP, SEP, 9]])
    mask = torch.tensor([[True] * 7 + [False]])
    assert maskable(ids, mask, SPECIAL).tolist() == [[False, True, False, True, False, False, False, False]]


@pytest.mark.parametrize(
    ("length", "expected"), [(4, 1), (9, 1), (10, 2), (11, 2), (16, 2), (17, 3), (30, 4), (32, 5), (60, 5)]
)
def test_the_count_is_that_of_the_released_code(length: int, expected: int) -> None:
    ids, mask = padded([length, 64])
    chosen = choose_by_count(maskable(ids, mask, SPECIAL), mask, seeded())
    assert int(chosen[0].sum()) == expected == min(5, max(1, round(length * 0.15)))


def test_a_sequence_with_fewer_words_than_the_count_gives_them_all() -> None:
    ids = torch.tensor([[CLS, *[MASK] * 20, 7, SEP], [CLS, *[MASK] * 21, SEP]])
    mask = torch.ones_like(ids, dtype=torch.bool)
    chosen = choose_by_count(maskable(ids, mask, SPECIAL), mask, seeded())
    assert chosen.nonzero().tolist() == [[0, 21]]


def test_every_word_is_chosen_with_equal_probability_and_special_tokens_never() -> None:
    ids, mask = padded([23] * 4000)
    free = maskable(ids, mask, SPECIAL)
    for chosen, expected in (
        (choose_by_count(free, mask, seeded()), 3 / 20),
        (choose_by_chance(free, seeded()), 0.15),
    ):
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
    assert embeddings.grad is not None
    assert embeddings.grad.any(1).nonzero().flatten().tolist() == [7]
    assert "embeddings" not in dict(head.named_parameters())
