"""Best chunks against a loop over pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine.scoring.similarity as similarity_module
from engine.scoring.lists import top_documents
from engine.scoring.similarity import Matches, best_matches, join, nearest_documents

COUNTS = st.lists(st.integers(1, 5), min_size=1, max_size=6)


def whole_numbers(seed: int, *shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Products of them are exact, and often equal."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


@given(st.integers(0, 10_000), COUNTS)
def test_best_matches_equal_a_loop(seed: int, counts: list[int]) -> None:
    queries, vectors = whole_numbers(seed, 4, 3), whole_numbers(seed + 1, sum(counts), 3)
    starts = np.cumsum([0, *counts[:-1]])
    found = best_matches(queries, vectors, starts)
    for i, query in enumerate(queries):
        for t, (start, count) in enumerate(zip(starts, counts, strict=True)):
            cosines = [float(query @ vector) for vector in vectors[start : start + count]]
            assert found.similarities[i, t] == max(cosines)
            assert found.chunks[i, t] == cosines.index(max(cosines))


@given(st.integers(0, 10_000), COUNTS, st.integers(1, 8))
def test_nearest_documents_are_those_of_the_best_matches(seed: int, counts: list[int], length: int) -> None:
    queries, vectors = whole_numbers(seed, 4, 3), whole_numbers(seed + 1, sum(counts), 3)
    starts, positions = np.cumsum([0, *counts[:-1]]), 10 * np.arange(len(counts))
    found = nearest_documents(queries, vectors, starts, positions, length)
    expected = top_documents(best_matches(queries, vectors, starts).similarities, positions, length)
    assert np.array_equal(found.documents, expected.documents)
    assert np.array_equal(found.similarities, expected.similarities)


def test_blocks_of_queries_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, vectors, starts = whole_numbers(0, 7, 3), whole_numbers(1, 9, 3), np.array([0, 4, 5])
    matches, lists = (
        lambda: best_matches(queries, vectors, starts),
        lambda: nearest_documents(queries, vectors, starts, np.arange(3), 2),
    )
    whole, whole_lists = matches(), lists()
    monkeypatch.setattr(similarity_module, "QUERY_BLOCK", 2)
    assert np.array_equal(matches().similarities, whole.similarities)
    assert np.array_equal(matches().chunks, whole.chunks)
    assert np.array_equal(lists().documents, whole_lists.documents)
    assert np.array_equal(lists().similarities, whole_lists.similarities)


def test_targets_are_picked_and_joined_in_order() -> None:
    one = Matches(np.array([[0.5, 0.25]], np.float32), np.array([[3, 1]]))
    both = join([one.of(np.array([1, 0])), one])
    assert both.similarities.tolist() == [[0.25, 0.5, 0.5, 0.25]]
    assert both.chunks.tolist() == [[1, 3, 3, 1]]
