"""Retrieval: the systems, the task, and the model of a public board."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import Dataset, open_dataset, read_qrels, read_queries
from benchmarks.fetching import aila_casedocs
from benchmarks.runs import read_runs
from benchmarks.systems import BuildCost, DocumentCosine, Evidence, Ranking, Settings, training_pairs
from benchmarks.tasks.board import SearchModel
from benchmarks.tasks.retrieval import ALL_SYSTEMS, Trial, main, measure, open_trial
from engine.index import Index
from engine.machine import Origin
from engine.text.document import Document
from tests.benchmarks.made_runs import error_of, run_program
from tests.fakes import FakeEncoder


@pytest.fixture
def built(built_folder: Path) -> Iterator[Index]:
    with Index.open(built_folder, encoder=FakeEncoder()) as opened:
        yield opened


def test_document_vectors_rank_by_cosine_without_the_query(index: Index, documents: dict[str, Document]) -> None:
    ranking = DocumentCosine(index, "mean").search(documents["cat"], k=2)
    assert [doc_id for doc_id, _ in ranking] == ["kitten", "dog"]
    assert [score for _, score in ranking] == pytest.approx([0.8, 0.6])


def test_parts_of_the_score_are_systems_of_their_own(built: Index, corpus: list[Document]) -> None:
    for name, parts in (("words", {"words", "pairs"}), ("chunks", {"chunks"})):
        system = Evidence(built, "fake@0", name=name)
        assert (system.name, system.encoder) == (name, "fake@0" if name == "chunks" else "")
        for hit in system.hits(corpus[7], k=5):
            assert {kind for kind, added in hit.breakdown.components.items() if added} <= parts


@pytest.mark.parametrize("system", [DocumentCosine, Evidence])
def test_only_a_query_outside_the_corpus_is_encoded(
    built: Index, corpus: list[Document], system: type[DocumentCosine | Evidence]
) -> None:
    ranker = system(built, "fake")
    (first, score), *others = ranker.search(corpus[7], k=5)
    assert first != "doc007" and score > others[0][1]
    assert built.encoder.batches == []
    (first, _), *_ = ranker.search(replace(corpus[7], doc_id="draft"), k=3)
    assert (first, len(built.encoder.batches)) == ("doc007", 1)
    # A query that only shares an id with a document is searched by its own text.
    found = [doc_id for doc_id, _ in ranker.search(replace(corpus[7], doc_id="doc008"), k=59)]
    assert found[0] == "doc007" and "doc008" not in found


def test_an_encoded_query_scores_as_its_stored_copy(built: Index, corpus: list[Document]) -> None:
    system = DocumentCosine(built, "fake")
    stored, encoded = (dict(system.search(query, k=60)) for query in (corpus[7], replace(corpus[7], doc_id="draft")))
    np.testing.assert_allclose([stored[doc_id] for doc_id in stored], [encoded[doc_id] for doc_id in stored], atol=1e-6)


def test_the_bundled_encoder_learned_from_four_corpora() -> None:
    assert training_pairs("longmatch-minilm") == {
        "rfc": 20613,
        "wikipedia_seealso": 3622,
        "clscisumm": 1950,
        "proposals": 3139,
    }


def test_a_folder_without_our_model_card_has_no_training_pairs(tmp_path: Path) -> None:
    assert training_pairs(str(tmp_path)) == {}
    (tmp_path / "README.md").write_text("# A model\n\n| corpus | documents | pairs |\n| a | 1 | 2 |\n")
    assert training_pairs(str(tmp_path)) == {}


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


FILES = {
    "C1": b"The appeal is allowed. ",
    "C2": b"The appeal is dismissed.",
    "C10": b"Bail is granted.",
    "Query_doc.txt": b"AILA_Q1||The appellant was a clerk.\nAILA_Q2||He asked for bail.\n",
    "relevance_judgments_priorcases.txt": b"AILA_Q1 Q0 C2 0\nAILA_Q1 Q0 C1 1\nAILA_Q2 Q0 C10 1\n",
}


class Fixed:
    name, encoder = "fixed", ""
    settings: Settings = {}  # noqa: RUF012

    def search(self, query: Document, k: int) -> Ranking:
        return [("kitten", 0.5), ("dog", 0.25)][:k]


def test_decisions_with_a_positive_judgment_are_the_corpus() -> None:
    facts = aila_casedocs.facts(FILES)
    assert facts.ids == ["C1", "C10"] and facts.splits == {"splits.json": {"test": ["AILA_Q1", "AILA_Q2"]}}
    assert facts.judgments["qrels.tsv"]["AILA_Q1"] == {"1": ["C1"]}
    first, _ = aila_casedocs.queries(facts, FILES)
    assert (first["id"], first["sections"]) == ("AILA_Q1", [{"heading": "", "text": "The appellant was a clerk."}])
    assert [one["id"] for one in aila_casedocs.documents(facts, FILES)] == ["C1", "C10"]


def test_files_of_the_archive_are_known_by_their_names() -> None:
    folder = "AILA-1c26652/AILA_2019_dataset"
    names = [f"{folder}/Object_casedocs/C17.txt", f"{folder}/Query_doc.txt", f"{folder}/Object_statutes/S1.txt"]
    assert [aila_casedocs.key(name) for name in names] == ["C17", "Query_doc.txt", ""]


def test_a_system_answers_as_a_search_model_of_mteb(folder: Path) -> None:
    dataset = open_dataset(str(folder))
    queries = {query_id: Document(query_id, "", "", ()) for query_id in read_qrels(dataset, "test")}
    found = SearchModel(Fixed(), queries).search([{"id": "cat", "text": "ignored"}], top_k=1, task_metadata=None)
    assert found == {"cat": {"kitten": 0.5}}
