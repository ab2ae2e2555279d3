"""Projections are compared with the principal components of a full decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from engine.plots import Points, common_terms, project_vectors, term_rows
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


def test_vectors_are_projected_on_their_principal_components_and_the_larger_side_is_positive() -> None:
    rows = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32) * np.arange(8, 0, -1, dtype=np.float32)
    found, (points, shares) = project_vectors(rows), components(rows.astype(np.float64))
    assert_same_axes(found.points, points)
    assert found.shares == pytest.approx(shares)
    rows = np.random.default_rng(2).standard_normal((20, 4)).astype(np.float32)
    np.testing.assert_allclose(project_vectors(rows).points, project_vectors(rows[::-1]).points[::-1], atol=1e-9)


def weights_by_hand(table: TermTable, statistics: TermStatistics, terms: list[int]) -> Points:
    """(N, V) unit rows of the weights of the score."""
    rows = np.zeros((table.n_documents, len(terms)))
    for row in range(table.n_documents):
        own = range(int(table.starts[row]), int(table.starts[row + 1]))
        length = sum(int(table.counts[at]) for at in own)
        for at in own:
            if int(table.terms[at]) in terms:
                p = float(statistics.probabilities(table.terms[at : at + 1])[0])
                rows[row, terms.index(int(table.terms[at]))] = np.log1p(0.05 * int(table.counts[at]) / (length * p))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_products_of_hashed_rows_are_nearly_those_of_the_weights_of_the_score() -> None:
    table, statistics = words_of(12)
    terms = common_terms(table)
    expected, rows = weights_by_hand(table, statistics, terms.tolist()), term_rows(table, statistics, terms)
    assert np.abs(rows @ rows.T - expected @ expected.T).mean() < 0.03
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)


def test_a_document_of_the_map_is_placed_on_its_own_point() -> None:
    table, statistics = words_of(30)
    terms = common_terms(table)
    rows = term_rows(table, statistics, terms)
    projection = project_vectors(rows)
    again = term_rows(table.of(np.array([7])), statistics, terms)
    np.testing.assert_allclose(projection.place(again.astype(np.float64)), projection.points[7:8], atol=1e-6)


def table_of(*documents: list[int]) -> TermTable:
    starts = np.cumsum([0, *map(len, documents)])
    terms = np.array([term for document in documents for term in document], np.uint32)
    return TermTable(terms, np.ones(len(terms), np.uint16), starts, np.diff(starts).astype(np.uint32))


def test_terms_of_one_document_are_left_out_and_documents_that_share_none_have_rows_of_zeros() -> None:
    assert common_terms(table_of([1, 2], [2, 3], [3, 4])).tolist() == [2, 3]
    table, statistics = words_of(10)
    alone = term_rows(table_of([123456789], []), statistics, common_terms(table))
    assert alone.shape[0] == 2 and not alone.any()


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_few_documents_have_points(n_rows: int) -> None:
    found = project_vectors(np.eye(3, dtype=np.float32)[:n_rows])
    assert found.points.shape == (n_rows, 2) and np.isfinite(found.points).all()
    assert all(0 <= share <= 1 + 1e-9 for share in found.shares)
