from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.words.mixture import DividedMixture, Mixture, SectionShares

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
    of_sections = (contributions[:, None] * query)[:, :, None]
    shares = np.repeat(target[:, None, :], query.shape[1], axis=1)
    for _ in range(rounds):
        mass = passages + (of_sections * shares).sum(0)
        weighted = target[:, None, :] * mass**2
        norms = weighted.sum(2, keepdims=True)
        shares = np.divide(weighted, norms, out=np.zeros_like(weighted), where=norms > 0)
    return np.asarray(of_sections * shares)


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
def test_divided_sections_are_those_of_the_whole(seed: int, n_terms: int, n_query: int, n_target: int) -> None:
    query, target, contributions, passages = drawn(seed, n_terms, n_query, n_target)
    found = DividedMixture(rows(query), rows(target), contributions, passages.sum(1), n_target)
    whole = Mixture(rows(query), rows(target), contributions, passages)
    np.testing.assert_allclose(found.masses, (contributions[:, None] * query).sum(0), atol=1e-12)
    for i in range(n_query):
        np.testing.assert_allclose(found.divide(i, passages[i]), whole.masses[i], atol=1e-12)
        for j in range(n_target):
            for one, other in zip(found.of_pair(i, j), whole.of_pair(i, j), strict=True):
                np.testing.assert_allclose(one, other, atol=1e-12)


def test_a_term_goes_where_the_passages_are() -> None:
    half = np.array([[0.5, 0.5]])
    passages = np.array([[0.3, 0.0], [0.0, 0.0]])
    found = Mixture(rows(half), rows(half), np.array([0.1]), passages)
    np.testing.assert_allclose(found.masses.sum(1), [0.05, 0.05])
    assert found.masses[0, 0] > 0.0475
    assert found.masses[1].tolist() == pytest.approx([0.025, 0.025])


def test_texts_without_shared_terms_have_no_masses() -> None:
    nothing = SectionShares(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    found = Mixture(nothing, nothing, np.empty(0), np.full((2, 3), 0.1))
    assert found.masses.tolist() == np.zeros((2, 3)).tolist()
    assert [len(values) for values in found.of_pair(1, 2)] == [0, 0]
