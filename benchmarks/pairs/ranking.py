"""Rankings by scorers of pairs: of all documents that are scored for a query, or of the first targets of a ranking."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from benchmarks.datasets import Qrels
from benchmarks.pair_judging import finite_scores
from benchmarks.pair_scorer import Pair, PairScorer
from benchmarks.systems import Ranking


def scored(scorer: PairScorer, wanted: Mapping[str, Collection[str]]) -> dict[str, Ranking]:
    """Rank targets by a fitted scorer, for each query; equal scores keep the order of the targets.

    Args:
        scorer: knows all documents by these names.
        wanted: the targets to score, by query.

    Raises:
        DatasetError: a score is not finite.
    """
    # Scorers do not read is_match of a pair.
    pairs = [Pair(query, target, is_match=False) for query, targets in wanted.items() for target in targets]
    of_pair = dict(zip(((one.first, one.second) for one in pairs), finite_scores(scorer, pairs).tolist(), strict=True))
    return {query: _sorted({target: of_pair[query, target] for target in targets}) for query, targets in wanted.items()}


def reranked(rankings: Mapping[str, Ranking], order: Mapping[str, Ranking], depth: int) -> dict[str, Ranking]:
    """Put the first `depth` targets of each query into the order of another ranking, which has all of them.

    Targets below keep their ranks. Scores of two systems cannot be compared, so the new scores count down to 1.
    """
    ranked = {}
    for query, ranking in rankings.items():
        targets = [target for target, _ in ranking]
        first = set(targets[:depth])
        new = [*(target for target, _ in order[query] if target in first), *targets[depth:]]
        ranked[query] = [(target, float(len(new) - place)) for place, target in enumerate(new)]
    return ranked


def by_relevance(rankings: Mapping[str, Ranking], qrels: Qrels) -> dict[str, Ranking]:
    """The targets of each query by relevance: the best possible order."""
    return {
        query: _sorted({target: float(qrels[query].get(target, 0)) for target, _ in ranking})
        for query, ranking in rankings.items()
    }


def _sorted(scores: Mapping[str, float]) -> Ranking:
    targets = list(scores)
    order = np.argsort(-np.array(list(scores.values())), kind="stable")
    return [(targets[int(at)], scores[targets[int(at)]]) for at in order]
