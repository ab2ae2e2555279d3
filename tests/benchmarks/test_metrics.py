from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from benchmarks.formats.trec import read_run, write_run
from benchmarks.metrics import evaluate, evaluate_named

Qrels = dict[str, dict[str, int]]
Rankings = dict[str, list[str]]


@pytest.fixture
def judged() -> tuple[Qrels, Rankings]:
    draw = random.Random(7)
    corpus = [f"d{number}" for number in range(150)]
    qrels = {f"q{number}": {doc: draw.choice([0, 1, 1, 2]) for doc in draw.sample(corpus, 15)} for number in range(20)}
    return qrels, {query_id: draw.sample(corpus, 120) for query_id in qrels}


def trec_eval(gains: Qrels, run: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Our metrics as pytrec_eval computes them; its reciprocal rank has no depth, so ranks behind the tenth give 0."""
    names = {"ndcg_cut_10": "nDCG@10", "recall_10": "Recall@10", "recall_100": "Recall@100", "map_cut_100": "MAP@100"}
    found = pytrec_eval.RelevanceEvaluator(gains, {*names, "recip_rank"}).evaluate(run)
    return {
        query_id: {ours: values[theirs] for theirs, ours in names.items()}
        | {"MRR@10": values["recip_rank"] if values["recip_rank"] >= 1 / 10 else 0.0}
        for query_id, values in found.items()
    }


def check_against_trec_eval(qrels: Qrels, rankings: Rankings, scores: dict[str, dict[str, float]]) -> None:
    ours = evaluate(qrels, rankings)
    gains = {query: {doc: 2**rel - 1 for doc, rel in targets.items()} for query, targets in qrels.items()}
    for query, theirs in trec_eval(gains, scores).items():
        assert {name: ours[name][query] for name in theirs} == pytest.approx(theirs, rel=0, abs=1e-9)


def test_metrics_equal_those_of_trec_eval_with_ties_and_graded_judgments(tmp_path: Path) -> None:
    draw = random.Random(11)
    corpus = [f"d{number}" for number in range(300)]
    qrels = {f"q{number}": {doc: draw.choice([0, 1, 1, 2, 3]) for doc in corpus[:200]} for number in range(50)}
    lines = [f"{query} Q0 {doc} 1 {draw.randrange(20)} tag\n" for query in qrels for doc in draw.sample(corpus, 150)]
    (tmp_path / "run").write_text("".join(lines))
    scores = {query: dict(ranking) for query, ranking in read_run(tmp_path / "run").items()}
    check_against_trec_eval(qrels, {query: list(ranking) for query, ranking in scores.items()}, scores)


def test_trec_eval_judges_a_written_run_as_we_judge_rankings(judged: tuple[Qrels, Rankings], tmp_path: Path) -> None:
    qrels, rankings = judged
    tied = {query: [(doc, float(-(rank // 7))) for rank, doc in enumerate(docs)] for query, docs in rankings.items()}
    write_run(tied, tmp_path / "run", "tied")
    with (tmp_path / "run").open() as file:
        check_against_trec_eval(qrels, rankings, pytrec_eval.parse_run(file))


def test_the_given_order_is_kept_whatever_the_names() -> None:
    for ranking in (["a", "z"], ["z", "a"]):
        values = evaluate({"q": {"z": 1}}, {"q": ranking})
        assert values["MRR@10"]["q"] == 1 / (1 + ranking.index("z"))


def test_a_query_without_a_ranking_counts_zero() -> None:
    values = evaluate({"asked": {"a": 1}, "silent": {"a": 1}, "empty": {"a": 1}}, {"asked": ["a"], "empty": []})
    assert values["nDCG@10"] == {"asked": 1.0, "silent": 0.0, "empty": 0.0}


def test_deep_recall_looks_at_a_thousand_ranks() -> None:
    ranking = [*(f"other{number}" for number in range(999)), "a", "b"]
    qrels = {"q": {"a": 1, "b": 1}}
    assert evaluate(qrels, {"q": ranking}, depth=1_000)["Recall@1000"]["q"] == 0.5
    assert "Recall@1000" not in evaluate(qrels, {"q": ranking})


def test_a_negative_judgment_counts_as_not_relevant() -> None:
    values = evaluate({"q": {"a": 1, "spam": -2}}, {"q": ["spam", "a"]})
    assert values["nDCG@10"]["q"] == pytest.approx(1 / math.log2(3))


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
