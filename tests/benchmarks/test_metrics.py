"""Measures of rankings, their significance, and the program that scores a run."""

import json
import math
import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from click.testing import CliRunner

from benchmarks.formats.trec import read_run, write_qrels, write_run
from benchmarks.metrics import evaluate, evaluate_named
from benchmarks.score import main, score_run
from benchmarks.significance import bootstrap_interval, holm, randomization_p

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


def p_by_hand(a: list[float], b: list[float]) -> float:
    """Every pattern of signs, one at a time."""
    differences = [x - y for x, y in zip(a, b, strict=True)]
    observed = abs(sum(differences))
    patterns = list(product([1, -1], repeat=len(differences)))
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in patterns]
    return sum(total >= observed - 1e-9 for total in sums) / len(patterns)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_every_sign_pattern_is_tried_for_few_queries(n: int) -> None:
    values = np.random.default_rng(n).integers(0, 6, size=(2, n)) / 5
    a, b = values[0].tolist(), values[1].tolist()
    assert randomization_p(a, b) == pytest.approx(p_by_hand(a, b))


def test_drawn_patterns_come_near_the_exact_value() -> None:
    a, b = np.random.default_rng(3).random((2, 17)).tolist()
    exact = p_by_hand(a, b)
    assert randomization_p(a, b, n_samples=200_000) == pytest.approx(exact, abs=5 * (exact / 200_000) ** 0.5)


def test_known_p_values() -> None:
    assert randomization_p([1.0] * 5, [0.0] * 5) == 2 / 2**5
    assert randomization_p([0.3, 0.7], [0.3, 0.7]) == 1.0
    assert randomization_p([0.1, 0.2, 0.9], [0.1, 0.2, 0.1]) == 1.0  # one query that differs can go either way
    assert randomization_p([1.0] * 60, [0.0] * 60, n_samples=999) == 1 / 1000


def test_a_p_value_does_not_depend_on_who_is_first() -> None:
    a, b = np.random.default_rng(5).random((2, 40))
    assert randomization_p(a, b, seed=1) == randomization_p(b, a, seed=1)


def test_the_interval_is_that_of_all_resamples() -> None:
    values = [0.0, 0.1, 0.5, 0.6, 1.0]
    all_means = [float(np.mean(resample)) for resample in product(values, repeat=5)]
    low, high = np.quantile(all_means, [0.05, 0.95])
    assert bootstrap_interval(values, level=0.9, n_samples=50_000) == pytest.approx((low, high), abs=0.011)


def test_equal_values_have_an_interval_without_width() -> None:
    assert bootstrap_interval([0.25] * 8) == (0.25, 0.25)
    assert bootstrap_interval([0.0, 1.0]) == (0.0, 1.0)


def test_values_that_are_not_paired_and_groups_of_another_number_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one shape \(N,\), not \(2,\) and \(3,\)"):
        randomization_p([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="2 values, 3 groups named"):
        bootstrap_interval([0.1, 0.2], groups=["a", "b", "b"])


def test_the_interval_draws_whole_groups() -> None:
    values, topics = [0.0, 0.2, 0.4, 1.0, 0.5, 0.9], ["a", "a", "a", "b", "c", "c"]
    members = {"a": [0.0, 0.2, 0.4], "b": [1.0], "c": [0.5, 0.9]}
    all_means = [float(np.mean([v for name in drawn for v in members[name]])) for drawn in product("abc", repeat=3)]
    low, high = np.quantile(all_means, [0.05, 0.95])
    interval = bootstrap_interval(values, groups=topics, level=0.9, n_samples=50_000)
    assert interval == pytest.approx((low, high), abs=0.011)


@pytest.mark.parametrize("n_groups", [1, 4, 17])
def test_groups_are_swapped_as_a_whole(n_groups: int) -> None:
    a, b = np.random.default_rng(n_groups).random((2, 3 * n_groups))
    topics = [number % n_groups for number in range(3 * n_groups)]
    sums = [[float(side[number::n_groups].sum()) for number in range(n_groups)] for side in (a, b)]
    tolerance = 0.0 if n_groups < 17 else 0.01
    assert randomization_p(a, b, groups=topics) == pytest.approx(p_by_hand(*sums), abs=tolerance or 1e-12)


def holm_by_hand(p_values: list[float]) -> list[float]:
    """For each p-value the largest correction among the p-values up to it, one at a time."""
    rising = sorted(p_values)
    adjusted = []
    for p in p_values:
        largest = 0.0
        for n_before, other in enumerate(rising):
            if other <= p:
                largest = max(largest, min(1.0, (len(rising) - n_before) * other))
        adjusted.append(largest)
    return adjusted


@pytest.mark.parametrize("n", [0, 1, 2, 7, 30])
def test_holms_values_equal_the_equation(n: int) -> None:
    p_values = (np.random.default_rng(n).integers(0, 12, size=n) / 100).tolist()  # with ties
    assert holm(p_values).tolist() == pytest.approx(holm_by_hand(p_values))


QRELS = {"a": {"x": 2, "y": 1}, "b": {"x": 1, "z": 0}, "c": {"w": 1}, "none": {"x": 0}}
RUN = {"a": [("y", 3.0), ("z", 2.0), ("x", 1.0)], "b": [("z", 2.0), ("x", 1.0)], "unjudged": [("x", 1.0)]}
OTHER = {"a": [("x", 3.0), ("y", 2.0)], "b": [("x", 2.0)], "c": [("w", 1.0)]}
JUDGED = {query_id: QRELS[query_id] for query_id in ("a", "b", "c")}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    write_qrels(QRELS, tmp_path / "pets.qrels")
    write_run(RUN, tmp_path / "mine.trec", "mine")
    write_run(OTHER, tmp_path / "other.trec", "other")
    names = ("pets.qrels", "mine.trec", "other.trec")
    return {name: str(tmp_path / name) for name in names}


def output_of(*arguments: str) -> str:
    done = CliRunner().invoke(main, list(arguments))
    return done.output if done.exit_code == 0 else done.stderr.splitlines()[-1]


def test_two_runs_are_compared_query_by_query() -> None:
    (score,) = [one for one in score_run(RUN, JUDGED, other=OTHER) if one.measure == "MRR@10"]
    assert (score.mean, score.other) == (pytest.approx((1 + 0.5 + 0) / 3), 1.0)
    assert (score.low, score.high) == bootstrap_interval([1, 0.5, 0], seed=0)
    assert score.p == randomization_p([1, 0.5, 0], [1, 1, 1], seed=0)


def test_the_command_judges_a_run_and_queries_without_relevant_targets_are_passed_over(files: dict[str, str]) -> None:
    table = output_of(files["mine.trec"], files["pets.qrels"]).splitlines()
    assert table[0] == "| 3 queries | mine.trec [95 %] |"
    assert table[5].startswith("| MRR@10 | 0.5000 [0.")
    paired = output_of(files["mine.trec"], files["pets.qrels"], "--against", files["other.trec"]).splitlines()
    assert paired[0] == "| 3 queries | mine.trec [95 %] | other.trec | p |"
    assert paired[5].endswith("| 1.0000 | 1.000 |")
    first, *_ = [json.loads(line) for line in output_of(files["mine.trec"], files["pets.qrels"], "--json").splitlines()]
    assert (first["measure"], first["p"]) == ("nDCG@10", None)


def test_files_that_do_not_fit_are_reported_in_one_line(files: dict[str, str], tmp_path: Path) -> None:
    write_run({"else": [("x", 1.0)]}, tmp_path / "else.trec", "mine")
    error = output_of(str(tmp_path / "else.trec"), files["pets.qrels"])
    assert "else.trec ranks nothing for any of 3 judged queries" in error
    write_qrels({"a": {"x": 0}}, tmp_path / "empty.qrels")
    error = output_of(files["mine.trec"], str(tmp_path / "empty.qrels"))
    assert error.startswith("Error: none of 1 judged queries has a")
    assert "cannot be read" in output_of(str(tmp_path), files["pets.qrels"])
