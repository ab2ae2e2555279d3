"""The score against the equation of the module, one pair at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import QueryError
from engine.scoring.evidence import (
    Scoring,
    chunk_weights,
    crowd_similarity,
    document_crowd_similarity,
    exact_scores,
    list_scores,
    rise,
    thresholds,
)
from engine.scoring.lists import RankedLists, empty_lists, top_documents


def scores_by_hand(best: Vectors, whole: Vectors, n_tokens: list[int], scoring: Scoring) -> list[float]:
    """score(q, t) for all t, from s_i(t) (I, N) and the cosines of whole documents (N,)."""
    n_documents = best.shape[1]

    def theta(similarities: Vectors, crowd: int) -> float:
        ranked = sorted(map(float, similarities), reverse=True)
        return min(1.0, max(0.0, ranked[crowd])) if n_documents > crowd else 0.0

    p, b = scoring.power, scoring.document_weight
    theta_d = theta(whole, scoring.document_crowd)
    answer = []
    for t in range(n_documents):
        above = below = 0.0
        for i, tokens in enumerate(n_tokens):
            w, theta_i = tokens**0.5, theta(best[i], scoring.crowd)
            above += w * max(0.0, min(1.0, float(best[i, t])) - theta_i) ** p
            below += w * (1 - theta_i) ** p
        chunks = (1 - b) * above / below if below else 0.0
        rest = max(0.0, min(1.0, float(whole[t])) - theta_d) ** p / (1 - theta_d) ** p if theta_d < 1 else 0.0
        answer.append(chunks + b * rest)
    return answer


def scores_of(best: Vectors, whole: Vectors, n_tokens: list[int], scoring: Scoring) -> tuple[NDArray[np.float64], ...]:
    """The same twice: from exact similarities, and from lists (0 where a document is in none)."""
    positions = np.arange(best.shape[1])
    lists = top_documents(best, positions, scoring.crowd + 1)
    limits = thresholds(
        crowd_similarity(lists, scoring.crowd, len(positions)),
        document_crowd_similarity(whole, scoring.document_crowd),
        chunk_weights(np.array(n_tokens)),
        scoring,
    )
    from_lists = np.zeros(len(positions))
    of_whole = top_documents(whole[None], positions, scoring.document_crowd + 1)
    found, values = list_scores(lists, of_whole, limits, scoring)
    from_lists[found] = values
    return exact_scores(best, whole, limits, scoring), from_lists


CASES = st.tuples(
    st.integers(0, 10_000),
    st.integers(1, 30),
    st.lists(st.integers(1, 126), min_size=1, max_size=6),
    st.builds(
        Scoring,
        crowd=st.integers(1, 12),
        power=st.sampled_from([0.5, 1.0, 2.0, 3.0]),
        document_weight=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
        document_crowd=st.integers(1, 20),
    ),
)


@given(CASES)
def test_exact_scores_and_list_scores_equal_the_equation(case: tuple[int, int, list[int], Scoring]) -> None:
    seed, n_documents, n_tokens, scoring = case
    rng = np.random.default_rng(seed)
    best = rng.uniform(-0.2, 1, (len(n_tokens), n_documents)).astype(np.float32)
    whole = rng.uniform(-0.2, 1, n_documents).astype(np.float32)
    exact, from_lists = scores_of(best, whole, n_tokens, scoring)
    np.testing.assert_allclose(exact, scores_by_hand(best, whole, n_tokens, scoring), atol=1e-9)
    np.testing.assert_allclose(from_lists, exact, atol=1e-9)
    assert ((exact >= 0) & (exact <= 1 + 1e-12)).all()


def test_what_the_crowd_has_contributes_exactly_nothing() -> None:
    best = np.array([[0.99] * 12 + [0.1] * 8, [0.9, *[0.2] * 19]], np.float32)
    exact, from_lists = scores_of(best, np.zeros(20, np.float32), [9, 9], Scoring(crowd=10))
    assert exact[1:].tolist() == from_lists[1:].tolist() == [0.0] * 19
    assert exact[0] > 0


def test_a_corpus_without_a_crowd_counts_plain_similarities() -> None:
    best = np.array([[0.5, 1.0, -0.5]], np.float32)
    exact, _ = scores_of(best, np.zeros(3, np.float32), [4], Scoring(crowd=3, document_weight=0.0))
    assert exact.tolist() == [0.25, 1.0, 0.0]


def test_a_corpus_of_one_more_than_the_crowd_has_one() -> None:
    best = np.array([[0.5, 1.0, 0.75]], np.float32)
    exact, _ = scores_of(best, np.zeros(3, np.float32), [4], Scoring(crowd=2, document_weight=0.0))
    assert exact.tolist() == [0.0, 1.0, 0.25]


def test_the_last_of_a_short_list_stands_in_for_the_crowd() -> None:
    lists = RankedLists(
        np.array([[3, 1, -1], [-1, -1, -1], [3, 1, 2]]),
        np.array([[0.9, 0.5, -np.inf], [-np.inf] * 3, [0.9, 0.5, -0.25]], np.float32),
    )
    assert crowd_similarity(lists, 2, 100).tolist() == [0.5, 0.0, 0.0]


def test_equal_scores_rank_by_position() -> None:
    whole = empty_lists(1)
    lists = top_documents(np.array([[0.5, 0.9, 0.5, 0.9, 0.1]], np.float32), np.arange(5), 5)
    limits = thresholds(np.array([0.1], np.float32), 0.0, np.ones(1), Scoring())
    assert list_scores(lists, whole, limits, Scoring())[0].tolist() == [1, 3, 0, 2]


def test_all_chunks_at_the_ceiling_leave_only_the_document_part() -> None:
    limits = thresholds(np.ones(2, np.float32), 0.0, np.ones(2), Scoring(document_weight=0.25))
    score = exact_scores(np.ones((2, 1), np.float32), np.ones(1, np.float32), limits, Scoring(document_weight=0.25))
    assert score.tolist() == [0.25]


def test_weights_sum_to_what_the_document_part_leaves() -> None:
    limits = thresholds(np.array([0.3, 0.9], np.float32), 0.5, chunk_weights(np.array([4, 100])), Scoring())
    assert limits.weights.sum() == pytest.approx(0.92, abs=1e-12)


def test_a_chunk_weighs_the_root_of_its_tokens() -> None:
    assert chunk_weights(np.array([0, 1, 4, 100])).tolist() == [1.0, 1.0, 2.0, 10.0]


def test_rise_is_zero_below_and_one_at_full_similarity() -> None:
    assert rise(np.array([-np.inf, 0.2, 0.6, 1.0, 1.001]), 0.2, 2.0).tolist() == pytest.approx([0, 0, 0.25, 1, 1])


@pytest.mark.parametrize(
    ("constants", "said"),
    [
        ({"crowd": 0}, "crowd 0 and document crowd 30 must be at least 1"),
        ({"document_crowd": 0}, "crowd 20 and document crowd 0 must be at least 1"),
        ({"power": 0.0}, "power 0.0 must be above 0"),
        ({"power": float("nan")}, "power nan must be above 0"),
        ({"document_weight": 1.5}, "document weight 1.5 must be in [0, 1]"),
    ],
)
def test_constants_out_of_range_are_refused(constants: dict[str, float], said: str) -> None:
    with pytest.raises(QueryError) as raised:
        Scoring(**constants)  # type: ignore[arg-type]
    assert str(raised.value) == said
