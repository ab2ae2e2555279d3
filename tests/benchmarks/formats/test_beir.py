from __future__ import annotations

import gzip
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from benchmarks import datasets, packages
from benchmarks.datasets import open_dataset, read_documents, read_queries
from benchmarks.formats.beir import is_beir, open_beir, open_irds, read_qrels, read_texts
from benchmarks.formats.trec import FormatError
from engine.errors import MissingExtra

HEADER = "query-id\tcorpus-id\tscore\n"


def test_a_folder_is_known_by_its_judgments(beir_folder: Path, folder: Path) -> None:
    assert (is_beir(beir_folder), is_beir(folder)) == (True, False)
    assert [path.name for path in open_beir(beir_folder)] == ["corpus.jsonl", "queries.jsonl"]


def test_title_and_text_are_read_and_documents_without_either_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl.gz"
    lines = ['{"_id": "a", "title": "Cats", "text": "They purr."}', '{"_id": "b", "title": "", "text": " "}']
    path.write_bytes(gzip.compress("\n".join([*lines, '{"_id": "c", "text": "Dogs."}']).encode()))
    assert [(document.doc_id, document.text) for document in read_texts(path)] == [
        ("a", "Cats\n\nThey purr."),
        ("c", "Dogs."),
    ]


def test_a_line_that_cannot_be_read_stops_the_reading(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n{"text": "no id"}\n')
    with pytest.raises(FormatError, match=r"corpus.jsonl:2: the record has no id"):
        list(read_texts(tmp_path / "corpus.jsonl"))


def test_judgments_are_read_below_their_header(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text(HEADER + "q1\td1\t2\nq1\td2\t0\nq0\td1\t1\nq0\td1\t1\n")
    assert read_qrels(tmp_path / "test.tsv") == {"q1": {"d1": 2, "d2": 0}, "q0": {"d1": 1}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q1\td1\t1\n", "test.tsv:1 is a judgment; the first line must be the header query-id, corpus-id, score"),
        (HEADER + "q1\td1\n", "test.tsv:2 has 2 columns, not 3"),
        (HEADER + "q1\td1\thigh\n", "test.tsv:2 has the score 'high'; it must be a whole number"),
        (HEADER + "q1\td1\t1\nq1\td1\t2\n", "test.tsv:3 judges 'd1' for query 'q1' as 2, an earlier line as 1"),
    ],
)
def test_the_error_for_a_damaged_judgment_names_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "test.tsv").write_text(text)
    with pytest.raises(FormatError, match=said):
        read_qrels(tmp_path / "test.tsv")


def test_a_folder_without_queries_or_judgments_is_refused(beir_folder: Path) -> None:
    (beir_folder / "queries.jsonl").unlink()
    with pytest.raises(FormatError, match=r"holds neither queries.jsonl nor queries.jsonl.gz"):
        open_beir(beir_folder)
    for path in (beir_folder / "qrels").iterdir():
        path.unlink()
    with pytest.raises(FormatError, match=r"qrels holds no SPLIT.tsv"):
        open_beir(beir_folder)


def collection(*, has_qrels: bool = True) -> SimpleNamespace:
    """A dataset with the interface of ir_datasets."""
    documents = [
        SimpleNamespace(doc_id="d1", text="Cats purr.", title="Cats"),
        SimpleNamespace(doc_id="d2", text="Dogs bark.", title=""),
    ]
    queries = [
        SimpleNamespace(query_id="1", default_text=lambda: "who purrs "),
        SimpleNamespace(query_id="2", text="who sings"),
    ]
    judgments = [
        SimpleNamespace(query_id=query_id, doc_id=doc_id, relevance=relevance)
        for query_id, doc_id, relevance in (("1", "d1", 2), ("1", "d2", 0), ("2", "d1", 0))
    ]
    return SimpleNamespace(
        has_docs=lambda: True,
        has_queries=lambda: True,
        has_qrels=lambda: has_qrels,
        docs_iter=lambda: documents,
        queries_iter=lambda: queries,
        qrels_iter=lambda: judgments,
    )


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, SimpleNamespace]:
    """The package ir_datasets with the collections of a dictionary."""
    collections = {"pets/test": collection(), "pets": collection(has_qrels=False)}
    module = ModuleType("ir_datasets")
    module.load = collections.__getitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ir_datasets", module)
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: name)
    return collections


def test_an_id_of_ir_datasets_is_opened_as_a_dataset(
    installed: dict[str, SimpleNamespace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "IRDS", tmp_path)
    dataset = open_dataset("irds:pets/test")
    assert (dataset.name, datasets.read_qrels(dataset, "test")) == ("pets-test", {"1": {"d1": 2, "d2": 0}})
    assert {document.doc_id: (document.title, document.text) for document in read_documents(dataset)} == {
        "d1": ("Cats", "Cats\n\nCats purr."),
        "d2": ("d2", "Dogs bark."),
    }
    assert [query.text for query in read_queries(dataset, ["1"]).values()] == ["who purrs"]
    installed.clear()
    assert open_dataset("irds:pets/test") == dataset  # written once, then read from the folder


def test_refused_ids_leave_no_corpus(installed: dict[str, SimpleNamespace], tmp_path: Path) -> None:
    def broken() -> None:
        raise OSError("no route to host")

    with pytest.raises(FormatError, match="irds:pets has no qrels; name a subset that has, as pets/test"):
        open_irds("pets", tmp_path)
    with pytest.raises(FormatError, match=r"irds:cars is not an id of ir_datasets; see https://ir-datasets\.com"):
        open_irds("cars", tmp_path)
    installed["pets/test"].docs_iter = broken
    with pytest.raises(FormatError, match=r"irds:pets/test cannot be read \(no route to host\); check the network"):
        open_irds("pets/test", tmp_path)
    assert not (tmp_path / "pets-test" / "corpus.jsonl.gz").exists()


def test_the_error_for_a_missing_package_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"irds:pets/test needs ir_datasets; .*pip install 'ir"):
        open_irds("pets/test", tmp_path)
