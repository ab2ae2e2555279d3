from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks.baselines.keywords import content_words, keywords
from engine.errors import MissingExtra

SENTENCES = [
    "graph vertex edge graph path".split(),
    "vertex graph kernel".split(),
    "path tree".split(),
    "lonely".split(),
]


def ranks_by_hand(sentences: list[list[str]], window: int) -> dict[str, float]:
    """The equation as a linear system."""
    words = sorted({word for sentence in sentences for word in sentence})
    joined = np.zeros((len(words), len(words)))
    for sentence in sentences:
        for at, word in enumerate(sentence):
            for other in sentence[at + 1 : at + window]:
                if other != word:
                    joined[words.index(word), words.index(other)] = joined[words.index(other), words.index(word)] = 1
    degree = joined.sum(0)
    share = np.divide(joined, degree, out=np.full_like(joined, 1 / len(words)), where=degree > 0)
    start = np.full(len(words), 0.15 / len(words))
    return dict(zip(words, np.linalg.solve(np.eye(len(words)) - 0.85 * share, start), strict=True))


def test_keywords_are_those_of_the_highest_pagerank() -> None:
    ranks = ranks_by_hand(SENTENCES, 5)
    expected = sorted(ranks, key=lambda word: (-round(ranks[word], 6), word))
    assert keywords(SENTENCES, 100) == expected
    assert keywords(SENTENCES, 2) == expected[:2] == ["path", "graph"]


def test_words_of_equal_rank_are_in_the_order_of_their_names() -> None:
    assert keywords([["cat", "ant"], ["bee", "dog"]], 3) == ["ant", "bee", "cat"]


def test_words_far_apart_are_not_joined() -> None:
    sentence = [f"word{letter}" for letter in "abcdefghi"]
    near, far = (ranks_by_hand([sentence], window) for window in (5, 9))
    order = keywords([sentence], 9)
    assert order == sorted(near, key=lambda word: (-round(near[word], 6), word))
    assert order != sorted(far, key=lambda word: (-round(far[word], 6), word))


def test_a_text_without_words_has_no_keywords() -> None:
    assert keywords([], 5) == keywords([[], []], 5) == []


def test_stop_words_digits_and_letters_are_no_content() -> None:
    assert content_words([["the", "graph", "x", "b2", "of"], ["and"]]) == [["graph"], []]


def test_a_missing_networkx_is_reported_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtra, match=r"TextRank needs networkx; install it: .* 'longmatch\[baselines\]'$"):
        keywords(SENTENCES, 2)
