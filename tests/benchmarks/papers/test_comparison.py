from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.papers.comparison import Comparison, System, Variant, above_all, flat, rising
from benchmarks.papers.encoders import Matched, PairData, Reordered
from benchmarks.papers.judges import Matching
from benchmarks.papers.needs import Need
from benchmarks.papers.papers import PAPERS, comparisons_of, quick_scale
from indexer.origin import Origin
from tests.benchmarks.papers.cases import SCALE, conditions


def made(published: dict[str, float | None], found: tuple[tuple[str, str], ...] = ()) -> Comparison:
    data = PairData("pets")
    variants = tuple(Variant(name, Matched("colde", data), value) for name, value in published.items())
    return Comparison("parts", "CoLDE", "table 2", Matching(data), "a", variants, SCALE, found)


def test_the_published_order_is_that_of_unequal_numbers_and_of_stated_findings() -> None:
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
def test_declared_comparisons_are_consistent(paper: str) -> None:
    declared = import_module(f"benchmarks.papers.{paper}").COMPARISONS
    assert len(comparisons_of(paper)) == len(declared)
    for comparison in declared:
        names = [variant.name for variant in comparison.variants]
        assert len(set(names)) == len(names)
        assert comparison.reference in names
        assert {name for pair in comparison.published_order for name in pair} <= set(names)
        systems = [tuple(variant.system.settings.items()) for variant in comparison.variants]
        assert len(set(systems)) == len(systems)  # all variants differ
        is_matching = isinstance(comparison.judge, Matching)  # only this judge reads in another order
        assert is_matching or not any(isinstance(variant.system, Reordered) for variant in comparison.variants)
        assert quick_scale(comparison).steps < comparison.scale.steps
        assert comparison.is_long == any(_need(variant.system) is not None for variant in comparison.variants)


def _need(system: System) -> Need | None:
    data = getattr(system.system if isinstance(system, Reordered) else system, "data", None)
    return data.need if isinstance(data, PairData) else None


def test_sum_and_mean_are_two_rows_only_where_they_are_two_models() -> None:
    rows = {name: [one.name for one in comparison.variants] for name, comparison in comparisons_of("smith").items()}
    assert rows["combination-aan"] == rows["combination-wiki"] == ["normal", "mean", "attention"]
    assert rows["combination-aan-released"] == ["normal", "sum", "mean", "attention"]


def test_rows_of_batches_name_the_batch_that_is_run() -> None:
    batch = comparisons_of("colde")["batch"]
    budgets = [variant.system.budget(batch.scale) for variant in batch.variants if isinstance(variant.system, Matched)]
    assert [variant.name for variant in batch.variants] == [str(budget.pairs_per_step) for budget in budgets]
    seen = [budget.pairs_per_step * budget.steps for budget in budgets]
    assert max(seen) - min(seen) <= 0.02 * max(seen)


def test_every_colde_of_the_paper_has_chunks_of_512_tokens(bert_folder: Path, tmp_path: Path, origin: Origin) -> None:
    for comparison in comparisons_of("colde").values():
        given = replace(conditions(tmp_path, bert_folder, origin), scale=comparison.scale)
        for variant in comparison.variants:
            system = variant.system.system if isinstance(variant.system, Reordered) else variant.system
            assert isinstance(system, Matched)
            settings = system.scorer(given).settings
            assert (settings["variant"], settings["size_chunk_tokens"]) == ("paper", "510")
            assert settings["whole_probability"] == 0


def test_lengths_of_training_are_those_that_are_read(bert_folder: Path, tmp_path: Path, origin: Origin) -> None:
    for variant in comparisons_of("colde")["length"].variants:
        assert isinstance(variant.system, Matched)
        settings = variant.system.scorer(conditions(tmp_path, bert_folder, origin)).settings
        assert str(int(settings["size_max_chunks"]) * 2 * 512) == variant.name


@pytest.mark.parametrize("paper", ["smith", "colde", "tde"])
def test_every_declared_encoder_can_be_made(paper: str, bert_folder: Path, tmp_path: Path, origin: Origin) -> None:
    given = conditions(tmp_path, bert_folder, origin)
    for comparison in comparisons_of(paper).values():
        for variant in comparison.variants:
            if isinstance(variant.system, Matched):
                assert variant.system.scorer(given).is_trained


@pytest.mark.parametrize(
    ("paper", "name", "order"),
    [
        ("smith", "pretraining-aan", "wp-sp wp np"),
        ("smith", "combination-aan", "normal attention mean"),
        ("smith", "combination-aan-released", "normal attention sum mean"),
        ("smith", "combination-wiki", "normal attention mean"),
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
