from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.lexical import BM25
from benchmarks.runs import read_run, read_runs
from benchmarks.scisumm import CandidateRanker, Collection, open_scisumm, read_collection
from benchmarks.systems import BuildCost
from benchmarks.tables.quality import SummaryDetails
from benchmarks.tasks.summaries import main, make_trial, measure, prepared_systems
from engine.machine import Origin
from tests.benchmarks.made_runs import error_of, run_program
from tests.benchmarks.test_scisumm import write_scisumm


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_scisumm(tmp_path / "data")


def write_citations(data: Path) -> None:
    """The judgments of the retrieval task, whose index holds the papers."""
    folder = data / "clscisumm"
    (folder / "qrels_citation.tsv").write_text("query_id\tdoc_id\trelevance\nwords0\twords\t1\n")
    (folder / "splits_citation.json").write_text(json.dumps({"test": ["words0"]}))


def test_values_are_means_over_draws(data: Path, origin: Origin) -> None:
    scisumm = open_scisumm("cl2018train", data)
    trial = make_trial("citing-drawn", scisumm, 3, origin)
    papers = [paper for paper in read_collection(scisumm, Collection.PAPERS) if paper.doc_id != "words3"]
    system = BM25().fit(papers)  # the missing paper is never found
    run = measure(system, BuildCost(1.0), trial)
    shares = []
    for draw in trial.draws:
        for question in draw:
            ranking = [doc_id for doc_id, _ in system.search(scisumm.summaries[question.query_id], 100)]
            found = [doc_id for doc_id in ranking if doc_id in question.candidates][:5]
            shares.append(sum(doc_id in question.relevant for doc_id in found) / 5)
    by_draw = np.reshape(shares, (3, 4))
    assert run.values("P@5") == [round(value, 4) for value in by_draw.mean(axis=0)]
    details = run.details_as(SummaryDetails)
    assert run.mean("P@5") == round(by_draw.mean(), 4)
    assert details.deviations["P@5"] == round(by_draw.mean(axis=1).std(ddof=1), 4)
    assert by_draw.min() == 0.8  # so the means are over different values
    assert (len(run.cases), details.n_candidates, details.n_draws) == (4, 20.0, 3)


def test_the_command_writes_a_run_for_each_system(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    options = ["--split", "small", "--systems", "bm25,tfidf", "--data", data, "--out", tmp_path / "out"]
    done = run_program(main, "reference-topic", *options)
    assert "| bm25 | 1.000 [1.000, 1.000] | 1.000 | 1.000 |  |" in done.output
    assert "| tfidf | 1.000 [1.000, 1.000] | 1.000 | 1.000 | 1.000 |" in done.output
    run = read_run(tmp_path / "out/runs/summaries/clscisumm-tfidf-reference-topic-small.jsonl.gz")
    assert run.case_ids == ["sum:parsing", "sum:speech"]
    assert {name: run.mean(name) for name in run.measures} == {"MRR": 1.0, "P@1": 1.0, "nDCG": 1.0}
    assert run.origin.command.endswith("reference-topic --split small --systems bm25,tfidf")


@pytest.mark.parametrize("task", ["citing", "citances"])
def test_an_encoder_ranks_papers_and_citances(task: str, data: Path, tmp_path: Path, bert_folder: Path) -> None:
    options = ["--split", "cl2018train", "--systems", "evidence,document", "--encoder", bert_folder]
    write_citations(data)
    done = run_program(main, task, *options, "--data", data, "--work", tmp_path, "--out", tmp_path / "out")
    rows = [line.split(" | ")[0] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert rows == ["| System", "| ---", "| document, bert", "| evidence, bert"]
    assert f"CL-SciSumm, {task} (cl2018train): 4 summaries" in done.stdout


def test_the_papers_index_is_that_of_the_retrieval_task(data: Path, tmp_path: Path, bert_folder: Path) -> None:
    write_citations(data)
    options = ["--split", "small", "--systems", "document", "--encoder", bert_folder, "--data", data]
    done = run_program(main, "reference", *options, "--work", tmp_path / "work", "--out", tmp_path / "out")
    (index,) = (tmp_path / "work").iterdir()
    assert index.name.startswith("clscisumm@")
    assert "28 candidates each" in done.output


def test_few_candidates_are_ranked_exactly(data: Path, tmp_path: Path, origin: Origin, bert_folder: Path) -> None:
    write_citations(data)
    scisumm = open_scisumm("cl2018train", data)
    trial = make_trial("citing-drawn", scisumm, 1, origin)
    for system, _ in prepared_systems(["evidence"], trial, str(bert_folder), tmp_path):
        assert system.settings["exact"] is True
        ranker = CandidateRanker(system, scisumm.summaries, trial.depth)
        assert all(question.relevant <= set(ranker.rank(question)) for question in trial.draws[0])


@pytest.mark.parametrize("pairs", [0, 1950])
def test_training_on_the_data_is_recorded_and_marked(pairs: int, data: Path, tmp_path: Path, bert_folder: Path) -> None:
    trained = shutil.copytree(bert_folder, tmp_path / "trained")
    row = f"| clscisumm | 1,653 | {pairs:,} | 4c0d61519ba3 | CC BY 4.0 |"
    head = "| corpus | documents | pairs | checksum | licence |\n| --- | --- | --- | --- | --- |"
    (trained / "README.md").write_text(f"# trained\n\n## Training data\n\n{head}\n{row}\n\n## Objective\n")
    write_citations(data)
    options = ["--split", "small", "--systems", "document,bm25", "--encoder", trained, "--data", data]
    done = run_program(main, "citing", *options, "--work", tmp_path / "work", "--out", tmp_path / "out")
    runs = read_runs(tmp_path / "out")
    marked = {run.system: run.details_as(SummaryDetails).is_trained_on_it for run in runs}
    assert marked == {"document": pairs > 0, "bm25": False}
    assert ("| document, trained† | " in done.stdout) == (pairs > 0)
    note = "† was trained on pairs of this dataset, citing papers with papers that they cite"
    assert (note in done.stdout) == (pairs > 0)


def test_mistakes_are_reported_in_one_line(data: Path) -> None:
    options = ["--systems", "bm25", "--data", data]
    assert "Error: dataset clscisumm has no split 'test'" in error_of(main, "reference", *options)
    (data / "clscisumm" / "qrels_citing.tsv").write_text("query_id\tdoc_id\trelevance\n")
    expected = "Error: no summary of split 'cl2018train' can be used in citing-drawn; take another one"
    assert expected in error_of(main, "citing-drawn", *options)
