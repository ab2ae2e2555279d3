from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from benchmarks.datasets import Dataset, read_qrels
from benchmarks.metrics import PRIMARY
from benchmarks.pairs.rerank_record import RerankRecord
from benchmarks.pairs.rerank_table import rerank_table
from benchmarks.pairs.splitting import Split
from benchmarks.records import read_records
from benchmarks.report import is_partial
from benchmarks.rerank import main
from benchmarks.retrieval import main as retrieval
from benchmarks.runs import read_run, run_files
from tests.benchmarks.pairs.linked_corpus import write_linked


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_linked(tmp_path_factory.mktemp("rerank") / "linked")


def run(dataset: Dataset, *options: str) -> Result:
    arguments = [str(dataset.corpus.parent), "--pairs-per-step", "8", "--steps", "12", "--small", *options]
    arguments += ["--work", str(dataset.corpus.parent.parent / "work")]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.fixture(scope="module")
def record(linked: Dataset, tmp_path_factory: pytest.TempPathFactory) -> RerankRecord:
    out = tmp_path_factory.mktemp("out")
    done = run(linked, "--scorers", "re2", "--depth", "8", "--out", str(out))
    assert done.exit_code == 0, done.stderr
    (written,) = read_records(out)
    assert isinstance(written, RerankRecord)
    return written


def test_before_is_what_the_first_system_gives_by_itself(linked: Dataset, record: RerankRecord, tmp_path: Path) -> None:
    options = ["--systems", "bm25", "--out", str(tmp_path)]
    CliRunner().invoke(retrieval, [str(linked.corpus.parent), *options], catch_exceptions=False)
    (alone,) = map(read_run, run_files(tmp_path))
    assert record.before == {name: [round(value, 4) for value in alone.values(name)] for name in alone.measures}
    assert record.query_ids == alone.case_ids == list(read_qrels(linked, "test"))
    assert record.first.system == "bm25"


def test_no_order_of_the_same_targets_is_above_the_best(record: RerankRecord) -> None:
    best = np.array(record.at_best[PRIMARY])
    assert np.all(np.array(record.after[PRIMARY]) <= best + 1e-9)
    assert np.all(np.array(record.before[PRIMARY]) <= best + 1e-9)
    assert record.after[PRIMARY] != record.before[PRIMARY]
    assert record.after["Recall@100"] == record.before["Recall@100"]  # nothing is found, nothing lost
    assert record.course is not None and record.course.n_steps > 0


def test_a_record_is_named_by_stage_scorer_and_what_was_chosen(record: RerankRecord) -> None:
    assert record.name.startswith("rerank-linked-bm25-first8-re2-aan-")
    assert replace(record, pairs="0" * 12).name != record.name
    assert replace(record, depth=9).name != record.name
    assert replace(record, chosen={}).name != record.name
    assert replace(record, first=replace(record.first, system="tfidf")).name != record.name
    assert set(record.n_pairs) == {split.value for split in Split}


def test_records_of_valid_and_of_quick_runs_are_shown_nowhere(record: RerankRecord) -> None:
    assert not is_partial(record)
    assert is_partial(replace(record, split="valid")) and is_partial(replace(record, is_quick=True))


def test_the_table_tests_after_against_before(record: RerankRecord) -> None:
    queries = [str(number) for number in range(12)]
    gained = replace(
        record,
        query_ids=queries,
        before={metric: [0.25] * 12 for metric in record.before},
        after={metric: [0.5] * 12 for metric in record.before},
        at_best={metric: [1.0] * 12 for metric in record.before},
        seconds_per_query=0.5,
    )
    table = rerank_table([gained, replace(gained, scorer="han", after=gained.before, course=None)])
    rows = [line for line in table.splitlines() if line.startswith("| linked")]
    assert rows[0].startswith(
        "| linked (12) | bm25, 8 | re2, small, pairs aan | 0.250 | 0.500 [0.500, 0.500] | 1.000 |"
    )
    assert rows[0].endswith("| < 0.001 |")
    assert (
        "| han, small, pairs aan | 0.250 | 0.250 [0.250, 0.250] | 1.000 | 0.250 | 0.250 | 0.50 |  | 1.000 |" in rows[1]
    )
    assert rerank_table([]) == ""


def test_queries_that_chose_the_weights_are_refused(linked: Dataset, tmp_path: Path) -> None:
    refused = run(linked, "--split", "valid", "--out", str(tmp_path))
    assert refused.exit_code == 1
    assert "queries of split 'valid' stand in pairs that scorers learn from" in refused.stderr
    assert read_records(tmp_path) == []


def test_a_quick_run_writes_nothing_and_wrong_names_are_refused(linked: Dataset, tmp_path: Path) -> None:
    done = run(linked, "--quick", "--scorers", "matchbert,re2", "--encoder", "nowhere-at-all")
    assert done.exit_code == 1 and "1 of 2 scorers failed; matchbert:" in done.stderr
    assert "| re2, small, pairs aan |" in done.output
    refused = run(linked, "--scorers", "bm25")
    assert refused.exit_code == 2 and "'bm25' is not one of dssm," in refused.stderr
