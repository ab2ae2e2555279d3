"""Best matches of chunks, and lists of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import engine.scoring.evidence as similarity_module
from engine.encoders.encoder import Vectors, unit
from engine.scoring.evidence import (
    Matches,
    RankedLists,
    best_by_document,
    best_chunks,
    best_matches,
    first_places,
    merge,
    no_matches,
    segment_max,
    with_rows,
)

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
    assert np.array_equal(best_chunks(queries, vectors, starts), found.similarities)
    for i, query in enumerate(queries):
        for t, (start, count) in enumerate(zip(starts, counts, strict=True)):
            cosines = [float(query @ vector) for vector in vectors[start : start + count]]
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


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, vectors, starts = whole_numbers(0, 7, 3), whole_numbers(1, 9, 3), np.array([0, 4, 5])
    whole = best_matches(queries, vectors, starts, np.full(7, -9.0))
    monkeypatch.setattr(similarity_module, "QUERY_BLOCK", 2)
    monkeypatch.setattr(similarity_module, "_PRODUCTS_AT_ONCE", 4)
    again = best_matches(queries, vectors, starts, np.full(7, -9.0))
    assert np.array_equal(again.similarities, whole.similarities)
    assert np.array_equal(again.chunks, whole.chunks)


def test_targets_are_picked_and_put_in_place() -> None:
    one = Matches(np.array([[0.5, 0.25]], np.float32), np.array([[3, 1]]))
    some = no_matches(1, 4)
    some.put(np.array([3, 0]), one.of(np.array([1, 0])))
    assert some.similarities.tolist() == [[0.5, 0, 0, 0.25]]
    assert some.chunks.tolist() == [[3, -1, -1, 1]]


def rows(lists: RankedLists) -> list[list[tuple[int, float]]]:
    return [
        [(int(document), float(similarity)) for document, similarity in zip(*row, strict=True) if document >= 0]
        for row in zip(lists.documents, lists.similarities, strict=True)
    ]


def table(seed: int, *shape: int) -> Vectors:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@given(st.integers(0, 10_000), st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_segment_max_equals_a_loop(seed: int, counts: list[int]) -> None:
    similarities = table(seed, 3, sum(counts))
    starts = np.cumsum([0, *counts[:-1]])
    by_hand = [[max(row[a : a + n]) for a, n in zip(starts, counts, strict=True)] for row in similarities]
    assert segment_max(similarities, starts).tolist() == np.array(by_hand).tolist()


def best_by_hand(positions: NDArray[np.int64], similarities: Vectors, length: int) -> list[list[tuple[int, float]]]:
    answer = []
    for at, row in enumerate(positions):
        best: dict[int, float] = {}
        for position, similarity in zip(row.tolist(), similarities[at].tolist(), strict=True):
            if position >= 0:
                best[position] = max(similarity, best.get(position, -np.inf))
        answer.append(sorted(best.items(), key=lambda pair: -pair[1])[:length])
    return answer


@given(st.integers(0, 10_000), st.integers(0, 20), st.integers(1, 8))
def test_best_by_document_equals_a_loop(seed: int, n_results: int, length: int) -> None:
    positions = np.random.default_rng(seed).integers(-1, 5, (3, n_results))
    similarities = table(seed, 3, n_results)
    found = best_by_document(positions, similarities, length)
    assert rows(found) == best_by_hand(positions, similarities, length)
    assert found.documents.shape == (3, length)


def test_positions_below_zero_are_ignored() -> None:
    found = best_by_document(np.array([[-1, 7]]), np.array([[0.9, -0.5]], np.float32), 2)
    assert found.documents.tolist() == [[7, -1]]
    assert found.similarities.tolist() == [[-0.5, -np.inf]]


@given(st.integers(0, 10_000), st.integers(0, 6), st.integers(0, 6), st.integers(1, 8))
def test_merge_keeps_the_best_of_both(seed: int, n_one: int, n_other: int, length: int) -> None:
    similarities = table(seed, 2, n_one + n_other)
    positions = np.broadcast_to(np.arange(n_one + n_other), similarities.shape)
    one = best_by_document(positions[:, :n_one], similarities[:, :n_one], 6)
    other = best_by_document(positions[:, n_one:], similarities[:, n_one:], 6)
    both = best_by_document(positions, similarities, length)
    assert rows(merge(one, other, length)) == rows(both)


def test_absent_documents_end_a_merged_row() -> None:
    one = RankedLists(np.array([[4, -1]]), np.array([[0.1, -np.inf]], np.float32))
    other = RankedLists(np.array([[2]]), np.array([[-0.3]], np.float32))
    assert merge(one, other, 3).documents.tolist() == [[4, 2, -1]]


@given(st.integers(0, 10_000), st.integers(0, 40), st.integers(1, 8))
def test_first_places_equal_a_loop(seed: int, n_results: int, length: int) -> None:
    documents = np.random.default_rng(seed).integers(-1, 9, (3, n_results))
    by_hand = np.zeros(documents.shape, bool)
    for row, column in np.ndindex(*documents.shape):
        before = {one for one in documents[row, :column].tolist() if one >= 0}
        one = int(documents[row, column])
        by_hand[row, column] = one >= 0 and one not in before and len(before) < length
    assert first_places(documents, length).tolist() == by_hand.tolist()


@pytest.mark.parametrize(("width", "other_width"), [(3, 3), (3, 2), (2, 3), (0, 2), (2, 0)])
def test_some_rows_are_taken_from_other_lists(width: int, other_width: int) -> None:
    rng = np.random.default_rng(width)
    lists = RankedLists(rng.integers(0, 9, (4, width)), rng.random((4, width), np.float32))
    others = RankedLists(rng.integers(10, 19, (2, other_width)), rng.random((2, other_width), np.float32))
    found = with_rows(lists, np.array([False, True, False, True]), others)
    longest = max(width, other_width)
    for row, (of, at) in enumerate([(lists, 0), (others, 0), (lists, 2), (others, 1)]):
        missing = longest - of.documents.shape[1]
        assert found.documents[row].tolist() == [*of.documents[at].tolist(), *[-1] * missing]
        assert found.similarities[row].tolist() == [*of.similarities[at].tolist(), *[-np.inf] * missing]
