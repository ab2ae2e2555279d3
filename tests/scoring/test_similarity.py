"""Best matches of chunks in documents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine.scoring.evidence as similarity_module
from engine.encoders.encoder import Vectors, unit
from engine.scoring.evidence import Matches, best_chunks, best_matches, no_matches, segment_max

COUNTS = st.lists(st.integers(1, 5), min_size=1, max_size=6)
LOW = np.full(4, -100.0)


def whole_numbers(seed: int, *shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Whole numbers, whose products are exact and often equal."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


@given(st.integers(0, 10_000), COUNTS)
def test_best_matches_equal_a_loop(seed: int, counts: list[int]) -> None:
    queries, vectors = whole_numbers(seed, 4, 3), whole_numbers(seed + 1, sum(counts), 3)
    starts = np.cumsum([0, *counts[:-1]])
    found = best_matches(queries, vectors, starts, LOW)
    best, openings = best_chunks(queries, vectors, starts)
    assert np.array_equal(best, found.similarities) and np.array_equal(openings, found.openings)
    for i, query in enumerate(queries):
        for t, (start, count) in enumerate(zip(starts, counts, strict=True)):
            cosines = [float(query @ vector) for vector in vectors[start : start + count]]
            assert found.openings[i, t] == cosines[0]
            assert found.similarities[i, t] == max(cosines)
            assert found.chunks[i, t] == cosines.index(max(cosines))


def test_below_the_floor_no_chunk_is_given() -> None:
    queries, vectors = np.eye(2, dtype=np.float32), np.array([[0.5, 0.25], [1.0, 0.0]], np.float32)
    found = best_matches(queries, vectors, np.array([0, 1]), np.array([0.75, 0.0]))
    assert found.chunks.tolist() == [[-1, 0], [0, 0]]
    assert found.similarities.tolist() == [[0.5, 1.0], [0.25, 0.0]]


@pytest.mark.parametrize("beside", [0, 1, 37, 500])
def test_similarities_do_not_depend_on_vectors_that_are_multiplied_at_the_same_time(beside: int) -> None:
    rng = np.random.default_rng(0)
    rows = unit(rng.standard_normal((60 + beside, 384)).astype(np.float32))
    queries, starts = unit(rows[:7] + rows[7:14]), np.arange(0, 60 + beside, 3)
    alone = best_matches(queries, rows[:60], starts[:20], np.zeros(7))
    together = best_matches(queries, rows, starts, np.zeros(7)).of(np.arange(20))
    above = alone.chunks >= 0
    assert np.array_equal(alone.chunks, together.chunks)
    assert np.array_equal(alone.similarities[above], together.similarities[above])
    exact = (queries.astype(np.float64) @ rows[:60].astype(np.float64).T).astype(np.float32)
    assert np.array_equal(alone.similarities[above], np.maximum.reduceat(exact, starts[:20], axis=1)[above])
    assert np.array_equal(alone.openings[above], exact[:, starts[:20]][above])


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, vectors, starts = whole_numbers(0, 7, 3), whole_numbers(1, 9, 3), np.array([0, 4, 5])
    whole = best_matches(queries, vectors, starts, np.full(7, -9.0))
    monkeypatch.setattr(similarity_module, "QUERY_BLOCK", 2)
    monkeypatch.setattr(similarity_module, "_PRODUCTS_AT_ONCE", 4)
    again = best_matches(queries, vectors, starts, np.full(7, -9.0))
    assert np.array_equal(again.similarities, whole.similarities)
    assert np.array_equal(again.chunks, whole.chunks) and np.array_equal(again.openings, whole.openings)


def test_targets_are_picked_and_put_in_place() -> None:
    one = Matches(np.array([[0.5, 0.25]], np.float32), np.array([[0.1, 0.2]], np.float32), np.array([[3, 1]]))
    some = no_matches(1, 4)
    some.put(np.array([3, 0]), one.of(np.array([1, 0])))
    assert some.similarities.tolist() == [[0.5, 0, 0, 0.25]]
    assert some.chunks.tolist() == [[3, -1, -1, 1]] and some.openings[0].tolist() == pytest.approx([0.1, 0, 0, 0.2])


def table(seed: int, *shape: int) -> Vectors:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@given(st.integers(0, 10_000), st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_segment_max_equals_a_loop(seed: int, counts: list[int]) -> None:
    similarities = table(seed, 3, sum(counts))
    starts = np.cumsum([0, *counts[:-1]])
    by_hand = [[max(row[a : a + n]) for a, n in zip(starts, counts, strict=True)] for row in similarities]
    assert segment_max(similarities, starts).tolist() == np.array(by_hand).tolist()
