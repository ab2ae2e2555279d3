from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest

from benchmarks.papers.comparison import Comparison, Conditions, Judged, Made, Size, Variant
from benchmarks.papers.tables import Agreement, Trial, agreement, paper_table, variant_run
from benchmarks.runs import Case, Run
from benchmarks.significance import bootstrap_interval, holm, randomization_p
from indexer.origin import Origin
from tests.benchmarks.papers.cases import SCALE, conditions
from tests.benchmarks.papers.fakes import FakeJudge, FakeSystem

NAMES = "abcdef"


@pytest.mark.parametrize("seed", range(5))
def test_tau_is_kendalls_where_the_paper_orders_everything(seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    published, ours = np.random.default_rng(seed).permuted(np.tile(np.arange(6.0), (2, 1)), axis=1)
    place = dict(zip(NAMES, published, strict=True))
    order = [(a, b) if place[a] > place[b] else (b, a) for a, b in combinations(NAMES, 2)]
    found = agreement(order, dict(zip(NAMES, ours, strict=True)), dict.fromkeys(order, 1.0))
    assert found.tau == pytest.approx(stats.kendalltau(published, ours).statistic)
    assert (found.n_pairs, found.n_shared + found.n_reversed) == (15, 15)


def test_pairs_that_are_equal_here_are_neither_shared_nor_reversed() -> None:
    order = [("a", "b"), ("a", "c"), ("b", "c")]
    found = agreement(order, {"a": 0.5, "b": 0.5, "c": 0.7}, dict(zip(order, (1.0, 0.2, 0.01), strict=True)))
    assert found == Agreement(n_pairs=3, n_shared=0, n_reversed=2, n_decided=1, n_decided_shared=0)
    assert found.tau == pytest.approx(-2 / 3)


def test_decided_pairs_are_counted_apart() -> None:
    order = [("a", "b"), ("a", "c"), ("b", "c")]
    found = agreement(order, {"a": 3.0, "b": 1.0, "c": 2.0}, dict(zip(order, (0.01, 0.3, 0.049), strict=True)))
    assert (found.n_shared, found.n_decided, found.n_decided_shared) == (2, 2, 1)


@pytest.fixture
def given(tmp_path: Path, origin: Origin) -> Conditions:
    return conditions(tmp_path, tmp_path, origin)


GROUPS = [at // 2 for at in range(80)]
TRIED = {"np": (0.2, 0.7725), "wp": (0.95, 0.84), "wp-sp": (0.6, 0.8536)}


@pytest.fixture
def runs(given: Conditions) -> list[Run]:
    """Three variants; here the paper's second is the best."""
    return [tried_run(given, name, number) for number, name in enumerate(TRIED)]


def tried_run(given: Conditions, name: str, drawn: int) -> Run:
    judge, variants = FakeJudge(), tuple(Variant(one, FakeSystem(one), TRIED[one][1]) for one in TRIED)
    shown = Comparison("pretraining", "SMITH", "table 5", judge, "wp-sp", variants, SCALE)
    trial = Trial(shown, variants[list(TRIED).index(name)], judge.settings, given)
    made = Made(name, "bert@0", "random weights", Size(4, 128, 4552704), 24, 3, 2, 7.4)
    right = np.random.default_rng(drawn).random(len(GROUPS)) < TRIED[name][0]
    cases = [
        Case(id=str(at), values={"accuracy": float(one)}, group=str(group))
        for at, (one, group) in enumerate(zip(right, GROUPS, strict=True))
    ]
    return variant_run(trial, made, Judged(cases), 7.4)


def test_rows_stand_in_the_order_of_the_paper_beside_its_numbers(runs: list[Run]) -> None:
    first, wp, best = runs
    adjusted = holm(
        [randomization_p(one.values("accuracy"), best.values("accuracy"), groups=GROUPS) for one in (first, wp)]
    )
    assert adjusted.max() < 0.001
    low, high = bootstrap_interval(first.values("accuracy"), groups=GROUPS)
    lines = paper_table([best, first, wp]).split("\n")
    assert lines[0].startswith("**SMITH, pretraining** (published: table 5), here on pets@0. Scale: at most 3 steps")
    assert "4 layers, 128 wide, 4,552,704 parameters, begun with random weights; seed 0." in lines[0]
    assert lines[2] == "| Variant | accuracy [95 %] | p | Published | Steps | Seconds |"
    mean = fmean(first.values("accuracy"))
    assert lines[4] == f"| np | {mean:.3f} [{low:.3f}, {high:.3f}] | < 0.001 | 0.7725 | 3 (2) | 7 |"
    assert [line.split(" | ")[0] for line in lines[5:7]] == ["| wp", "| **wp-sp**"]


def test_orderings_are_counted_below(runs: list[Run]) -> None:
    text = "Orderings of the paper shared: 2 of 3 (1 reversed); of those decided here 2 of 3. Kendall's tau 0.33."
    assert text in paper_table(runs)
    assert "] |  | 0.7725 |" in paper_table(runs[:2])  # without the reference
    assert paper_table([]) == ""


def test_seeds_are_one_row_tested_by_the_mean_of_each_case(given: Conditions, runs: list[Run]) -> None:
    second = tried_run(replace(given, origin=replace(given.origin, seed=1)), "np", 9)
    first, _, best = runs
    values = np.mean([one.values("accuracy") for one in (first, second)], axis=0)
    low, high = bootstrap_interval(values, groups=GROUPS)
    spread = stdev(fmean(one.values("accuracy")) for one in (first, second))
    lines = paper_table([second, best, first]).split("\n")
    assert lines[4].startswith(f"| np | {values.mean():.3f} ± {spread:.3f} [{low:.3f}, {high:.3f}] |")
    assert lines[5].startswith("| **wp-sp** |") and lines[0].endswith("seeds 0, 1.")
