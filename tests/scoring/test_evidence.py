"""Similarities, and evidence above thresholds."""

from dataclasses import replace
from statistics import correlation

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import engine.scoring.evidence as similarity_module
from engine.encoders.encoder import Vectors, unit
from engine.errors import QueryError
from engine.scoring.evidence import (
    Components,
    Matches,
    Scoring,
    Thresholds,
    best_chunks,
    best_matches,
    chunk_component,
    chunk_weights,
    combine,
    join,
    margins,
    no_matches,
    opening_shares,
    own_similarities,
    reference_threshold,
    thresholds,
)


def theta_by_hand(similarities: Vectors, exceeding: int) -> list[float]:
    """Similarity of the (m+1)-th best document of the reference, m at most a fifth of it; 0 where m is 0."""
    m = min(exceeding, similarities.shape[1] // 5)
    return [min(1.0, max(0.0, sorted(map(float, row), reverse=True)[m])) if m else 0.0 for row in similarities]


def chunks_by_hand(
    both: tuple[Vectors, Vectors],
    limits: tuple[list[float], list[float], Vectors, Vectors],
    n_tokens: list[int],
    given: Scoring,
) -> list[float]:
    """The chunk component of each document, from the best matches and the similarities to openings, (I, N) both."""
    best, openings = both
    answer = []
    for t in range(best.shape[1]):
        above = below = 0.0
        for i, (tokens, theta, phi, own, a) in enumerate(zip(n_tokens, *limits, strict=True)):
            whole = tokens**0.5 * (1 - theta) ** given.power
            passage = max(0.0, min(1.0, float(best[i, t])) - theta) / (1 - theta or 1)
            joined = (1 - a) * min(1.0, float(best[i, t])) + a * float(openings[i, t])
            margin = min(1.0, max(0.0, (joined - phi) / max(0.01, own - phi)), 3 * passage)
            margin = max(margin, passage * min(1.0, max(0.0, passage / 0.4 - 1)))
            above += whole * (margin if a and own - phi > 0.01 else passage) ** given.power
            below += whole
        answer.append(above / below if below else 0.0)
    return answer


@given(
    st.integers(0, 10_000),
    st.integers(1, 60),
    st.lists(st.integers(1, 126), min_size=1, max_size=6),
    st.integers(1, 6),
    st.sampled_from([0.5, 1.0, 2.0, 3.0]),
    st.sampled_from([(0.0, 0.0), (0.4, 0.4), (0.0, 0.4)]),
)
def test_the_chunk_component_equals_the_equation(
    seed: int, n_documents: int, n_tokens: list[int], exceeding: int, power: float, shares: tuple[float, float]
) -> None:
    rng = np.random.default_rng(seed)
    scoring = Scoring(exceeding=exceeding, power=power)
    shape = len(n_tokens), n_documents
    best, openings, reference, other = (rng.uniform(-0.2, 1, shape).astype(np.float32) for _ in range(4))
    theta, phi = (reference_threshold(similarities, exceeding) for similarities in (reference, other))
    own = rng.uniform(0.2, 1, len(n_tokens)).astype(np.float32)
    opening = rng.choice(np.array(shares, np.float32), len(n_tokens))
    limits = thresholds(theta, phi, own, opening, chunk_weights(np.array(n_tokens)), scoring)
    expected = theta_by_hand(reference, exceeding), theta_by_hand(other, exceeding), own, opening
    np.testing.assert_allclose(theta, expected[0], atol=1e-7)
    found = chunk_component(best, openings, limits, scoring)
    np.testing.assert_allclose(found, chunks_by_hand((best, openings), expected, n_tokens, scoring), atol=2e-5)
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()


def limits_of(theta: Vectors, weights: NDArray[np.float64]) -> Thresholds:
    zeros, ones = np.zeros_like(theta), np.ones_like(theta)
    return thresholds(theta, zeros, ones, 0.4 * ones, weights, Scoring())


def test_similarities_that_most_of_the_reference_has_contribute_nothing() -> None:
    theta = reference_threshold(np.full((1, 20), 0.9, np.float32), 4)
    best = np.array([[0.9, 0.9 + 1e-7, 0.95]], np.float32)
    found = chunk_component(best, np.ones_like(best), limits_of(theta, np.ones(1)), Scoring())
    assert found[:2].tolist() == [0.0, 0.0] and found[2] > 0
    every = np.ones((2, 1), np.float32)
    assert chunk_component(every, every, limits_of(every[:, 0], np.ones(2)), Scoring()).tolist() == [0.0]


@pytest.mark.parametrize(("n", "n_above"), [(4, None), (5, 1), (14, 2), (20, 4), (100, 4)])
def test_a_small_reference_has_fewer_documents_above_and_a_tiny_one_no_threshold(n: int, n_above: int | None) -> None:
    similarities = np.linspace(0.1, 0.9, n, dtype=np.float32)[None]
    (theta,) = reference_threshold(similarities, 4)
    assert theta == (0 if n_above is None else similarities[0, -1 - n_above])


def test_openings_do_not_count_where_those_of_most_documents_are_as_near_as_the_own() -> None:
    zero, own = np.zeros(1, np.float32), np.full(1, 0.505, np.float32)
    limits = thresholds(zero, own - np.float32(0.005), own, zero + 0.4, np.ones(1), Scoring())
    found = margins(np.array([[0.2, 1.0]]), np.array([[1.0, 0.0]]), limits, Scoring())
    assert found[0].tolist() == pytest.approx([0.04, 1])


def test_a_chunk_weighs_the_root_of_its_tokens_and_contributes_its_weight_at_full_similarity() -> None:
    assert chunk_weights(np.array([0, 1, 4, 100])).tolist() == [1.0, 1.0, 2.0, 10.0]
    limits = limits_of(np.array([0.3, 0.9], np.float32), chunk_weights(np.array([4, 100])))
    assert limits.weights.sum() == pytest.approx(1, abs=1e-12)
    best = np.array([[1.0], [0.0]], np.float32)
    found = chunk_component(best, best, limits, Scoring())
    assert found[0] == pytest.approx(limits.weights[0])


def test_a_margin_is_zero_below_the_threshold_and_one_at_full_similarity() -> None:
    best = np.array([[-np.inf, 0.2, 0.6, 1.0, 1.001]])
    limits = replace(limits_of(np.full(1, 0.2, np.float32), np.ones(1)), opening=np.zeros(1, np.float32))
    found = margins(best, np.zeros_like(best), limits, Scoring())
    assert found[0].tolist() == pytest.approx([0, 0, 0.25, 1, 1])


def test_an_opening_strengthens_a_passage_up_to_three_times_and_is_no_match_by_itself() -> None:
    zero, half = np.zeros(1, np.float32), np.full(1, 0.5, np.float32)
    limits = thresholds(half, half, zero + 1, zero + 0.4, np.ones(1), Scoring())
    best, openings = np.array([[0.5, 0.55, 0.7, 0.7, 0.9]]), np.array([[1.0, 1.0, 0.7, 0.1, 0.9]])
    found = margins(best, openings, limits, Scoring())[0] ** 0.5
    assert found.tolist() == pytest.approx([0, 0.3, 0.4, 0, 0.8])


def test_a_passage_that_is_nearly_that_of_the_query_counts_whatever_the_opening() -> None:
    zero, half = np.zeros(1, np.float32), np.full(1, 0.5, np.float32)
    limits = thresholds(half, half, zero + 1, zero + 0.4, np.ones(1), Scoring())
    best = np.array([[0.7, 0.75, 0.8, 0.9, 0.95, 1.0]])
    found = margins(best, np.full_like(best, -1), limits, Scoring())[0] ** 0.5
    assert found.tolist() == pytest.approx([0, 0.125, 0.3, 0.8, 0.9, 1])


def test_the_own_similarity_of_a_chunk_is_that_of_a_copy_of_the_query() -> None:
    chunks = unit(np.random.default_rng(0).standard_normal((9, 8)).astype(np.float32))
    opening = np.linspace(0, 0.4, 9, dtype=np.float32)
    own = own_similarities(chunks, chunks[0], opening)
    copied = best_chunks(chunks, chunks, np.zeros(1, np.int64))
    assert own.tolist() == pytest.approx(join(*copied, opening)[:, 0].tolist(), abs=1e-6)


def test_components_are_added_by_root_and_by_weights_that_sum_to_one() -> None:
    components = Components(*(np.array([value]) for value in (0.25, 0.04, 0.16)))
    weights = Scoring(chunk_weight=2, word_weight=1, pair_weight=1).weights()
    assert combine(components, weights, 0.5).tolist() == pytest.approx([0.5 * 0.5 + 0.25 * 0.2 + 0.25 * 0.4])
    scoring = Scoring(chunk_weight=0.4, word_weight=0.3, pair_weight=0.3)
    assert scoring.weights(words=False) == {"chunks": 1.0, "words": 0.0, "pairs": 0.0}
    assert scoring.weights(vectors=False) == {"chunks": 0.0, "words": 0.5, "pairs": 0.5}


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"opening": 1.0}, "opening is 1.0; it must be at least 0 and below 1"),
        ({"exceeding": 0}, "exceeding is 0; it must be at least 1"),
        ({"power": 0.0}, "power 0.0 and root 0.5 must be above 0"),
        ({"root": float("nan")}, "power 2.0 and root nan must be above 0"),
        ({"word_weight": -1.0}, "weights 0.27, -1.0, 0.33 must be at least 0, and one above 0"),
    ],
)
def test_constants_out_of_range_are_refused(constants: dict[str, float], message: str) -> None:
    with pytest.raises(QueryError) as raised:
        Scoring(**constants)  # type: ignore[arg-type]
    assert str(raised.value) == message


def test_openings_of_a_chunk_count_as_far_as_they_agree_with_its_matches() -> None:
    rng = np.random.default_rng(0)
    best = rng.uniform(0.2, 0.8, (4, 400)).astype(np.float32)
    noise = np.array([0, 1.5, 3, 50])[:, None] * best.std() * rng.standard_normal(best.shape)
    openings = (best + noise).astype(np.float32)
    expected = [0.4 * min(1, max(0, (correlation(*rows) - 0.2) / 0.2)) for rows in zip(best, openings, strict=True)]
    assert opening_shares(best, openings, 0.4).tolist() == pytest.approx(expected, abs=1e-6)
    assert expected[0] == expected[1] == 0.4 > expected[2] > 0 == expected[3]
    assert opening_shares(best[:, :19], openings[:, :19], 0.4).tolist() == pytest.approx([0.4] * 4)
    assert not opening_shares(best, np.full_like(best, 0.5), 0.4).any()


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
def test_best_chunks_equal_a_loop(seed: int, counts: list[int]) -> None:
    queries, vectors = table(seed, 3, 4), table(seed + 1, sum(counts), 4)
    starts = np.cumsum([0, *counts[:-1]])
    best, openings = best_chunks(queries, vectors, starts)
    for query, *found in zip(queries, best, openings, strict=True):
        products = [[float(query @ row) for row in vectors[a : a + n]] for a, n in zip(starts, counts, strict=True)]
        by_hand = [[max(one) for one in products], [one[0] for one in products]]
        assert np.array(found) == pytest.approx(np.array(by_hand), abs=1e-6)
