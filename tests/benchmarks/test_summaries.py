from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.bm25 import BM25
from benchmarks.record_file import rebuild
from benchmarks.records import BuildCost
from benchmarks.scisumm.collection import Collection, open_scisumm, read_collection
from benchmarks.scisumm.ranking import CandidateRanker
from benchmarks.scisumm.record import SummaryRecord
from benchmarks.scisumm.systems import prepared_systems
from benchmarks.summaries import main, make_trial, measure
from indexer.training.origin import Origin
from tests.benchmarks.scisumm_folder import write_scisumm


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
    record = measure(system, BuildCost(1.0), trial)
    shares = []
    for draw in trial.draws:
        for question in draw:
            ranking = [doc_id for doc_id, _ in system.search(scisumm.summaries[question.query_id], 100)]
            found = [doc_id for doc_id in ranking if doc_id in question.candidates][:5]
            shares.append(sum(doc_id in question.relevant for doc_id in found) / 5)
    by_draw = np.reshape(shares, (3, 4))
    assert record.per_query["P@5"] == [round(value, 4) for value in by_draw.mean(axis=0)]
    assert record.metrics["P@5"] == round(by_draw.mean(), 4)
    assert record.deviations["P@5"] == round(by_draw.mean(axis=1).std(ddof=1), 4)
    assert by_draw.min() == 0.8  # so that something was averaged
    assert (record.n_queries, record.n_candidates, record.n_draws) == (4, 20.0, 3)


def test_the_command_writes_a_record_for_each_system(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    options = ["--split", "small", "--systems", "bm25,tfidf", "--data", str(data), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, ["reference-topic", *options], catch_exceptions=False)
    assert "| bm25 | 1.000 [1.000, 1.000] | 1.000 | 1.000 |  |" in done.output
    assert "| tfidf | 1.000 [1.000, 1.000] | 1.000 | 1.000 | 1.000 |" in done.output
    fields = json.loads((tmp_path / "out" / "summaries-reference-topic-tfidf-small.json").read_text())
    assert fields.pop("kind") == SummaryRecord.kind
    record = rebuild(SummaryRecord, fields)
    assert record.query_ids == ["sum:parsing", "sum:speech"]
    assert record.metrics == {"MRR": 1.0, "P@1": 1.0, "nDCG": 1.0}
    assert record.origin.command.endswith("reference-topic --split small --systems bm25,tfidf")


@pytest.mark.parametrize("task", ["citing", "citances"])
def test_an_encoder_ranks_papers_and_citances(task: str, data: Path, tmp_path: Path, bert_folder: Path) -> None:
    options = ["--split", "cl2018train", "--systems", "evidence,document", "--encoder", str(bert_folder)]
    done = CliRunner().invoke(
        main,
        [task, *options, "--quick", "--exact", "--data", str(data), "--work", str(tmp_path)],
        catch_exceptions=False,
    )
    rows = [line.split(" | ")[0] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert rows == ["| System", "| ---", "| document, bert", "| evidence, bert"]
    assert f"CL-SciSumm, {task} (cl2018train, a small part): 4 summaries" in done.stdout


def test_the_papers_index_is_that_of_the_retrieval_task(data: Path, tmp_path: Path, bert_folder: Path) -> None:
    write_citations(data)
    options = ["--split", "small", "--systems", "document", "--encoder", str(bert_folder), "--data", str(data)]
    places = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, ["reference", *options, *places], catch_exceptions=False)
    assert done.exit_code == 0
    (index,) = (tmp_path / "work").iterdir()
    assert index.name.startswith("clscisumm@")
    assert "28 candidates each" in done.output


@pytest.mark.parametrize("is_few", [True, False])
def test_few_candidates_are_ranked_by_an_exact_search(
    is_few: bool, data: Path, tmp_path: Path, origin: Origin, bert_folder: Path
) -> None:
    write_citations(data)
    scisumm = open_scisumm("cl2018train", data)
    trial = make_trial("citing-drawn", scisumm, 1, origin)
    asked = (["evidence"], scisumm, Collection.PAPERS, trial.pool, str(bert_folder), tmp_path, lambda _: None)
    for system, _ in prepared_systems(*asked, exact=False, is_few=is_few):
        assert system.settings["exact"] == is_few
        ranker = CandidateRanker(system, scisumm.summaries, trial.depth)
        assert all(question.relevant <= set(ranker.rank(question)) for question in trial.draws[0])


@pytest.mark.parametrize("pairs", [0, 1950])
def test_an_encoder_that_learned_from_the_dataset_is_told(
    pairs: int, data: Path, tmp_path: Path, bert_folder: Path
) -> None:
    trained = shutil.copytree(bert_folder, tmp_path / "trained")
    row = f"| clscisumm | 1,653 | {pairs:,} | 4c0d61519ba3 | CC BY 4.0 |"
    head = "| corpus | documents | pairs | checksum | licence |\n| --- | --- | --- | --- | --- |"
    (trained / "README.md").write_text(f"# trained\n\n## Training data\n\n{head}\n{row}\n\n## Objective\n")
    options = ["--split", "small", "--systems", "document,bm25", "--encoder", str(trained), "--data", str(data)]
    places = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, ["citing", *options, *places, "--quick"], catch_exceptions=False)
    told = {path.stem: json.loads(path.read_text())["is_trained_on_it"] for path in (tmp_path / "out").iterdir()}
    assert told == {
        "summaries-citing-document-trained-small-quick": pairs > 0,
        "summaries-citing-bm25-small-quick": False,
    }
    assert ("document, trained†" in done.stdout) == (pairs > 0)


def test_by_default_the_encoder_is_the_untrained_one() -> None:
    assert next(option for option in main.params if option.name == "encoder").default == "all-MiniLM-L6-v2"


def test_mistakes_are_one_line(data: Path) -> None:
    def said(*arguments: str) -> str:
        return CliRunner().invoke(main, [*arguments, "--data", str(data)]).stderr.splitlines()[-1]

    assert said("reference", "--systems", "bm52").endswith(
        "of evidence, document, bm25, tfidf, doc2vec, wmd, wrd, hidden_topics"
    )
    assert said("reference", "--systems", "bm25").startswith("Error: dataset clscisumm has no split 'test'")
    (data / "clscisumm" / "qrels_citing.tsv").write_text("query_id\tdoc_id\trelevance\n")
    asked = said("citing-drawn", "--systems", "bm25")
    assert asked.startswith("Error: no summary of split 'cl2018train' can be asked in citing-drawn; take another one")
