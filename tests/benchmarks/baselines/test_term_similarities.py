from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.baselines.term_similarities import K1, B, cosines, term_similarities

RNG = np.random.default_rng(0)
FIRST, SECOND = (RNG.poisson(0.8, (6, 9)).astype(np.float64) for _ in range(2))
FIRST[2] = 0
SECOND[3] = 0
FIRST[4] = SECOND[4] = 0
IDF = RNG.uniform(1, 4, 9)


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    lengths = math.sqrt(sum(x * x for x in a) * sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def by_hand(a: list[float], b: list[float], mean: float) -> list[float]:
    """The equations for one pair, term by term."""

    def bm25(text: list[float]) -> list[float]:
        norm = K1 * (1 - B + B * sum(text) / mean)
        return [idf * tf * (K1 + 1) / (tf + norm) for idf, tf in zip(IDF, text, strict=True)]

    held = {at for at, tf in enumerate(a) if tf}, {at for at, tf in enumerate(b) if tf}
    shared = len(held[0] & held[1])
    tf_idf = [[idf * tf for idf, tf in zip(IDF, text, strict=True)] for text in (a, b)]
    either, product = len(held[0] | held[1]), len(held[0]) * len(held[1])
    return [
        cosine(*tf_idf),
        cosine(a, b),
        cosine(bm25(a), bm25(b)),
        shared / either if either else 0.0,
        shared / math.sqrt(product) if product else 0.0,
    ]


def test_similarities_are_those_of_the_equations() -> None:
    lengths = [length for length in [*FIRST.sum(1), *SECOND.sum(1)] if length]
    mean = sum(lengths) / len(lengths)
    expected = [by_hand(a, b, mean) for a, b in zip(FIRST.tolist(), SECOND.tolist(), strict=True)]
    found = term_similarities(FIRST, SECOND, IDF)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (found[[2, 3, 4]] == 0).all() and (found[[0, 1, 5]] > 0).all()


def test_similarities_do_not_depend_on_which_text_is_first() -> None:
    np.testing.assert_array_equal(term_similarities(FIRST, SECOND, IDF), term_similarities(SECOND, FIRST, IDF))


def test_a_text_is_wholly_like_itself() -> None:
    np.testing.assert_allclose(term_similarities(FIRST[:1], FIRST[:1], IDF), [[1.0] * 5])


def test_cosines_of_rows_are_those_of_a_loop() -> None:
    expected = [[cosine(a, b) for b in FIRST.tolist()] for a in FIRST.tolist()]
    np.testing.assert_allclose(cosines(FIRST), expected, atol=1e-12)


def test_texts_without_terms_have_no_similarity() -> None:
    empty = np.zeros((2, 0))
    assert term_similarities(empty, empty, np.zeros(0)).tolist() == [[0.0] * 5] * 2
