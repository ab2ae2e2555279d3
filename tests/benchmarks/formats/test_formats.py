"""The formats of TREC, BEIR and ir_datasets."""

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from benchmarks import datasets, packages
from benchmarks.datasets import open_dataset, read_documents, read_queries
from benchmarks.formats import beir
from benchmarks.formats.beir import is_beir, open_beir, open_irds, read_texts
from benchmarks.formats.trec import (
    FormatError,
    columns,
    read_lines,
    read_qrels,
    read_run,
    whole_number,
    write_qrels,
    write_run,
)
from engine.errors import MissingExtra


def test_a_run_has_six_columns(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "pets.trec"
    write_run({"cat": [("kitten", 0.8), ("dog", 1 / 3)], "dog": []}, path, "document")
    assert path.read_text() == "cat Q0 kitten 1 0.800000012 document\ncat Q0 dog 2 0.333333343 document\n"


def test_a_run_is_read_in_the_order_that_was_written(tmp_path: Path) -> None:
    # trec_eval ranks ties by name, z and then b; as float32, c would tie with those above it.
    ranking = [("a", 0.5), ("z", 0.5), ("b", 0.5), ("c", 0.5 - 1e-12), ("zero", 0.0), ("y", -1.0)]
    write_run({"q": ranking}, tmp_path / "run", "tag")
    (read,) = read_run(tmp_path / "run").values()
    assert [target for target, _ in read] == [target for target, _ in ranking]
    assert [score for _, score in read] == pytest.approx([score for _, score in ranking], abs=1e-6)


def test_a_run_of_another_tool_is_ordered_by_score_and_then_by_name_in_reverse(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q Q0 a 1 0.5 t\nq Q0 b 2 0.5 t\nq Q0 c 3 2e0 t\nr Q0 a 1 -1 t\n")
    assert read_run(tmp_path / "run") == {"q": [("c", 2.0), ("b", 0.5), ("a", 0.5)], "r": [("a", -1.0)]}


def test_judgments_are_read_as_they_were_written(tmp_path: Path) -> None:
    qrels = {"q": {"a#0": 2, "b": 0}, "p": {"a": -1}}
    write_qrels(qrels, tmp_path / "qrels")
    assert (tmp_path / "qrels").read_text() == "q 0 a#0 2\nq 0 b 0\np 0 a -1\n"
    assert read_qrels(tmp_path / "qrels") == qrels


def test_an_id_that_columns_cannot_hold_is_refused(tmp_path: Path) -> None:
    for bad in ("a b", "", "a\n"):
        with pytest.raises(FormatError, match="is empty or holds white space"):
            write_qrels({"q": {bad: 1}}, tmp_path / "qrels")
        with pytest.raises(FormatError, match="is empty or holds white space"):
            write_run({"q": [(bad, 1.0)]}, tmp_path / "run", "tag")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["plain.txt", "packed.txt.gz"])
def test_lines_end_at_line_ends_only_and_know_their_numbers(tmp_path: Path, name: str) -> None:
    text = "\ufefföne\r\n\n  \ntwo\u2028still two\x0b\nlast".encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    found = [("öne", 1), ("two\u2028still two\x0b", 4), ("last", 5)]
    assert list(read_lines(path)) == [(f"{path}:{number}", line) for line, number in found]


def test_the_error_for_an_unreadable_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"b.txt cannot be read \(No such file or directory\)"):
        list(read_lines(tmp_path / "b.txt"))
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"whole")[:-9])
    with pytest.raises(FormatError, match=r"c.gz is not a whole gzip file"):
        list(read_lines(tmp_path / "c.gz"))


def test_columns_must_be_as_many_as_their_names() -> None:
    assert columns("f:1", "a\tb c", ("x", "y")) == ["a", "b c"]
    assert columns("f:1", " a  b ", ("x", "y"), None) == ["a", "b"]
    with pytest.raises(FormatError, match="f:1 has 1 columns, not 2; it must be x, y by tabs"):
        columns("f:1", "a b", ("x", "y"))
    with pytest.raises(FormatError, match=r"f:1 has the score '1\.5'; it must be a whole number"):
        whole_number("f:1", "score", "1.5")


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


def test_judgments_are_read_below_their_header(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text(HEADER + "q1\td1\t2\nq1\td2\t0\nq0\td1\t1\nq0\td1\t1\n")
    assert beir.read_qrels(tmp_path / "test.tsv") == {"q1": {"d1": 2, "d2": 0}, "q0": {"d1": 1}}


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (read_run, "q Q0 a 1 0.5 t\nq Q0 a 2 0.5\n", ":2 has 5 columns, not 6; it must be query, Q0, target, rank"),
        (read_run, "q Q0 b 2 high t\n", ":1 has the score 'high'; it must be a number"),
        (read_run, "q Q0 b 2 nan t\n", ":1 has the score 'nan', which has no place in an order"),
        (read_run, "q Q0 a 1 0.5 t\nq Q0 a 2 0.4 t\n", ":2 ranks 'a' for query 'q' again"),
        (read_qrels, "q 0 a 1\nq\t0  a\t2\n", ":2 judges 'a' for query 'q' again"),
        (beir.read_qrels, "q1\td1\t1\n", ":1 is a judgment; the first line must be the header query-id, corpus-id"),
        (beir.read_qrels, HEADER + "q1\td1\n", ":2 has 2 columns, not 3"),
        (beir.read_qrels, HEADER + "q1\td1\thigh\n", ":2 has the score 'high'; it must be a whole number"),
        (beir.read_qrels, HEADER + "q1\td1\t1\nq1\td1\t2\n", ":3 judges 'd1' for query 'q1' as 2, an earlier line"),
        (lambda path: [*read_lines(path)], "good\nb\udcffd\n", r":2 is not UTF-8 \(byte 1\)"),
        (lambda path: [*read_texts(path)], '{"_id": "a", "text": "x"}\n{"text": "y"}\n', ':2: it has no field "_id"'),
    ],
)
def test_the_error_for_a_damaged_line_names_it(
    tmp_path: Path, read: Callable[[Path], object], text: str, said: str
) -> None:
    (tmp_path / "corpus.jsonl").write_text(text, errors="surrogateescape")
    with pytest.raises(FormatError, match=f"corpus.jsonl{said}"):
        read(tmp_path / "corpus.jsonl")


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
