from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from benchmarks import datasets, packages
from benchmarks.datasets import open_dataset, read_documents, read_qrels, read_queries
from benchmarks.formats.beir import open_irds
from benchmarks.formats.trec import FormatError
from engine.errors import MissingExtra


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
    assert (dataset.name, read_qrels(dataset, "test")) == ("pets-test", {"1": {"d1": 2, "d2": 0}})
    assert {document.doc_id: (document.title, document.text) for document in read_documents(dataset)} == {
        "d1": ("Cats", "Cats\n\nCats purr."),
        "d2": ("d2", "Dogs bark."),
    }
    assert [query.text for query in read_queries(dataset, ["1"]).values()] == ["who purrs"]
    installed.clear()
    assert open_dataset("irds:pets/test") == dataset  # written once, then read from the folder


def test_ids_that_cannot_be_used_are_refused_and_no_corpus_is_written(
    installed: dict[str, SimpleNamespace], tmp_path: Path
) -> None:
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
