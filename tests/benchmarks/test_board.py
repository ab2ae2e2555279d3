from __future__ import annotations

from pathlib import Path

from benchmarks.datasets import open_dataset, read_qrels
from benchmarks.fetching import aila_casedocs
from benchmarks.systems import Ranking, Settings
from benchmarks.tasks.board import SearchModel
from engine.text.document import Document

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
