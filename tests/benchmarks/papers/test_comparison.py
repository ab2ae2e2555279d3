from __future__ import annotations

from importlib import import_module
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.comparison import Agreement, Comparison, Variant, above_all, agreement, flat, rising
from benchmarks.papers.pairs_task import EncoderArm, MatchingTask
from benchmarks.papers.papers import PAPERS, comparisons_of, quick_scale
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import SCALE, conditions


def made(published: dict[str, float | None], found: tuple[tuple[str, str], ...] = ()) -> Comparison:
    variants = tuple(Variant(name, EncoderArm("colde"), value) for name, value in published.items())
    return Comparison("parts", "CoLDE", "table 2", MatchingTask("pets"), "a", variants, SCALE, found)


def test_the_order_is_that_of_unequal_numbers_and_of_what_is_said() -> None:
    numbers = {"a": 0.9, "b": 0.7, "c": 0.9, "d": None}
    assert made(numbers).published_order == [("a", "b"), ("c", "b")]
    assert made(numbers, (("d", "b"), ("a", "b"))).published_order == [("a", "b"), ("c", "b"), ("d", "b")]


def test_a_rising_row_orders_all_of_its_pairs_and_a_best_one_only_its_own() -> None:
    assert rising("1", "2", "3") == (("2", "1"), ("3", "1"), ("3", "2"))
    assert above_all("50", "20", "100") == (("50", "20"), ("50", "100"))


def test_settings_are_what_was_chosen() -> None:
    given = {"recipe": "tde", "sizes": {"n_topics": "20"}, "batch": None, "learned": {}, "budgets": 2.0}
    assert flat(given) == {"recipe": "tde", "sizes_n_topics": "20", "budgets": 2.0}


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_declared_fits_together(paper: str) -> None:
    declared = import_module(f"benchmarks.papers.{paper}").COMPARISONS
    assert len(comparisons_of(paper)) == len(declared)
    for comparison in declared:
        names = [variant.name for variant in comparison.variants]
        assert len(set(names)) == len(names)
        assert comparison.reference in names
        assert {name for pair in comparison.published_order for name in pair} <= set(names)
        arms = [tuple(variant.arm.settings.items()) for variant in comparison.variants]
        assert len(set(arms)) == len(arms)  # no two variants are one
        assert quick_scale(comparison.scale).steps < comparison.scale.steps


@pytest.mark.parametrize("paper", ["smith", "colde", "tde"])
def test_every_declared_encoder_can_be_made(paper: str, bert_folder: Path, tmp_path: Path, origin: Origin) -> None:
    given = conditions(tmp_path, bert_folder, origin)
    for comparison in comparisons_of(paper).values():
        for variant in comparison.variants:
            if isinstance(variant.arm, EncoderArm):
                assert variant.arm.scorer(given).is_trained


@pytest.mark.parametrize(
    ("paper", "name", "order"),
    [
        ("smith", "pretraining-aan", "wp-sp wp np"),
        ("smith", "combination-aan", "normal attention sum mean"),
        ("smith", "combination-wiki", "normal attention mean sum"),
        ("colde", "ablations-aan", "colde without-lstm without-aug without-cl"),
        ("docsplit", "bbc", "docsplit contriever simcse backbone ct"),
        ("docsplit", "bbc-few", "docsplit simcse contriever ct backbone"),
        ("docsplit", "news20-few", "docsplit contriever simcse ct backbone"),
        ("tde", "losses", "sc-ce-0.07 sc-ce-0.2 sc-ce-0.7 sc-0.07 sc-0.2 sc-0.7 sc-ce-1 sc-1 ce"),
    ],
)
def test_variants_are_ordered_as_the_paper_prints_them(paper: str, name: str, order: str) -> None:
    names = order.split()
    expected = {(better, worse) for at, better in enumerate(names) for worse in names[at + 1 :]}
    assert set(comparisons_of(paper)[name].published_order) == expected


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


def test_variants_that_were_not_measured_are_left_out() -> None:
    found = agreement([("a", "b"), ("a", "c")], {"a": 1.0, "c": 0.5}, {("a", "c"): 0.01})
    assert (found.n_pairs, found.tau) == (1, 1.0)
    assert agreement([], {"a": 1.0}, {}).tau is None
