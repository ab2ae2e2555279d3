from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from benchmarks.baselines.han import Han, HanConfig, han
from benchmarks.baselines.pair_model import n_parameters
from benchmarks.baselines.word_inputs import DocumentWords
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


def read_by_hand(model: Han, document: DocumentWords) -> Tensor:
    """One sentence at a time, then the sentences."""
    words = model.embedding(torch.from_numpy(document.ids))
    sentences = [model.words(part, torch.tensor([len(part)])) for part in words.split(document.sentences.tolist())]
    whole: Tensor = model.sentences(torch.cat(sentences), torch.tensor([len(sentences)]))[0]
    return whole


def test_vectors_do_not_depend_on_what_stands_beside_them() -> None:
    torch.manual_seed(0)
    model = Han(HanConfig(width=6, attention_width=5), random_table(width=5))
    documents = [random_words(seed, n_words=length) for seed, length in enumerate((1, 9, 33))]
    expected = torch.stack([read_by_hand(model, document) for document in documents])
    torch.testing.assert_close(model.encode(documents), expected, atol=1e-5, rtol=1e-5)


def test_it_has_the_layers_of_the_paper() -> None:
    model = Han(HanConfig(), random_table(width=200).requires_grad_(False))
    words = 2 * 3 * 50 * (200 + 50 + 2)  # torch's GRU has two biases a gate
    sentences = 2 * 3 * 50 * (100 + 50 + 2)
    attention = 100 * 100 + 100 + 100
    assert n_parameters(model) == words + sentences + 2 * attention + 2
    assert model.encode([random_words(0, n_words=30)]).shape == (1, 100)


def test_it_learns_pairs_by_heart_and_does_not_mind_their_order() -> None:
    config = HanConfig(TINY_WORDS, width=8, attention_width=8)
    scorer, pairs = fitted(han(config, OVERFITTING), steps=40), topical_pairs()
    assert share_right(scorer, pairs) == 1
    np.testing.assert_allclose(scorer.score(pairs), scorer.score(turned(pairs)), atol=1e-5)
