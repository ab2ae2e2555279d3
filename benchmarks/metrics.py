"""Quality of rankings, one value a query; computed by ir-measures.

Recall and MRR count a target as relevant from relevance 1 on. nDCG has the gain 2^relevance - 1 and the discount
log2(rank + 1) (Burges et al. 2005), so that relevance 2 weighs three times as much as 1; trec_eval's default gain, the
relevance itself, gives other values where judgments are graded. MAP is the mean of average precision over the first 100
ranks, the smallest depth of a ranking here; a relevant target behind them counts 0 (trec_eval's map_cut_100).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import ir_measures
from ir_measures import AP, RR, Measure, R, nDCG

PRIMARY = "nDCG@10"
METRICS = (PRIMARY, "Recall@10", "Recall@100", "MRR@10")  # of every record, and of its table
MEASURED = (*METRICS, "MAP@100")
DEEP = "Recall@1000"  # of records with rankings of that depth
_DEPTH = 1_000


def evaluate(
    qrels: Mapping[str, Mapping[str, int]], rankings: Mapping[str, Sequence[str]], *, depth: int = 100
) -> dict[str, dict[str, float]]:
    """Measure rankings, best target first, against judgments.

    Returns for each name in `MEASURED` the value in [0, 1] of every query of `qrels`, in their order; 0 for a query
    without a ranking.
    """
    judged = {query_id: {doc_id: max(0, rel) for doc_id, rel in targets.items()} for query_id, targets in qrels.items()}
    measures = _measures(max((relevance for targets in judged.values() for relevance in targets.values()), default=0))
    if depth >= _DEPTH:
        measures[R @ _DEPTH] = DEEP
    return _calculated(measures, judged, rankings)


def evaluate_named(
    names: Sequence[str], relevant: Mapping[str, Collection[str]], rankings: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """Measure rankings, best target first, of targets that are relevant or not.

    Names are as "P@5", "MRR" or "nDCG@10"; without a cutoff the whole ranking counts. P@k divides by k, however short a
    ranking is. Returns as `evaluate`.
    """
    judged = {query_id: dict.fromkeys(targets, 1) for query_id, targets in relevant.items()}
    return _calculated({ir_measures.parse_measure(name): name for name in names}, judged, rankings)


def _measures(highest_relevance: int) -> dict[Measure, str]:
    gains = {relevance: 2**relevance - 1 for relevance in range(highest_relevance + 1)}
    return dict(zip((nDCG(gains=gains) @ 10, R @ 10, R @ 100, RR @ 10, AP @ 100), MEASURED, strict=True))


def _calculated(
    measures: Mapping[Measure, str], judged: Mapping[str, Mapping[str, int]], rankings: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """The value of every judged query, by name of the measure; 0 for a query without a ranking."""
    # trec_eval orders by score and breaks ties by name; the negative rank as score keeps the given order.
    run = {
        query_id: {doc_id: -float(rank) for rank, doc_id in enumerate(rankings[query_id], start=1)}
        for query_id in judged
        if rankings.get(query_id)
    }
    values = {name: dict.fromkeys(judged, 0.0) for name in measures.values()}
    for metric in ir_measures.iter_calc(list(measures), judged, run) if run else ():
        values[measures[metric.measure]][metric.query_id] = float(metric.value)
    return values
