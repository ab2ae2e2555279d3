"""The nearest documents compared with sorting all cosines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.encoders.encoder import unit
from engine.store.document_index import DocumentIndex


def halves(n_documents: int, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.float16]]:
    return unit(np.random.default_rng(seed).standard_normal((n_documents, 24)).astype(np.float32)).astype(np.float16)


@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 70), st.sampled_from([1.0, 0.5, 0.1, 0.0]))
def test_the_nearest_are_those_of_sorting_all(seed: int, n_documents: int, length: int, share: float) -> None:
    rows = halves(n_documents, seed)
    rng = np.random.default_rng(seed)
    allowed, query = rng.random(n_documents) < share, rng.standard_normal(24).astype(np.float32)
    found = DocumentIndex(rows).nearest(query, allowed, length)
    cosines = rows.astype(np.float32) @ query
    by_hand = sorted(np.flatnonzero(allowed).tolist(), key=lambda position: -cosines[position])[:length]
    assert found.documents.tolist() == [by_hand]
    np.testing.assert_allclose(found.similarities[0], cosines[by_hand], atol=1e-6)


def test_equal_documents_stand_in_the_order_of_positions() -> None:
    rows = np.repeat(halves(1), 9, axis=0)
    found = DocumentIndex(rows).nearest(rows[0].astype(np.float32), np.arange(9) % 2 == 1, 9)
    assert found.documents.tolist() == [[1, 3, 5, 7]]


def test_cosines_of_some_documents_are_those_of_their_rows() -> None:
    rows, query = halves(20), halves(1, seed=3)[0].astype(np.float32)
    at = np.array([7, 0, 7, 19])
    assert DocumentIndex(rows).similarities(query, at) == pytest.approx(rows[at].astype(np.float32) @ query)


def test_the_rows_that_faiss_holds_are_the_rows_given() -> None:
    rows = halves(50)
    assert np.array_equal(DocumentIndex(rows.copy()).rows, rows)


def test_an_index_of_no_document_has_an_empty_list() -> None:
    assert DocumentIndex(halves(0)).nearest(np.ones(24, np.float32), np.zeros(0, bool), 5).documents.shape == (1, 0)
