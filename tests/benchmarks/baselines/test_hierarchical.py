from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks.baselines.hierarchical import AttentiveGru, Han, HanConfig, Smash, SmashConfig, han, smash
from benchmarks.baselines.pair_model import n_parameters
from benchmarks.baselines.text_inputs import DocumentWords
from tests.benchmarks.baselines.pair_cases import (
    OVERFITTING,
    TINY_WORDS,
    fitted,
    random_table,
    random_words,
    share_right,
    topical_pairs,
    turned,
)


def read_by_hand(level: AttentiveGru, sequence: Tensor) -> Tensor:
    """The equation, one sequence (L, E) at a time, by torch's own bidirectional GRU."""
    gru = nn.GRU(level.forwards.input_size, level.forwards.hidden_size, bidirectional=True)
    names = [*level.forwards.state_dict()]
    gru.load_state_dict(
        {name: level.forwards.state_dict()[name] for name in names}
        | {f"{name}_reverse": level.backwards.state_dict()[name] for name in names}
    )
    states = gru(sequence)[0]
    weights = (torch.tanh(level.attention(states)) @ level.context.weight[0]).softmax(0)
    return torch.stack([weight * state for weight, state in zip(weights, states, strict=True)]).sum(0)


def test_every_sequence_is_read_as_it_is_alone() -> None:
    torch.manual_seed(0)
    level = AttentiveGru(5, 3, 4)
    lengths = torch.tensor([2, 7, 1, 4, 5, 30, 3, 8])
    elements = torch.randn(60, 5)
    expected = torch.stack([read_by_hand(level, sequence) for sequence in elements.split(lengths.tolist())])
    torch.testing.assert_close(level(elements, lengths), expected, atol=1e-6, rtol=1e-5)


def test_gradients_are_those_of_sequences_read_alone() -> None:
    torch.manual_seed(0)
    level = AttentiveGru(5, 3, 4)
    together, alone = (torch.linspace(-1, 1, 50).reshape(10, 5).requires_grad_() for _ in range(2))
    lengths = torch.tensor([3, 4, 1, 2])
    level(together, lengths).square().sum().backward()
    learned = [weight.grad.clone() for weight in level.parameters() if weight.grad is not None]
    level.zero_grad()
    sum(level(part, torch.tensor([len(part)])).square().sum() for part in alone.split(lengths.tolist())).backward()
    torch.testing.assert_close(together.grad, alone.grad)
    torch.testing.assert_close(learned, [weight.grad for weight in level.parameters()])
    assert len(learned) == 11


def read_by_hand_han(model: Han, document: DocumentWords) -> Tensor:
    """One sentence at a time, then the sentences."""
    words = model.embedding(torch.from_numpy(document.ids))
    sentences = [model.words(part, torch.tensor([len(part)])) for part in words.split(document.sentences.tolist())]
    whole: Tensor = model.sentences(torch.cat(sentences), torch.tensor([len(sentences)]))[0]
    return whole


def test_han_vectors_equal_the_equations_in_any_batch() -> None:
    torch.manual_seed(0)
    model = Han(HanConfig(width=6, attention_width=5), random_table(width=5))
    documents = [random_words(seed, n_words=length) for seed, length in enumerate((1, 9, 33))]
    expected = torch.stack([read_by_hand_han(model, document) for document in documents])
    torch.testing.assert_close(model.encode(documents), expected, atol=1e-5, rtol=1e-5)


def test_han_has_as_many_parameters_as_in_the_paper() -> None:
    model = Han(HanConfig(), random_table(width=200).requires_grad_(False))
    words = 2 * 3 * 50 * (200 + 50 + 2)  # torch's GRU has two biases a gate
    sentences = 2 * 3 * 50 * (100 + 50 + 2)
    attention = 100 * 100 + 100 + 100
    assert n_parameters(model) == words + sentences + 2 * attention + 2
    assert model.encode([random_words(0, n_words=30)]).shape == (1, 100)


@pytest.mark.slow
def test_han_fits_its_training_pairs_and_scores_them_the_same_in_either_order() -> None:
    config = HanConfig(TINY_WORDS, width=8, attention_width=8)
    scorer, pairs = fitted(han(config, OVERFITTING), steps=40), topical_pairs()
    assert share_right(scorer, pairs) == 1
    np.testing.assert_allclose(scorer.score(pairs), scorer.score(turned(pairs)), atol=1e-5)


def read_by_hand_smash(model: Smash, words: Tensor, cut: list[list[int]]) -> Tensor:
    """One vector of a document (W, E) cut into paragraphs, each a list of the lengths of its sentences."""
    paragraphs = []
    rest = words
    for sentences in cut:
        read = []
        for length in sentences:
            read.append(model.words(rest[:length], torch.tensor([length])))
            rest = rest[length:]
        paragraphs.append(model.sentences(torch.cat(read), torch.tensor([len(read)])))
    whole: Tensor = model.paragraphs(torch.cat(paragraphs), torch.tensor([len(paragraphs)]))[0]
    return whole


def three_cuts(document: DocumentWords) -> list[list[list[int]]]:
    sentences = document.sentences.tolist()
    paragraphs, rest = [], sentences
    for length in document.paragraphs.tolist():
        paragraphs.append(rest[:length])
        rest = rest[length:]
    return [paragraphs, [sentences], [[len(document)]]]


def test_smash_vectors_are_those_of_three_depths_in_any_batch() -> None:
    torch.manual_seed(0)
    model = Smash(SmashConfig(width=4, attention_width=3), random_table(width=5))
    documents = [random_words(seed, n_words=length) for seed, length in enumerate((1, 9, 33))]
    for document, row in zip(documents, model.encode(documents), strict=True):
        words = model.embedding(torch.from_numpy(document.ids))
        expected = torch.cat([read_by_hand_smash(model, words, cut) for cut in three_cuts(document)])
        torch.testing.assert_close(row, expected, atol=1e-5, rtol=1e-5)


def test_both_documents_go_through_one_tower() -> None:
    torch.manual_seed(0)
    model = Smash(SmashConfig(width=4, attention_width=3), random_table(width=5))
    first, second = random_words(0, n_words=12), random_words(1, n_words=20)
    s, t = model.encode([first, second])
    features = torch.cat([s, t, (s - t).abs(), s * t])
    torch.testing.assert_close(model([first], [second])[0], model.head.layers(features)[0])


def test_smash_has_as_many_parameters_as_the_released_code() -> None:
    model = Smash(SmashConfig(), random_table(width=50).requires_grad_(False))
    words = 2 * 3 * 128 * (50 + 128 + 2)
    others = 2 * (2 * 3 * 128 * (256 + 128 + 2))
    attention = 256 * 128 + 128 + 128
    head = (3072 * 1536 + 1536) + (1536 + 1)
    assert n_parameters(model) == words + others + 3 * attention + head
    assert model.encode([random_words(0, n_words=30)]).shape == (1, 768)


@pytest.mark.slow
def test_smash_fits_its_training_pairs() -> None:
    config = SmashConfig(TINY_WORDS, width=8, attention_width=8)
    assert share_right(fitted(smash(config, OVERFITTING), steps=40), topical_pairs()) == 1
