"""Projections are compared with the principal components of a full decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from engine.plots import Points, TermRows, project_terms, project_vectors, term_rows
from engine.words.counts import TermTable, count_words
from engine.words.likelihood import TermStatistics, collect
from engine.words.segmenter import segmenter_of
from tests.fakes import make_corpus


def components(rows: Points) -> tuple[Points, tuple[float, float]]:
    """The scores on the two largest singular vectors of the centred rows, each axis up to its sign."""
    centred = rows - rows.mean(0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    shares = values**2 / (values**2).sum()
    return left[:, :2] * values[:2], (float(shares[0]), float(shares[1]))


def words_of(n_documents: int) -> tuple[TermTable, TermStatistics]:
    texts = [document.text for document in make_corpus(n_documents)]
    tables = count_words(segmenter_of("english"), texts)
    return tables.words, collect([tables]).words


def assert_same_axes(points: Points, expected: Points) -> None:
    for found, other in zip(points.T, expected.T, strict=True):
        sign = np.sign(found @ other)
        np.testing.assert_allclose(found, sign * other, atol=1e-6)


def test_vectors_are_projected_on_their_principal_components() -> None:
    rows = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32) * np.arange(8, 0, -1, dtype=np.float32)
    found, (points, shares) = project_vectors(rows), components(rows.astype(np.float64))
    assert_same_axes(found.points, points)
    assert found.shares == pytest.approx(shares)


def test_words_are_projected_on_their_principal_components() -> None:
    rows = term_rows(*words_of(60))
    found, (points, shares) = project_terms(rows), components(rows.dense())
    assert found.shares == pytest.approx(shares, rel=1e-3)
    for mine, other in zip(found.points.T, points.T, strict=True):
        assert abs(np.corrcoef(mine, other)[0, 1]) > 0.999


def test_a_document_of_the_map_is_placed_on_its_own_point() -> None:
    vectors = np.random.default_rng(1).standard_normal((30, 6)).astype(np.float32)
    of_vectors = project_vectors(vectors)
    np.testing.assert_allclose(of_vectors.place(vectors.astype(np.float64)), of_vectors.points, atol=1e-9)
    table, statistics = words_of(30)
    rows = term_rows(table, statistics)
    of_words = project_terms(rows)
    again = term_rows(table.of(np.array([7])), statistics, rows.terms).dense()
    np.testing.assert_allclose(of_words.place(again), of_words.points[7:8], atol=1e-9)


def test_weights_are_those_of_the_score_in_unit_rows() -> None:
    table, statistics = words_of(8)
    rows = term_rows(table, statistics)
    dense = rows.dense()
    first = {
        int(t): int(n) for t, n in zip(table.terms[: table.starts[1]], table.counts[: table.starts[1]], strict=True)
    }
    length = sum(first.values())
    expected = np.zeros(len(rows.terms))
    for column, term in enumerate(rows.terms.tolist()):
        if term in first:
            p = float(statistics.probabilities(np.array([term], np.uint32))[0])
            expected[column] = np.log1p(0.05 * first[term] / (length * p))
    np.testing.assert_allclose(dense[0], expected / np.linalg.norm(expected))
    np.testing.assert_allclose(np.linalg.norm(dense, axis=1), 1.0)


def test_products_equal_those_of_the_dense_matrix() -> None:
    rows = term_rows(*words_of(12))
    dense, random = rows.dense(), np.random.default_rng(0)
    right, left = random.standard_normal((len(rows.terms), 3)), random.standard_normal((12, 3))
    np.testing.assert_allclose(rows.times(right), dense @ right, atol=1e-12)
    np.testing.assert_allclose(rows.transposed_times(left), dense.T @ left, atol=1e-12)


def table_of(*documents: list[int]) -> TermTable:
    starts = np.cumsum([0, *map(len, documents)])
    terms = np.array([term for document in documents for term in document], np.uint32)
    return TermTable(terms, np.ones(len(terms), np.uint16), starts, np.diff(starts).astype(np.uint32))


def test_terms_of_a_single_document_are_left_out() -> None:
    statistics = TermStatistics(np.array([1, 2, 3], np.uint32), np.full(3, 2, np.uint32), 9)
    assert term_rows(table_of([1, 2], [2, 3], [3, 4]), statistics).terms.tolist() == [2, 3]


def test_the_lightest_terms_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.plots.MOST_TERMS", 1)
    statistics = TermStatistics(np.array([1, 2], np.uint32), np.array([200, 2], np.uint32), 999)
    assert term_rows(table_of([1, 2], [1, 2]), statistics).terms.tolist() == [2]


def test_the_larger_side_of_an_axis_is_positive() -> None:
    rows = np.random.default_rng(2).standard_normal((20, 4)).astype(np.float32)
    np.testing.assert_allclose(project_vectors(rows).points, project_vectors(rows[::-1]).points[::-1], atol=1e-9)


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_few_documents_have_points(n_rows: int) -> None:
    vectors = project_vectors(np.eye(3, dtype=np.float32)[:n_rows])
    empty = np.empty(0, np.int64)
    words = project_terms(TermRows(np.empty(0, np.uint32), empty, empty, np.empty(0), n_rows))
    for found in (vectors, words):
        assert found.points.shape == (n_rows, 2) and np.isfinite(found.points).all()
        assert all(0 <= share <= 1 + 1e-9 for share in found.shares)


def test_a_query_that_shares_no_term_is_placed() -> None:
    table, statistics = words_of(10)
    rows = term_rows(table, statistics)
    alone = term_rows(table_of([123456789]), statistics, rows.terms)
    assert np.isfinite(project_terms(rows).place(alone.dense())).all()
