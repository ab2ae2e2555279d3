from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.facets import main, quick_part
from benchmarks.sections.faceted import FacetTask
from tests.benchmarks.sections.corpora import write_faceted

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
    monkeypatch.setattr("benchmarks.facets.RESULTS", tmp_path / "results")
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
