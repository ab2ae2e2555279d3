from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.runs import Case, Run, read_run, run_files
from benchmarks.sections.faceted import FacetTask, Ranking
from benchmarks.tasks.facets import METRICS, FacetsDetails, facets_table, main, quick_part
from indexer.origin import Origin
from tests.encoders.tiny import ENCODERS

QUERIES = list(zip("abcde", [0.5, 0.4, 0.3, 0.2, 0.1], [1, 1, 2, 2, 2], strict=True))  # name, value, fold
LARGEST = {
    "relevant": [1.0, 0.5, None, 1.0, 0.5],
    "irrelevant": [0.5, None, 0.5, 0.0, 0.0],
    "by chance": [0.25] * 5,
}
OF_INDEX = tuple(ranking for ranking in Ranking if ranking is not Ranking.MODEL)  # rankings that every encoder has


def made_runs(origin: Origin, *facets: str, rankings: Sequence[Ranking] = OF_INDEX) -> list[Run]:
    """Five queries of each facet; `facet to any` is 0.1 better than the other rankings for each of them."""
    runs = []
    for ranking in rankings:
        better = 0.1 * (ranking is Ranking.FACET_TO_ANY)
        cases = [
            Case(
                id=f"{facet} {query}",
                values=dict.fromkeys(METRICS, value + better),
                facts={"fold": fold, **{kind: share for kind, of in LARGEST.items() if (share := of[at]) is not None}},
                labels={"facet": facet},
                group=query,
            )
            for facet in facets
            for at, (query, value, fold) in enumerate(QUERIES)
        ]
        details = FacetsDetails(dict.fromkeys(facets, "csfcube@0"), 9, dict.fromkeys(facets, 0.25))
        given = {"task": "facets", "dataset": "csfcube@0", "encoder": "mean@0f", "details": asdict(details)}
        runs.append(Run(**given, system=ranking.value, origin=origin, cases=cases))
    return runs


def row_of(runs: list[Run], start: str) -> str:
    return next(line for line in facets_table(runs).splitlines() if start in line)


def test_a_row_has_the_mean_of_the_folds_and_adjusted_tests(origin: Origin) -> None:
    lines = facets_table(made_runs(origin, "method")).splitlines()
    row = next(line for line in lines if "| facet to any |" in line)
    # Two of 32 sign patterns are as extreme; Holm's correction multiplies the smallest of five p-values by five.
    expected = "| mean (5) | facet to any | 0.425 | 0.425 | 0.425 | 0.425 ["
    assert row.startswith(expected) and row.endswith("] | 0.550 / 0.300 | 25% | 0.312 | 0.312 |")
    assert sum("| mean (5) |" in line for line in lines) == 6
    # Largest pairs are compared over the queries that have both values.
    assert "| mean | method | 0.750 (4) | 0.250 (4) | 0.250 (5) | 0.250 | 0.125 |" in lines


def test_an_abstract_that_is_the_query_of_two_facets_counts_as_one_case(origin: Origin) -> None:
    once = row_of(made_runs(origin, "method"), "| mean (5) | facet to any |")
    twice = row_of(made_runs(origin, "method", "result"), "| mean (10) | facet to any |")
    assert twice == once.replace("mean (5)", "mean (10)")


def test_a_model_has_a_row_among_the_rankings_and_one_of_largest_pairs(origin: Origin) -> None:
    assert "model" not in facets_table(made_runs(origin, "method")).lower()
    runs = made_runs(origin, "method", rankings=tuple(Ranking))
    assert row_of(runs, "| mean (5) | model |").startswith("| mean (5) | model | 0.325 | 0.325 | 0.325 | 0.325 [")
    assert row_of(runs, "| mean, model |").startswith("| mean, model | method | 0.750 (4) | 0.250 (4) |")


pytest.importorskip("sklearn")


@pytest.mark.slow
def test_the_command_writes_a_run_of_each_ranking(faceted_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [str(faceted_folder), "--encoder", str(bert_folder), *out], catch_exceptions=False)
    runs = {run.system: run for run in map(read_run, run_files(tmp_path / "out"))}
    assert runs.keys() == {ranking.value for ranking in OF_INDEX}
    run = runs["facet to facet"]
    assert (run.name, run.details["n_documents"]) == ("facets-facet to facet-bert-test", 5)
    assert run.case_ids[1:4] == ["background far", "method q", "method far"]
    # Gain 3 comes first; gain 1 is one of three with score 0, at ranks 2 to 4.
    value = (3 + (1 / np.log2(3) + 1 / np.log2(4) + 1 / np.log2(5)) / 3) / (3 + 1 / np.log2(3))
    first, second = (case.values for case in run.cases if case.labels["facet"] == "method")
    assert first["nDCG@10"] == pytest.approx(value, abs=1e-4)
    # A fifth of four candidates is less than one, so no rank counts; a candidate of relevance 2 comes first.
    assert (first["nDCG%20"], second["nDCG%20"], first["MAP"]) == (0.0, 0.0, 1.0)
    assert "| bert (6) | facet to facet | " in done.output


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["colde fixed", "smith fixed normal"])
def test_the_command_ranks_by_the_model_where_the_encoder_explains_itself(
    kind: str, faceted_folder: Path, bert_folder: Path, tmp_path: Path
) -> None:
    ENCODERS[kind](bert_folder).save_pretrained(tmp_path / "encoder")
    given = [str(faceted_folder), "--encoder", str(tmp_path / "encoder"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    runs = {run.system: run for run in map(read_run, run_files(tmp_path / "out"))}
    assert runs.keys() == {ranking.value for ranking in Ranking}
    assert runs["model"].case_ids == runs["evidence"].case_ids
    assert all({"relevant", "by chance"} & case.facts.keys() for case in runs["model"].cases)
    assert "| encoder (6) | model | " in done.output and "| encoder, model | method |" in done.output


def test_a_quick_run_is_of_a_part(faceted_folder: Path, bert_folder: Path) -> None:
    given = [str(faceted_folder), "--encoder", str(bert_folder), "--quick"]
    assert "| bert (6), quick |" in CliRunner().invoke(main, given, catch_exceptions=False).output


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


def test_mistakes_are_reported_in_one_line(tmp_path: Path, faceted_folder: Path) -> None:
    assert "holds no corpus.jsonl.gz" in CliRunner().invoke(main, [str(tmp_path)]).stderr
    with (faceted_folder / "qrels_method.tsv").open("a") as file:
        file.write("\nq\tunknown\t1\n")
    error = CliRunner().invoke(main, [str(faceted_folder)]).stderr
    assert "Error: 'unknown' is judged but not in" in error and "like 1 of 6 queries and candidates" in error
