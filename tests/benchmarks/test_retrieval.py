from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.datasets import Dataset, read_qrels, read_queries
from benchmarks.runs import read_runs
from benchmarks.systems import BuildCost, Evidence
from benchmarks.tasks.retrieval import ALL_SYSTEMS, Trial, main, measure, open_trial
from engine.index import Index
from indexer.origin import Origin
from tests.benchmarks.made_runs import error_of, run_program


@pytest.fixture
def trial(dataset: Dataset, origin: Origin) -> Trial:
    qrels = read_qrels(dataset, "test")
    return Trial(dataset, "test", qrels, read_queries(dataset, qrels), 100, origin)


def test_an_index_is_measured_query_by_query(index: Index, trial: Trial) -> None:
    run, rankings = measure(Evidence(index, "mean@0f", exact=True), BuildCost(1.5, 30), trial)
    assert [doc_id for doc_id, _ in rankings["cat"]] == ["kitten", "dog", "rocket"]
    assert [doc_id for doc_id, _ in run.cases[0].ranking] == ["kitten", "rocket", "cat"]
    assert run.case_ids == ["dog", "cat"]
    assert run.values("nDCG@10") == [0.5, 1.0]
    means = {"nDCG@10": 0.75, "Recall@10": 1.0, "Recall@100": 1.0, "MRR@10": 0.6667, "MAP@100": 0.6667}
    assert {name: run.mean(name) for name in run.measures} == means
    assert (run.name, run.encoder, run.fit_seconds) == ("pets-evidence-mean-exact-test", "mean@0f", 1.5)


def test_cases_hold_the_words_of_queries_and_of_relevant_targets(dataset: Dataset, origin: Origin) -> None:
    # Title and heading are words of the text.
    facts = open_trial(dataset, "test", 100, origin).facts
    assert facts == {"dog": {"words": 12, "target_words": 12}, "cat": {"words": 12, "target_words": (11 + 12) / 2}}


def test_the_command_writes_runs_here_and_in_the_format_of_trec(folder: Path, tmp_path: Path) -> None:
    places = ["--out", tmp_path / "out", "--run-out", tmp_path / "runs"]
    done = run_program(main, folder, "--systems", "bm25", *places)
    (run,) = read_runs(tmp_path / "out")
    assert "| pets (2) | bm25 |  | 1.000 [1.000, 1.000] | 1.000 | 1.000 | 1.000 |  |  |" in done.output
    assert run.origin.command == "python -m benchmarks run retrieval pets --systems bm25 --run-out runs"
    lines = (tmp_path / "runs" / "pets-bm25-test.trec").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["dog"] * 3 + ["cat"] * 3
    assert lines[3].split()[1:4] == ["Q0", "kitten", "1"]
    judgments = (tmp_path / "runs" / "pets-test.qrels").read_text()
    assert judgments == "dog 0 cat 1\ncat 0 kitten 2\ncat 0 dog 1\n"


def test_mistakes_are_reported_in_one_line(folder: Path) -> None:
    unknown = error_of(main, folder, "--systems", "bm24")
    assert unknown.endswith(f"'bm24' is not one of {', '.join(ALL_SYSTEMS)}")
    absent = error_of(main, folder, "--systems", "bm25", "--split", "dev")
    assert absent.startswith("Error: dataset pets has no split 'dev'")


def test_judged_targets_that_are_not_in_the_corpus_are_reported(folder: Path) -> None:
    with (folder / "qrels.tsv").open("a") as file:
        file.write("cat\tlion\t1\n")
    done = run_program(main, folder, "--systems", "bm25", "--out", folder)
    assert "pets: 1 relevant targets are not in corpus.jsonl.gz, the first is 'lion'" in done.stderr


def test_a_quick_run_measures_every_system(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    places = ["--work", tmp_path / "work", "--out", tmp_path / "out"]
    run_program(main, folder, "--quick", "--encoder", bert_folder, *places)
    written = read_runs(tmp_path / "out")
    assert [run.name for run in written] == [
        f"pets_quick-{name}-test" for name in ("bm25", "chunks-bert", "document-bert", "evidence-bert", "words")
    ]
    assert all("--quick" in run.origin.command for run in written)


def test_words_alone_need_no_encoder(folder: Path, tmp_path: Path) -> None:
    run_program(main, folder, "--systems", "words", "--work", tmp_path / "work", "--out", tmp_path / "out")
    (run,) = read_runs(tmp_path / "out")
    assert (run.name, run.encoder, run.n_tokens) == ("pets-words-test", "", 0)
    (made,) = (tmp_path / "work").glob("*-words.lm")
    with Index.open(made) as index:
        assert index.snapshot.width == 0 and index.snapshot.n_chunks == 0
