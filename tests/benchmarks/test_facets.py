from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.sections.faceted import FacetTask, Ranking
from benchmarks.sections.records import FacetsRecord
from benchmarks.tasks.facets import METRICS, draw_facets, facets_table, fold_means, main, quick_part
from indexer.training.origin import Origin
from tests.benchmarks.sections.corpora import write_faceted


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


pytest.importorskip("sklearn")


@pytest.fixture
def faceted_folder(tmp_path: Path) -> Path:
    return write_faceted(tmp_path / "facets")


def test_the_command_writes_a_record_and_its_plot(faceted_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out"), "--plot-out", str(tmp_path / "plots")]
    done = CliRunner().invoke(main, [str(faceted_folder), "--encoder", str(bert_folder), *out], catch_exceptions=False)
    (path,) = (tmp_path / "out").iterdir()
    record = json.loads(path.read_text())
    assert (path.name, record["is_quick"], record["n_documents"]) == ("facets-facets-bert.json", False, 5)
    assert record["query_ids"] == {facet: ["q", "far"] for facet in ("background", "method", "result")}
    # Gain 3 comes first; gain 1 is one of three with score 0, at ranks 2 to 4.
    value = (3 + (1 / np.log2(3) + 1 / np.log2(4) + 1 / np.log2(5)) / 3) / (3 + 1 / np.log2(3))
    assert record["per_query"]["nDCG@10"]["method"]["facet to facet"][0] == pytest.approx(value, abs=1e-4)
    # Of four candidates a fifth is none, so that no rank counts; one of relevance 2 comes first.
    published = [record["per_query"][name]["method"]["facet to facet"] for name in ("nDCG%20", "MAP")]
    assert (published[0], published[1][0]) == ([0.0, 0.0], 1.0)
    assert "| bert | method (2) | facet to facet | " in done.output
    assert {file.suffix for file in (tmp_path / "plots").iterdir()} == {".png", ".svg"}


def test_a_quick_run_writes_no_record_unless_asked(
    faceted_folder: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.tasks.facets.RESULTS", tmp_path / "results")
    given = [str(faceted_folder), "--encoder", str(bert_folder), "--quick"]
    assert "method (2), quick" in CliRunner().invoke(main, given, catch_exceptions=False).output
    assert not (tmp_path / "results").exists()


def test_a_quick_part_has_a_query_of_each_fold_and_half_of_its_candidates_relevant() -> None:
    judged = {f"c{number}": 1 + number % 3 if number < 60 else 0 for number in range(120)}
    queries = {f"q{number}": judged for number in range(8)}
    folds = {name: 1 + number % 2 for number, name in enumerate(queries)}
    task = FacetTask("method", "d@0", Path("corpus"), queries, folds)
    (part,) = quick_part([task], seed=0)
    assert sorted(task.folds[query] for query in part.qrels) == [1, 2]
    for candidates in part.qrels.values():
        assert len(candidates) == 40 and sum(value > 0 for value in candidates.values()) == 20
    assert quick_part([task], seed=0) == [part] != quick_part([task], seed=1)


def test_mistakes_are_one_line(tmp_path: Path, faceted_folder: Path) -> None:
    assert "holds no corpus.jsonl.gz" in CliRunner().invoke(main, [str(tmp_path)]).stderr
    with (faceted_folder / "qrels_method.tsv").open("a") as file:
        file.write("\nq\tunknown\t1\n")
    said = CliRunner().invoke(main, [str(faceted_folder)]).stderr
    assert "Error: 'unknown' is judged but not in" in said and "like 1 of 6 queries and candidates" in said
