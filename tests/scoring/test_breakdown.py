"""A score taken apart adds up again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.document import Chunk, Span
from engine.encoders.encoder import Vectors
from engine.scoring.breakdown import break_down
from engine.scoring.evidence import Scoring, Thresholds, chunk_weights, exact_scores, thresholds
from engine.scoring.similarity import Matches, join


def chunks_of(n_chunks: int) -> list[Chunk]:
    return [Chunk(number // 2, 10 * number, 10 * number + 8, number + 1) for number in range(n_chunks)]


def spans_of(n_chunks: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    return np.array([[number // 3, 5 * number, 5 * number + 4, 2] for number in range(n_chunks)], np.int32)


def matches(similarities: Vectors) -> Matches:
    """Best chunks of one target, from the cosines (I, C) of all."""
    return Matches(similarities.max(axis=1, keepdims=True), similarities.argmax(axis=1)[:, None])


def whole(similarity: float) -> Vectors:
    return np.array([similarity], np.float32)


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 9), st.sampled_from([0.0, 0.05, 1.0]))
def test_the_parts_sum_to_the_exact_score(seed: int, n_query: int, n_target: int, weight: float) -> None:
    rng = np.random.default_rng(seed)
    scoring = Scoring(document_weight=weight)
    similarities = rng.uniform(-0.5, 1, (n_query, n_target)).astype(np.float32)
    theta = rng.uniform(0, 1, n_query).astype(np.float32)
    query = chunks_of(n_query)
    limits = thresholds(theta, 0.3, chunk_weights(np.array([chunk.n_tokens for chunk in query])), scoring)
    (breakdown,) = break_down(query, [spans_of(n_target)], matches(similarities), whole(0.8), limits, scoring)
    best = similarities.max(axis=1, keepdims=True)
    expected = exact_scores(best, np.array([0.8], np.float32), limits, scoring)[0]
    assert abs(breakdown.score - expected) < 1e-7  # the document's cosine is rounded to float32 on one side
    summed = sum(pair.contribution for pair in breakdown.pairs) + breakdown.document.contribution
    assert abs(breakdown.score - summed) < 1e-9
    assert 0 <= breakdown.score <= 1 + 1e-12


def test_each_part_goes_to_the_pair_of_its_best_match() -> None:
    similarities = np.array([[0.1, 0.2, 0.3, 0.9], [0.8, 0.1, 0.1, 0.1], [0.7, 0.6, 0.5, 0.4]], np.float32)
    limits = Thresholds(np.array([0.5, 0.5, 0.8], np.float32), 0.0, np.array([0.5, 0.3, 0.2]))
    (broken,) = break_down(chunks_of(3), [spans_of(4)], matches(similarities), whole(0.0), limits, Scoring())
    pairs = broken.pairs
    assert [(pair.query_section, pair.target_section) for pair in pairs] == [(0, 1), (0, 0)]
    assert [(part.query, part.target) for pair in pairs for part in pair.parts] == [
        (Span(0, 8), Span(15, 19)),
        (Span(10, 18), Span(0, 4)),
    ]
    np.testing.assert_allclose([pair.contribution for pair in pairs], [0.5 * 0.8**2, 0.3 * 0.6**2], rtol=1e-6)


def test_a_part_shows_the_numbers_its_contribution_is_made_of() -> None:
    limits = Thresholds(np.array([0.5], np.float32), 0.25, np.array([0.75]))
    similarities = np.array([[0.75]], np.float32)
    (breakdown,) = break_down(chunks_of(1), [spans_of(1)], matches(similarities), whole(0.625), limits, Scoring())
    part = breakdown.pairs[0].parts[0]
    assert (part.similarity, part.theta, part.weight, part.contribution) == (0.75, 0.5, 0.75, 0.75 * 0.25)
    rest = breakdown.document
    assert (rest.similarity, rest.theta, rest.weight, rest.contribution) == (0.625, 0.25, 0.08, 0.08 * 0.25)


def test_parts_and_pairs_come_strongest_first() -> None:
    similarities = np.array([[0.6, 0, 0, 0], [0.9, 0, 0, 0], [0, 0, 0, 0.95], [0.7, 0, 0, 0]], np.float32)
    limits = Thresholds(np.zeros(4, np.float32), 0.0, np.full(4, 0.2))
    (broken,) = break_down(chunks_of(4), [spans_of(4)], matches(similarities), whole(0.0), limits, Scoring())
    pairs = broken.pairs
    assert [(pair.query_section, pair.target_section) for pair in pairs] == [(0, 0), (1, 1), (1, 0)]
    assert [part.similarity for part in pairs[0].parts] == [np.float32(0.9), np.float32(0.6)]


def test_of_equal_matches_the_first_in_reading_order_is_shown() -> None:
    limits = Thresholds(np.zeros(1, np.float32), 0.0, np.ones(1))
    similarities = np.full((1, 3), 0.5, np.float32)
    (breakdown,) = break_down(chunks_of(1), [spans_of(3)], matches(similarities), whole(0.0), limits, Scoring())
    assert breakdown.pairs[0].parts[0].target == Span(0, 4)


def test_several_targets_are_taken_apart_as_each_alone() -> None:
    rng = np.random.default_rng(0)
    tables = [rng.uniform(-0.5, 1, (5, n_chunks)).astype(np.float32) for n_chunks in (1, 4, 9)]
    limits = Thresholds(rng.uniform(0, 0.5, 5).astype(np.float32), 0.2, np.full(5, 0.2))
    spans, similarities = [spans_of(table.shape[1]) for table in tables], np.array([0.1, 0.5, 0.9], np.float32)
    alone = [
        break_down(chunks_of(5), [spans[number]], matches(table), similarities[[number]], limits, Scoring())[0]
        for number, table in enumerate(tables)
    ]
    best = join([matches(table) for table in tables])
    assert break_down(chunks_of(5), spans, best, similarities, limits, Scoring()) == alone
