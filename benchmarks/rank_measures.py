"""Measures of rankings by name, each as `ir-measures` computes it, for targets that are relevant or not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import ir_measures
from ir_measures import RR, Measure, P, R, nDCG

_KINDS: Mapping[str, Measure] = {"P": P, "Recall": R, "MRR": RR, "nDCG": nDCG}


def evaluate_named(
    names: Sequence[str], relevant: Mapping[str, Collection[str]], rankings: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """Measure rankings, best target first.

    Args:
        names: as "P@5", "Recall@100", "MRR", "MRR@10", "nDCG" or "nDCG@10"; without a
            cutoff the whole ranking counts. P@k divides by k, however short a ranking is.
        relevant: query id to its relevant targets, at least one.
        rankings: query id to its targets; a query without a ranking counts 0.

    Returns:
        For each name the value in [0, 1] of every query of `relevant`, in their order.
    """
    measures = {name: _measure(name) for name in names}
    qrels = {query_id: dict.fromkeys(targets, 1) for query_id, targets in relevant.items()}
    # trec_eval orders by score and breaks ties by name; minus the rank keeps the order that was given.
    run = {
        query_id: {doc_id: -float(rank) for rank, doc_id in enumerate(rankings[query_id], start=1)}
        for query_id in relevant
        if rankings.get(query_id)
    }
    values = {name: dict.fromkeys(relevant, 0.0) for name in names}
    found = {(metric.query_id, metric.measure): metric.value for metric in _calculated(measures, qrels, run)}
    for name, measure in measures.items():
        for query_id in relevant:
            values[name][query_id] = float(found.get((query_id, measure), 0.0))
    return values


def _calculated(
    measures: Mapping[str, Measure], qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Mapping[str, float]]
) -> list[ir_measures.Metric]:
    return list(ir_measures.iter_calc(list(measures.values()), qrels, run)) if run else []


def _measure(name: str) -> Measure:
    kind, _, cutoff = name.partition("@")
    return _KINDS[kind] @ int(cutoff) if cutoff else _KINDS[kind]
