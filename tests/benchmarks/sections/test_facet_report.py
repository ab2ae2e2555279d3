from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.facets import METRICS
from benchmarks.sections.facet_rankings import Ranking
from benchmarks.sections.facet_report import draw_facets, facets_table, fold_means
from benchmarks.sections.records import FacetsRecord
from indexer.training.origin import Origin


@pytest.fixture
def record(origin: Origin) -> FacetsRecord:
    """Five queries of one facet; `facet to any` is a tenth better than evidence in each of them."""
    evidence = [0.5, 0.4, 0.3, 0.2, 0.1]
    values = {ranking.value: evidence for ranking in Ranking}
    values[Ranking.FACET_TO_ANY.value] = [value + 0.1 for value in evidence]
    return FacetsRecord(
        datasets={"method": "csfcube@0"},
        encoder="mean@0f",
        settings={"exceeding": 4},
        is_quick=False,
        n_documents=9,
        query_ids={"method": list("abcde")},
        folds={"method": [1, 1, 2, 2, 2]},
        per_query={metric: {"method": values} for metric in METRICS},
        zero_shares={"method": dict.fromkeys(values, 0.25)},
        largest_pair={
            "method": {
                "relevant": [1.0, 0.5, None, 1.0, 0.5],
                "irrelevant": [0.5, None, 0.5, 0.0, 0.0],
                "by chance": [0.25] * 5,
            }
        },
        origin=origin,
    )


def test_folds_weigh_the_same() -> None:
    assert fold_means([0.5, 0.7, 0.1, 0.1, 0.1], [1, 1, 2, 2, 2]) == pytest.approx([0.6, 0.1])
    assert fold_means([0.5], [2]) == [0.5]


def test_a_row_has_the_mean_of_the_folds_and_adjusted_tests(record: FacetsRecord) -> None:
    lines = facets_table([record]).splitlines()
    row = next(line for line in lines if "| facet to any |" in line)
    # Of 32 sign patterns two are as extreme; Holm takes the smallest of five p-values five times.
    expected = "| mean | method (5) | facet to any | 0.425 | 0.425 | 0.425 | 0.425 ["
    assert row.startswith(expected) and row.endswith("] | 0.550 / 0.300 | 25% | 0.312 | 0.312 |")
    assert sum("| all (5) |" in line for line in lines) == 6
    assert lines[-1] == "Measured: commit 0123456789 on A Processor, 2 cores, 24 GiB."


def test_an_abstract_that_is_asked_with_in_two_facets_is_one_case(record: FacetsRecord) -> None:
    by_facet = {metric: {**own, "result": own["method"]} for metric, own in record.per_query.items()}
    both = replace(
        record,
        query_ids={"method": list("abcde"), "result": list("abcde")},
        folds={**record.folds, "result": record.folds["method"]},
        per_query=by_facet,
        zero_shares={**record.zero_shares, "result": record.zero_shares["method"]},
        largest_pair={**record.largest_pair, "result": record.largest_pair["method"]},
    )
    once = next(line for line in facets_table([record]).splitlines() if "| all (5) | facet to any |" in line)
    twice = next(line for line in facets_table([both]).splitlines() if "| all (10) | facet to any |" in line)
    assert twice == once.replace("all (5)", "all (10)")


def test_largest_pairs_are_compared_over_queries_that_have_both(record: FacetsRecord) -> None:
    row = next(line for line in facets_table([record]).splitlines() if "0.750 (4)" in line)
    assert row == "| mean | method | 0.750 (4) | 0.250 (4) | 0.250 (5) | 0.250 | 0.125 |"


def test_the_plot_is_written_as_png_and_svg(record: FacetsRecord, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    png, svg = draw_facets(record, tmp_path / "plots")
    assert (png.name, svg.suffix) == ("facets-csfcube-mean.png", ".svg")
    assert png.read_bytes()[:4] == b"\x89PNG" and "<svg" in svg.read_text()
