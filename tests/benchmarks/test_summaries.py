"""CL-SciSumm: a small one on disk, its questions, how candidates are ranked, and the task of its summaries."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DatasetError
from benchmarks.fetching.sources import CorpusDocument, corpus_document
from benchmarks.formats.trec import write_json_lines
from benchmarks.lexical import BM25
from benchmarks.runs import read_run, read_runs
from benchmarks.scisumm import (
    FEW,
    N_NEGATIVES,
    N_POSITIVES,
    TASKS,
    CandidateRanker,
    Collection,
    Question,
    Scisumm,
    citing_ids,
    open_scisumm,
    read_collection,
)
from benchmarks.systems import BuildCost, Ranking, Settings
from benchmarks.tables.quality import SummaryDetails
from benchmarks.tasks.summaries import main, make_trial, measure, prepared_systems
from engine.machine import Origin
from engine.text.document import Document
from tests.benchmarks.corpora import write_judgments
from tests.benchmarks.made_runs import error_of, run_program
from tests.fakes import make_document

N_CITING = 6
TOPICS = {"parsing": "tree grammar parser", "speech": "audio phone signal", "words": "lexicon sense noun"} | {
    "dialogue": "turn speaker answer"
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder that holds the dataset's folder."""
    folder = tmp_path / "data" / "clscisumm"
    folder.mkdir(parents=True)
    papers, summaries, citances = [], [], []
    judged: dict[str, list[tuple[str, str, int]]] = {"qrels": [], "qrels_citing": [], "qrels_citances": []}
    for topic, words in TOPICS.items():
        papers.append(_line(topic, f"{words} {words} method", roles=["reference"]))
        summaries.append(_line(f"sum:{topic}", f"{words} method", ref=topic))
        judged["qrels"].append((f"sum:{topic}", topic, 1))
        for number in range(N_CITING):
            papers.append(_line(f"{topic}{number}", f"{words} study {number} corpus", roles=["citing"]))
            judged["qrels_citing"].append((f"sum:{topic}", f"{topic}{number}", 1))
        for number in range(2):
            citances.append(_line(f"cit:{topic}:{number}", f"we use the {words} of others", topic=topic))
            judged["qrels_citances"].append((f"sum:{topic}", f"cit:{topic}:{number}", 1))
    for name, texts in {"corpus": papers, "queries": summaries, "citances": citances}.items():
        write_json_lines(folder / f"{name}.jsonl.gz", texts)
    for name, rows in judged.items():
        write_judgments(folder / f"{name}.tsv", rows)
    everyone = [f"sum:{topic}" for topic in TOPICS]
    (folder / "splits.json").write_text(json.dumps({"cl2018train": everyone, "small": everyone[:2]}))
    return folder.parent


def _line(doc_id: str, text: str, **meta: object) -> CorpusDocument:
    return corpus_document(doc_id, "", [("", text)], meta)


def test_a_summary_is_read_with_its_paper_citing_papers_and_citances(data: Path) -> None:
    scisumm = open_scisumm("small", data)
    assert list(scisumm.summaries) == ["sum:parsing", "sum:speech"]
    assert scisumm.summaries["sum:speech"].text == "audio phone signal method"
    assert scisumm.reference == {"sum:parsing": {"parsing": 1}, "sum:speech": {"speech": 1}}
    assert list(scisumm.citing["sum:parsing"]) == [f"parsing{number}" for number in range(N_CITING)]
    assert list(scisumm.citances["sum:speech"]) == ["cit:speech:0", "cit:speech:1"]

    # Collections are whole, whatever the split.
    papers = [paper.doc_id for paper in read_collection(scisumm, Collection.PAPERS)]
    assert len(papers) == len(TOPICS) * (1 + N_CITING)
    assert citing_ids(scisumm) == [doc_id for doc_id in papers if doc_id not in TOPICS]
    assert len(list(read_collection(scisumm, Collection.CITANCES))) == 2 * len(TOPICS)


def test_files_that_do_not_fit_are_refused(data: Path) -> None:
    def error_of(split: str) -> str:
        with pytest.raises(DatasetError) as refused:
            open_scisumm(split, data)
        return str(refused.value)

    assert "clscisumm has no split 'test'; it has cl2018train, small" in error_of("test")
    (data / "clscisumm" / "splits.json").write_text(json.dumps({"small": ["sum:parsing", "sum:nobody"]}))
    assert "summary 'sum:nobody' of split 'small' is not in queries.jsonl.gz, or has no" in error_of("small")
    (data / "clscisumm" / "citances.jsonl.gz").unlink()
    assert "holds no citances.jsonl.gz; pass --data FOLDER, where FOLDER/clscisumm does" in error_of("small")


@pytest.fixture
def scisumm(data: Path) -> Scisumm:
    return open_scisumm("cl2018train", data)


def questions_of(name: str, scisumm: Scisumm, seed: int = 0) -> dict[str, Question]:
    task = TASKS[name]
    return {
        question.query_id: question for question in task.ask(scisumm, task.pool(scisumm), np.random.default_rng(seed))
    }


def test_the_candidates_of_a_summary_are_its_paper_and_the_papers_that_cite_it(scisumm: Scisumm) -> None:
    question = questions_of("reference-topic", scisumm)["sum:words"]
    assert sorted(question.candidates) == ["words", "words0", "words1", "words2", "words3", "words4", "words5"]
    assert question.relevant == {"words"}


def test_candidates_are_drawn_from_own_and_other_topics(scisumm: Scisumm) -> None:
    for topic in TOPICS:
        question = questions_of("citing-drawn", scisumm)[f"sum:{topic}"]
        assert len(set(question.candidates)) == len(question.candidates) == N_POSITIVES + N_NEGATIVES
        own = {doc_id for doc_id in question.candidates if doc_id.startswith(topic)}
        assert (question.relevant, len(own)) == (own, N_POSITIVES)
        assert not set(TOPICS) & set(question.candidates)  # a reference paper cites none here


def test_a_draw_depends_on_its_seed_and_its_order_does_not_depend_on_relevance(scisumm: Scisumm) -> None:
    first, second = questions_of("citing-drawn", scisumm, 1), questions_of("citing-drawn", scisumm, 2)
    assert first == questions_of("citing-drawn", scisumm, 1)
    assert first["sum:words"].candidates != second["sum:words"].candidates
    places = [
        place
        for seed in range(50)
        for place, doc_id in enumerate(questions_of("citing-drawn", scisumm, seed)["sum:words"].candidates)
        if doc_id.startswith("words")
    ]
    assert np.mean(places) == pytest.approx((N_POSITIVES + N_NEGATIVES - 1) / 2, abs=1.5)


def test_summaries_with_too_little_to_find_are_left_out(scisumm: Scisumm) -> None:
    few = replace(scisumm, citing={**scisumm.citing, "sum:words": {"words0": 1}, "sum:speech": {}})
    assert list(questions_of("reference-topic", few)) == ["sum:parsing", "sum:words", "sum:dialogue"]
    assert list(questions_of("citing", few)) == ["sum:parsing", "sum:words", "sum:dialogue"]
    with pytest.raises(
        DatasetError, match="has 7 papers that cite other topics than that of 'sum:parsing', 15 are drawn"
    ):
        questions_of("citing-drawn", few)


def test_whole_collections_leave_out_only_the_summarys_own_paper(scisumm: Scisumm) -> None:
    assert len(questions_of("reference", scisumm)["sum:words"].candidates) == 28
    citing = questions_of("citing", replace(scisumm, reference={**scisumm.reference, "sum:words": {"speech0": 1}}))[
        "sum:words"
    ]
    assert len(citing.candidates) == 23
    assert "speech0" not in citing.candidates
    assert citing.relevant == {f"words{number}" for number in range(6)}
    assert len(questions_of("citances", scisumm)["sum:words"].candidates) == 8


def test_citances_of_the_split_are_those_of_its_topics(scisumm: Scisumm) -> None:
    small = replace(scisumm, citances={"sum:words": scisumm.citances["sum:words"], "sum:speech": {}})
    assert questions_of("citances-split", small)["sum:words"].candidates == ("cit:words:0", "cit:words:1")


SUMMARIES = {"q": make_document("q", "words")}
SCORES = {"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.5}


class Searching:
    """A system that finds the targets it scores above 0.2, and counts its calls."""

    name = "searching"
    encoder = ""

    def __init__(self) -> None:
        self.settings: Settings = {}
        self.calls: Counter[str] = Counter()

    def search(self, query: Document, k: int) -> Ranking:
        self.calls[query.doc_id] += 1
        found = [(doc_id, score) for doc_id, score in SCORES.items() if score > 0.2]
        return sorted(found, key=lambda hit: -hit[1])[:k]


class Scoring(Searching):
    """A system that also scores pairs, and counts them."""

    def score(self, first: str, second: str) -> float:
        self.calls[second] += 1
        return SCORES.get(second, -1.0)


def test_a_search_is_filtered_to_the_candidates_and_runs_once_for_each_query() -> None:
    system = Searching()
    ranker = CandidateRanker(system, SUMMARIES, depth=10)
    assert ranker.rank(Question("q", ("d", "a", "b"), frozenset("b"))) == ["b", "d"]
    assert ranker.rank(Question("q", ("a",), frozenset("a"))) == []
    assert system.calls == {"q": 1}


def test_few_candidates_are_scored_pair_by_pair_and_each_once_and_many_are_searched() -> None:
    system = Scoring()
    ranker = CandidateRanker(system, SUMMARIES, depth=10)
    assert ranker.rank(Question("q", ("d", "a", "c"), frozenset("d"))) == ["d", "c", "a"]
    assert ranker.rank(Question("q", ("c", "a", "d"), frozenset("d"))) == ["c", "d", "a"]
    assert system.calls == {"a": 1, "c": 1, "d": 1}
    many = tuple(f"x{number}" for number in range(FEW))
    assert ranker.rank(Question("q", ("b", *many), frozenset("b"))) == ["b"]
    assert system.calls["q"] == 1


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
