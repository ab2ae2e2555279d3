"""Quality of rankings, a value a query; computed by ir-measures, not by us.

Recall and MRR count a target as relevant from relevance 1 on. nDCG takes the
gain 2^relevance - 1 and the discount log2(rank + 1) (Burges et al. 2005), so that
relevance 2 weighs three times as much as 1; trec_eval's default gain, the
relevance itself, gives other numbers as soon as judgments are graded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ir_measures
from ir_measures import RR, Measure, R, nDCG

PRIMARY = "nDCG@10"
METRICS = (PRIMARY, "Recall@10", "Recall@100", "MRR@10")


def evaluate(
    qrels: Mapping[str, Mapping[str, int]], rankings: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """Measure rankings, best target first, against judgments.

    Args:
        qrels: query id, then target, to relevance (at least 0; not listed is 0).
        rankings: query id to its targets; a query without a ranking counts 0.

    Returns:
        For each name in `METRICS` the value in [0, 1] of every query of `qrels`, in their order.
    """
    measures = _measures(max((max(targets.values()) for targets in qrels.values()), default=0))
    # trec_eval orders by score and breaks ties by name; minus the rank keeps the order that was given.
    run = {
        query_id: {doc_id: -float(rank) for rank, doc_id in enumerate(rankings[query_id], start=1)}
        for query_id in qrels
        if query_id in rankings
    }
    values = {name: dict.fromkeys(qrels, 0.0) for name in METRICS}
    for metric in ir_measures.iter_calc(list(measures), qrels, run):
        values[measures[metric.measure]][metric.query_id] = float(metric.value)
    return values


def means(values: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The mean over the queries, in [0, 1], of each metric; there must be a query."""
    return {name: sum(by_query.values()) / len(by_query) for name, by_query in values.items()}


def _measures(highest_relevance: int) -> dict[Measure, str]:
    gains = {relevance: 2**relevance - 1 for relevance in range(highest_relevance + 1)}
    return dict(zip((nDCG(gains=gains) @ 10, R @ 10, R @ 100, RR @ 10), METRICS, strict=True))
