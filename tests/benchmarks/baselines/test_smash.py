from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.baselines.pair_model import n_parameters
from benchmarks.baselines.smash import Smash, SmashConfig, smash
from benchmarks.baselines.word_inputs import DocumentWords
from tests.benchmarks.baselines.pair_cases import (
    OVERFITTING,
    TINY_WORDS,
    fitted,
    random_table,
    random_words,
    share_right,
    topical_pairs,
)


def read_by_hand(model: Smash, words: Tensor, cut: list[list[int]]) -> Tensor:
    """A document (W, E) cut in paragraphs, each a list of the words of its sentences: one vector."""
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


def test_vectors_are_those_of_three_depths_whatever_stands_beside_them() -> None:
    torch.manual_seed(0)
    model = Smash(SmashConfig(width=4, attention_width=3), random_table(width=5))
    documents = [random_words(seed, n_words=length) for seed, length in enumerate((1, 9, 33))]
    for document, row in zip(documents, model.encode(documents), strict=True):
        words = model.embedding(torch.from_numpy(document.ids))
        expected = torch.cat([read_by_hand(model, words, cut) for cut in three_cuts(document)])
        torch.testing.assert_close(row, expected, atol=1e-5, rtol=1e-5)


def test_both_documents_go_through_one_tower() -> None:
    torch.manual_seed(0)
    model = Smash(SmashConfig(width=4, attention_width=3), random_table(width=5))
    first, second = random_words(0, n_words=12), random_words(1, n_words=20)
    s, t = model.encode([first, second])
    features = torch.cat([s, t, (s - t).abs(), s * t])
    torch.testing.assert_close(model([first], [second])[0], model.head.layers(features)[0])


def test_it_has_the_layers_of_the_code_it_follows() -> None:
    model = Smash(SmashConfig(), random_table(width=50).requires_grad_(False))
    words = 2 * 3 * 128 * (50 + 128 + 2)
    others = 2 * (2 * 3 * 128 * (256 + 128 + 2))
    attention = 256 * 128 + 128 + 128
    head = (3072 * 1536 + 1536) + (1536 + 1)
    assert n_parameters(model) == words + others + 3 * attention + head
    assert model.encode([random_words(0, n_words=30)]).shape == (1, 768)


def test_it_learns_pairs_by_heart() -> None:
    config = SmashConfig(TINY_WORDS, width=8, attention_width=8)
    assert share_right(fitted(smash(config, OVERFITTING), steps=40), topical_pairs()) == 1
