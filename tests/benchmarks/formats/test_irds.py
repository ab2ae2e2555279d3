from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from benchmarks import datasets, packages
from benchmarks.datasets import open_dataset, read_documents, read_qrels, read_queries
from benchmarks.formats.beir import open_irds
from benchmarks.formats.lines import FormatError
from engine.errors import MissingExtra


class Document(NamedTuple):
    doc_id: str
    text: str
    title: str

    def default_text(self) -> str:
        return f"{self.title} {self.text}"


class Query(NamedTuple):
    query_id: str
    text: str

    def default_text(self) -> str:
        return self.text


class Judgment(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int


class Collection:
    """A dataset with the interface of ir_datasets."""

    def __init__(self, *, has_qrels: bool = True) -> None:
        self._has_qrels = has_qrels

    def has_docs(self) -> bool:
        return True

    def has_queries(self) -> bool:
        return True

    def has_qrels(self) -> bool:
        return self._has_qrels

    def docs_iter(self) -> Iterator[Document]:
        yield Document("d1", "Cats purr.", "Cats")
        yield Document("d2", "Dogs bark.", "")

    def queries_iter(self) -> Iterator[Query]:
        yield Query("1", "who purrs")
        yield Query("2", "who sings")

    def qrels_iter(self) -> Iterator[Judgment]:
        yield Judgment("1", "d1", 2)
        yield Judgment("1", "d2", 0)
        yield Judgment("2", "d1", 0)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Collection]:
    """The package ir_datasets with the collections of a dictionary."""
    collections = {"pets/test": Collection(), "pets": Collection(has_qrels=False)}
    module = ModuleType("ir_datasets")
    module.load = collections.__getitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ir_datasets", module)
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: name)
    return collections


def test_an_id_of_ir_datasets_is_opened_as_a_dataset(
    installed: dict[str, Collection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_an_id_without_judgments_is_refused(installed: dict[str, Collection], tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="irds:pets has no qrels; name a subset that has, as pets/test"):
        open_irds("pets", tmp_path)


def test_an_unknown_id_is_refused(installed: dict[str, Collection], tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"irds:cars is not an id of ir_datasets; see https://ir-datasets\.com"):
        open_irds("cars", tmp_path)


def test_a_failed_download_raises_an_error_and_writes_no_corpus(
    installed: dict[str, Collection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Collection) -> Iterator[Document]:
        raise OSError("no route to host")

    monkeypatch.setattr(Collection, "docs_iter", broken)
    with pytest.raises(FormatError, match=r"irds:pets/test cannot be read \(no route to host\); check the network"):
        open_irds("pets/test", tmp_path)
    assert not (tmp_path / "pets-test" / "corpus.jsonl.gz").exists()


def test_the_error_for_a_missing_package_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"irds:pets/test needs ir_datasets; .*longmatch\[irds\]"):
        open_irds("pets/test", tmp_path)
