from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchmarks.metrics import evaluate
from benchmarks.runs import KEPT, Run, RunError, ranked_case, read_header, read_run, run_files, same_cases, write_run
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run


@dataclass(frozen=True)
class Part:
    weight: float


@dataclass(frozen=True)
class Whole:
    label: str
    parts: list[Part]
    by_name: dict[str, Part]
    maybe: Part | None
    later: int = 7  # runs that are older than this field have none


QRELS = {"cat": {"kitten": 2, "dog": 1, "rocket": 0}, "dog": {"cat": 1}}


@pytest.fixture
def ranked(origin: Origin) -> Run:
    rankings = {"cat": [("dog", 0.75), ("kitten", 1 / 3)], "dog": [("kitten", 0.5)]}
    cases = [ranked_case(query_id, rankings[query_id], QRELS[query_id]) for query_id in QRELS]
    return replace(made_run("evidence", [], origin, encoder="mean@0f", k=100), cases=cases)


def test_a_run_is_read_as_it_was_written(ranked: Run, tmp_path: Path) -> None:
    path = write_run(ranked, tmp_path)
    assert path == tmp_path / "runs/retrieval/pets-evidence-mean-test.jsonl.gz"
    assert read_run(path) == ranked and list(run_files(tmp_path)) == [path]
    assert read_header(path)["origin"]["commit"] == ranked.origin.commit
    assert write_run(ranked, tmp_path / "again").read_bytes() == path.read_bytes()


def test_measures_of_a_ranking_are_computed_from_it(ranked: Run) -> None:
    expected = evaluate(QRELS, {"cat": ["dog", "kitten"], "dog": ["kitten"]})
    assert {name: ranked.values(name) for name in ranked.measures} == {
        name: list(values.values()) for name, values in expected.items()
    }
    assert ranked.mean("Recall@10") == 0.5
    assert ranked.cases[0].ranking == [("dog", 0.75), ("kitten", 0.333333)]
    assert ranked.cases[0].relevant == {"kitten": 2, "dog": 1}


def test_targets_behind_the_kept_ranks_count_for_deep_recall(origin: Origin) -> None:
    ranking = [(f"d{rank}", -float(rank)) for rank in range(1, 500)]
    case = ranked_case("q", ranking, {"d3": 1, "d400": 1, "absent": 1})
    assert (len(case.ranking), case.beyond) == (KEPT, {"d400": 400})
    run = Run(task="retrieval", dataset="pets@0", system="a", k=1000, origin=origin, cases=[case])
    assert (run.mean("Recall@100"), run.mean("Recall@1000")) == (0.3333, 0.6667)


def test_the_name_of_a_run_holds_its_variant_split_and_seed(ranked: Run, origin: Origin) -> None:
    assert replace(ranked, variant="lead", split="valid").name == "pets-evidence-mean-lead-valid"
    assert replace(ranked, origin=replace(origin, seed=3)).name == "pets-evidence-mean-test-seed3"


def test_a_run_of_fewer_cases_does_not_replace_a_larger_one(origin: Origin, tmp_path: Path) -> None:
    write_run(made_run("bm25", [0.5, 0.25], origin), tmp_path)
    with pytest.raises(RunError, match=r"holds 2 cases, not 1; write the smaller run elsewhere: --out FOLDER"):
        write_run(made_run("bm25", [0.5], origin), tmp_path)
    write_run(made_run("bm25", [0.75, 0.75], origin), tmp_path)


def test_runs_are_compared_on_the_same_cases_of_the_same_data(origin: Origin) -> None:
    one, other = made_run("bm25", [0.5], origin), made_run("tfidf", [0.25], origin)
    assert same_cases(one, [other, replace(other, dataset="pets@1"), made_run("wmd", [1, 1], origin)]) == [other]


def test_details_are_rebuilt_as_the_dataclass_of_a_task(ranked: Run) -> None:
    details = {"label": "a", "parts": [{"weight": 2}], "by_name": {"x": {"weight": 3}}, "maybe": {"weight": 4}}
    part, parts, by_name = Part(4), [Part(2)], {"x": Part(3)}
    assert replace(ranked, details=details).details_as(Whole) == Whole("a", parts, by_name, part)
    assert replace(ranked, details={**details, "maybe": None, "later": 8}).details_as(Whole).later == 8


@pytest.mark.parametrize("text", ["", "{}\n", "no JSON\n"])
def test_the_error_for_a_file_that_is_not_a_run_names_the_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(RunError, match=r"notes.jsonl.gz is no run .*; keep nothing else in the folder of runs"):
        read_run(path)
