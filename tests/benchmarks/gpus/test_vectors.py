from __future__ import annotations

import numpy as np
import pytest

import benchmarks.gpus.vectors as vectors_module
from benchmarks.gpus.vectors import Drawn, best_by_numpy, draw, exact_best
from benchmarks.vectors.collection import Law

LAW = Law(n_documents=30, n_chunks=8, width=16, n_topics=5)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    monkeypatch.setattr(vectors_module, "BLOCK_DOCUMENTS", 7)
    monkeypatch.setattr(vectors_module, "BLOCK_ROWS", 50)
    return draw(LAW, 3, "cpu", 1)


def test_rows_are_unit_halves_and_the_same_for_the_same_seed(drawn: Drawn) -> None:
    assert drawn.rows.shape == (240, 16) and drawn.rows.dtype == np.float16
    np.testing.assert_allclose(np.linalg.norm(drawn.rows.astype(np.float32), axis=1), 1, atol=1e-3)
    assert np.array_equal(drawn.queries.astype(np.float16), drawn.queries)
    assert np.array_equal(draw(LAW, 3, "cpu", 1).rows, drawn.rows)
    assert not np.array_equal(draw(LAW, 3, "cpu", 2).rows, drawn.rows)


def test_chunks_are_nearer_to_their_own_document_than_to_others(drawn: Drawn) -> None:
    table = drawn.rows.astype(np.float32) @ drawn.rows.astype(np.float32).T
    own = np.arange(240) // 8
    within = own[:, None] == own
    assert table[within & ~np.eye(240, dtype=bool)].mean() > table[~within].mean() + 0.2


def test_blocks_and_query_documents_join_to_all_rows(drawn: Drawn) -> None:
    blocks = list(drawn.blocks())
    assert np.concatenate([ids for ids, _ in blocks]).tolist() == list(range(240))
    assert np.array_equal(np.concatenate([rows for _, rows in blocks]), drawn.rows.astype(np.float32))
    assert [len(one) for one in drawn.query_documents()] == [8, 8, 8]


def test_the_best_rows_are_those_of_a_whole_product(drawn: Drawn) -> None:
    expected = np.argsort(-(drawn.queries @ drawn.rows.astype(np.float32).T), axis=1, kind="stable")[:, :9]
    assert np.array_equal(exact_best(drawn, 9, "cpu"), expected)
    assert np.array_equal(best_by_numpy(drawn, drawn.queries, 9), expected)
