"""A scorer of pairs as a re-ranker: the first targets of another system, in the scorer's order. Nothing is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from benchmarks.datasets import Qrels
from benchmarks.pairs.scorer import Pair, PairScorer
from benchmarks.pairs.scoring import finite_scores
from benchmarks.systems import Ranking

Rankings: TypeAlias = Mapping[str, Ranking]  # by query


def rerank(run: Rankings, scorer: PairScorer, depth: int) -> dict[str, Ranking]:
    """Put the first `depth` targets of every query into the order of a fitted scorer.

    Targets of equal scores keep their order, and those behind the first `depth` stay where they are.
    Scores of the two cannot be compared, so the new one of a target counts how many stand behind it.

    Raises:
        DatasetError: a score is no finite number.
    """
    return {query_id: _rerank(query_id, ranking, scorer, depth) for query_id, ranking in run.items()}


def by_relevance(run: Rankings, qrels: Qrels, depth: int) -> dict[str, Ranking]:
    """Put the first `depth` targets of every query into the order of their relevance: the most that `rerank` can do."""
    ordered: dict[str, Ranking] = {}
    for query_id, ranking in run.items():
        targets = [target for target, _ in ranking]
        first = sorted(targets[:depth], key=lambda target: -qrels[query_id].get(target, 0))
        ordered[query_id] = _counted_down([*first, *targets[depth:]])
    return ordered


def _rerank(query_id: str, ranking: Ranking, scorer: PairScorer, depth: int) -> Ranking:
    targets = [target for target, _ in ranking]
    first = targets[:depth]
    # What a pair is said to be is not looked at when it is scored.
    scores = finite_scores(scorer, [Pair(query_id, target, is_match=False) for target in first])
    return _counted_down([*(first[int(at)] for at in np.argsort(-scores, kind="stable")), *targets[depth:]])


def _counted_down(targets: Sequence[str]) -> Ranking:
    return [(target, float(len(targets) - place)) for place, target in enumerate(targets)]
