from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.metrics import evaluate_named


def by_hand(name: str, relevant: set[str], ranking: list[str]) -> float:
    """One rank at a time."""
    kind, _, cutoff = name.partition("@")
    ranks = [rank for rank, doc_id in enumerate(ranking, start=1) if doc_id in relevant]
    ranks = [rank for rank in ranks if not cutoff or rank <= int(cutoff)]
    if kind == "P":
        return len(ranks) / int(cutoff)
    if kind == "Recall":
        return len(ranks) / len(relevant)
    if kind == "MRR":
        return 1 / ranks[0] if ranks else 0.0
    depth = min(len(relevant), int(cutoff)) if cutoff else len(relevant)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, depth + 1))
    return sum(1 / math.log2(rank + 1) for rank in ranks) / best


NAMES = ("P@1", "P@3", "P@5", "Recall@4", "MRR", "MRR@2", "nDCG", "nDCG@3")


@pytest.mark.parametrize("seed", range(4))
def test_measures_equal_their_definitions(seed: int) -> None:
    draw = np.random.default_rng(seed)
    doc_ids = [f"d{number}" for number in range(12)]
    rankings = {f"q{number}": draw.permutation(doc_ids)[: 3 * number].tolist() for number in range(4)}
    relevant = {query_id: set(draw.choice(doc_ids, 3, replace=False).tolist()) for query_id in rankings}
    values = evaluate_named(NAMES, relevant, rankings)
    for name in NAMES:
        expected = {query_id: by_hand(name, relevant[query_id], rankings[query_id]) for query_id in rankings}
        assert values[name] == pytest.approx(expected)


def test_queries_without_a_ranking_count_nothing() -> None:
    assert evaluate_named(["P@1"], {"a": {"x"}, "b": {"x"}}, {"b": ["x"]}) == {"P@1": {"a": 0.0, "b": 1.0}}
    assert evaluate_named(["MRR"], {"a": {"x"}}, {"a": []}) == {"MRR": {"a": 0.0}}
