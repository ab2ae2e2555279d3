"""Ranked lists are compared with plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.scoring.similarity import (
    RankedLists,
    best_by_document,
    first_places,
    merge,
    segment_max,
    with_rows,
)


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
