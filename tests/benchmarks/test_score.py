from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.formats.trec import write_qrels, write_run
from benchmarks.score import main, score_run
from benchmarks.significance import bootstrap_interval, randomization_p

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
