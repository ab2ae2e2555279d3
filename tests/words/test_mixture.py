from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.words.mixture import ROUNDS, DividedMixture, Mixture, SectionShares

Matrix = NDArray[np.float64]


def drawn(seed: int, n_terms: int, n_query: int, n_target: int) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Shares (T, A) and (T, B) with many zeros, contributions (T,), and passages (A, B) with many zeros."""
    rng = np.random.default_rng(seed)

    def shares(n_sections: int) -> Matrix:
        counts = rng.integers(0, 3, (n_terms, n_sections)) * rng.integers(1, 9, (n_terms, n_sections))
        counts[np.arange(n_terms), rng.integers(0, n_sections, n_terms)] += 1
        return np.asarray(counts / counts.sum(1, keepdims=True))

    passages = np.maximum(0, rng.uniform(-0.2, 0.1, (n_query, n_target)))
    return shares(n_query), shares(n_target), rng.uniform(0.001, 0.1, n_terms), passages


def rows(shares: Matrix) -> SectionShares:
    terms, sections = np.nonzero(shares)
    return SectionShares(terms, sections, shares[terms, sections])


def by_hand(query: Matrix, target: Matrix, contributions: Matrix, passages: Matrix, rounds: int) -> Matrix:
    """(T, A, B) the contribution of each term to each pair, by the equations of the module."""
    first = query[:, :, None] * target[:, None, :]
    shares = first
    for _ in range(rounds):
        mass = passages + (shares * contributions[:, None, None]).sum(0)
        shares = first * mass / (first * mass).sum((1, 2), keepdims=True)
    return np.asarray(shares * contributions[:, None, None])


@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5), st.integers(0, 6))
def test_contributions_follow_the_equations(seed: int, n_terms: int, n_query: int, n_target: int, rounds: int) -> None:
    query, target, contributions, passages = drawn(seed, n_terms, n_query, n_target)
    expected = by_hand(query, target, contributions, passages, rounds)
    found = Mixture(rows(query), rows(target), contributions, passages, rounds)
    np.testing.assert_allclose(found.masses, expected.sum(0), atol=1e-12)
    for i, j in np.ndindex(passages.shape):
        terms, of_pair = found.of_pair(i, j)
        np.testing.assert_allclose(np.bincount(terms, of_pair, minlength=n_terms), expected[:, i, j], atol=1e-12)


@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5))
def test_divided_sections_sum_to_all_contributions(seed: int, n_terms: int, n_query: int, n_target: int) -> None:
    query, target, contributions, passages = drawn(seed, n_terms, n_query, n_target)
    found = DividedMixture(rows(query), rows(target), contributions, passages.sum(1), n_target)
    assert found.masses.sum() == pytest.approx(contributions.sum())
    of_section = by_hand(query, np.ones((n_terms, 1)), contributions, passages.sum(1)[:, None], ROUNDS)[:, :, 0]
    for i in range(n_query):
        own = np.flatnonzero(of_section[:, i])
        expected = by_hand(np.ones((len(own), 1)), target[own], of_section[own, i], passages[[i]], ROUNDS)[:, 0]
        np.testing.assert_allclose(found.divide(i, passages[i]), expected.sum(0), atol=1e-12)
        for j in range(n_target):
            terms, of_pair = found.of_pair(i, j)
            of_terms = np.bincount(terms, of_pair, minlength=n_terms)
            np.testing.assert_allclose(of_terms[own], expected[:, j], atol=1e-12)


def test_a_term_goes_where_the_passages_are() -> None:
    half = np.array([[0.5, 0.5]])
    passages = np.array([[0.3, 0.0], [0.0, 0.0]])
    found = Mixture(rows(half), rows(half), np.array([0.1]), passages)
    assert found.masses.sum() == pytest.approx(0.1)
    assert found.masses[0, 0] > 0.095


def test_texts_without_shared_terms_have_no_masses() -> None:
    nothing = SectionShares(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    found = Mixture(nothing, nothing, np.empty(0), np.full((2, 3), 0.1))
    assert found.masses.tolist() == np.zeros((2, 3)).tolist()
    assert [len(values) for values in found.of_pair(1, 2)] == [0, 0]
