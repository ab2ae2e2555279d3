from __future__ import annotations

import math
import random

import pytest
import pytrec_eval

from benchmarks.metrics import METRICS, evaluate, means

Qrels = dict[str, dict[str, int]]
Rankings = dict[str, list[str]]


def metrics_by_hand(targets: dict[str, int], ranking: list[str]) -> dict[str, float]:
    """The definitions, one rank at a time."""
    relevant = [doc_id for doc_id, relevance in targets.items() if relevance >= 1]
    gained = ideal = reciprocal = 0.0
    best = sorted(targets.values(), reverse=True)
    for rank in range(1, 11):
        discount = math.log2(rank + 1)
        if rank <= len(ranking):
            gained += (2 ** targets.get(ranking[rank - 1], 0) - 1) / discount
            if not reciprocal and ranking[rank - 1] in relevant:
                reciprocal = 1 / rank
        if rank <= len(best):
            ideal += (2 ** best[rank - 1] - 1) / discount
    found = {k: sum(doc_id in ranking[:k] for doc_id in relevant) / len(relevant) for k in (10, 100)}
    return dict(zip(METRICS, (gained / ideal, found[10], found[100], reciprocal), strict=True))


@pytest.fixture
def judged() -> tuple[Qrels, Rankings]:
    draw = random.Random(7)
    corpus = [f"d{number}" for number in range(150)]
    qrels = {f"q{number}": {doc: draw.choice([0, 1, 1, 2]) for doc in draw.sample(corpus, 15)} for number in range(20)}
    return qrels, {query_id: draw.sample(corpus, 120) for query_id in qrels}


def test_metrics_equal_their_definitions(judged: tuple[Qrels, Rankings]) -> None:
    qrels, rankings = judged
    values = evaluate(qrels, rankings)
    for query_id, targets in qrels.items():
        by_hand = metrics_by_hand(targets, rankings[query_id])
        assert {name: values[name][query_id] for name in METRICS} == pytest.approx(by_hand)


def test_metrics_equal_those_of_trec_eval(judged: tuple[Qrels, Rankings]) -> None:
    qrels, rankings = judged
    run = {query_id: {doc: 1000.0 - i for i, doc in enumerate(ranking)} for query_id, ranking in rankings.items()}
    gains = {query_id: {doc: 2**rel - 1 for doc, rel in targets.items()} for query_id, targets in qrels.items()}
    judge = pytrec_eval.RelevanceEvaluator(gains, {"ndcg_cut_10", "recall_10", "recall_100"})
    values = evaluate(qrels, rankings)
    for query_id, theirs in judge.evaluate(run).items():
        ours = [values[name][query_id] for name in ("nDCG@10", "Recall@10", "Recall@100")]
        assert ours == pytest.approx([theirs["ndcg_cut_10"], theirs["recall_10"], theirs["recall_100"]])


def test_relevance_two_gains_three_times_as_much() -> None:
    values = evaluate({"q": {"good": 2, "fair": 1}}, {"q": ["fair", "good"]})
    ideal = 3 + 1 / math.log2(3)
    assert values["nDCG@10"]["q"] == pytest.approx((1 + 3 / math.log2(3)) / ideal)


def test_the_given_order_is_kept_whatever_the_names() -> None:
    for ranking in (["a", "z"], ["z", "a"]):
        values = evaluate({"q": {"z": 1}}, {"q": ranking})
        assert values["MRR@10"]["q"] == 1 / (1 + ranking.index("z"))


def test_a_query_without_a_ranking_counts_zero() -> None:
    values = evaluate({"asked": {"a": 1}, "silent": {"a": 1}, "empty": {"a": 1}}, {"asked": ["a"], "empty": []})
    assert values["nDCG@10"] == {"asked": 1.0, "silent": 0.0, "empty": 0.0}
    assert means(values) == pytest.approx(dict.fromkeys(METRICS, 1 / 3))


def test_mrr_looks_at_ten_ranks() -> None:
    ranking = [f"other{number}" for number in range(10)] + ["a"]
    values = evaluate({"q": {"a": 1}}, {"q": ranking})
    assert (values["MRR@10"]["q"], values["Recall@10"]["q"], values["Recall@100"]["q"]) == (0.0, 0.0, 1.0)
