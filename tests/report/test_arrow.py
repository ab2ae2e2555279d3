"""Tables of Arrow equal what the index and the results hold, read back from their files."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet

import longmatch
from engine.errors import IndexMismatch, MissingExtra, QueryError
from engine.index import Index
from engine.report import arrow
from engine.report.arrow import What, index_export
from engine.store.writer import Writer
from engine.text.document import Document
from engine.text.section_kinds import section_kinds
from tests.fakes import FakeEncoder, make_document


def test_documents_are_those_of_the_index(index: Index, corpus: list[Document]) -> None:
    rows = index_export(index.snapshot, "documents").table().to_pylist()
    assert [row["doc_id"] for row in rows] == [document.doc_id for document in corpus]
    for row, document in zip(rows, corpus, strict=True):
        assert (row["title"], row["text"], row["source"]) == (document.title, document.text, document.source)
        assert json.loads(row["metadata"]) == document.metadata
        assert (row["n_sections"], row["tokens_read"]) == (3, row["tokens_total"])
        assert row["n_chunks"] == len(index.chunk_vectors(document.doc_id))


def test_metadata_of_one_type_are_columns(tmp_path: Path) -> None:
    metadata = [
        {"year": 2001, "weight": 1, "open": True, "tags": ["a"], "mixed": 1, "title": "other", "name": "x"},
        {"year": None, "weight": 0.5, "open": False, "mixed": "b"},
    ]
    documents = [make_document(f"d{n}", f"fox {n}", metadata=one) for n, one in enumerate(metadata)]  # type: ignore[arg-type]
    longmatch.build(tmp_path / "x.lm", documents, encode="none", progress=False)
    with longmatch.open(tmp_path / "x.lm") as opened:
        table = opened.to_arrow()
    types = {name: table.schema.field(name).type for name in table.schema.names[len(arrow._DOCUMENTS) :]}
    assert types == {"name": pa.string(), "open": pa.bool_(), "weight": pa.float64(), "year": pa.int64()}
    assert table.column("year").to_pylist() == [2001, None]
    assert table.column("title").to_pylist() == ["d0", "d1"]


def test_sections_join_to_the_text(index: Index, corpus: list[Document]) -> None:
    rows = index_export(index.snapshot, "sections").table().to_pylist()
    for document in corpus:
        own = [row for row in rows if row["doc_id"] == document.doc_id]
        assert "".join(row["text"] for row in own) == document.text
        assert [row["section"] for row in own] == [0, 1, 2]
        assert [row["heading"] for row in own] == [section.heading for section in document.sections]
        assert [row["kind"] for row in own] == [kind.value for kind in section_kinds(document)]
        assert all(document.text[row["start"] : row["end"]] == row["text"] for row in own)


def test_vectors_are_those_of_the_index(index: Index) -> None:
    table = index_export(index.snapshot, "vectors", np.array([7, 3])).table()
    rows = table.to_pylist()
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 32)
    for doc_id in ("doc007", "doc003"):
        own = [row for row in rows if row["doc_id"] == doc_id]
        query = index.stored_query(doc_id)
        by_level = {
            level: np.array([row["vector"] for row in own if row["level"] == level], np.float32)
            for level in ("document", "section", "chunk")
        }
        np.testing.assert_array_equal(by_level["document"], query.vectors.document[None])
        np.testing.assert_array_equal(by_level["section"], query.vectors.sections)
        np.testing.assert_array_equal(by_level["chunk"], query.vectors.chunks)
        chunks = [row for row in own if row["level"] == "chunk"]
        assert [(row["section"], row["start"], row["end"], row["n_tokens"]) for row in chunks] == [
            (one.section, one.start, one.stop, one.n_tokens) for one in query.vectors.chunk_spans
        ]
    assert [row["doc_id"] for row in rows if row["level"] == "document"] == ["doc007", "doc003"]


def test_documents_without_vectors_have_no_rows(tmp_path: Path, corpus: list[Document]) -> None:
    path = tmp_path / "x.lm"
    longmatch.build(path, corpus[:4], encode="none", progress=False)
    with longmatch.open(path) as opened, pytest.raises(IndexMismatch, match="holds words alone and no vectors"):
        opened.to_arrow("vectors")
    with Writer(path) as begun:  # as a run leaves it that was killed before its first vectors
        begun.claim({"name": "fake", "fingerprint": "f" * 32, "width": 32})
    missing = pytest.raises(IndexMismatch, match=r"4 documents of .* without vectors; encode all: longmatch index ")
    with longmatch.open(path, encoder=FakeEncoder()) as opened, missing:
        opened.to_arrow("vectors")
    longmatch.build(path, corpus[4:6], encoder=FakeEncoder(), encode="all", progress=False)
    with longmatch.open(path, encoder=FakeEncoder()) as opened:
        encoded = {row["doc_id"] for row in opened.to_arrow("vectors").to_pylist()}
        has_vectors = opened.opened.snapshot.has_vectors
        assert len(encoded) == np.count_nonzero(has_vectors)


@pytest.mark.parametrize("what", ["documents", "sections", "vectors"])
def test_files_hold_the_table(index: Index, what: What) -> None:
    file = io.BytesIO()
    n_rows = index_export(index.snapshot, what).write(file)
    assert pyarrow.parquet.read_table(io.BytesIO(file.getvalue())).equals(index_export(index.snapshot, what).table())
    assert n_rows == index_export(index.snapshot, what).table().num_rows


@pytest.mark.parametrize("what", ["documents", "sections", "vectors"])
def test_batches_join_to_one_table(index: Index, what: What, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = index_export(index.snapshot, what).table()
    monkeypatch.setattr(arrow, "_AT_ONCE", 7)
    assert index_export(index.snapshot, what).table().equals(at_once)


def test_a_table_of_no_documents_has_the_same_columns(index: Index) -> None:
    nothing = np.empty(0, np.int64)
    for what in ("documents", "sections", "vectors"):
        table = index_export(index.snapshot, what, nothing).table()  # type: ignore[arg-type]
        assert (table.num_rows, table.schema) == (0, index_export(index.snapshot, what).schema)  # type: ignore[arg-type]


def test_a_filter_chooses_documents(built_folder: Path) -> None:
    with longmatch.open(built_folder) as opened:
        years = opened.to_arrow(where={"year": {">=": 2020}}).column("year").to_pylist()
        assert len(years) == sum(opened.document(doc_id).metadata["year"] >= 2020 for doc_id in opened)  # type: ignore[operator]
        assert min(years) == 2020
        with pytest.raises(QueryError, match="no document has the field 'yaer'"):
            opened.to_arrow(where="yaer > 1")


def test_an_unknown_table_or_a_missing_package_is_named(built_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with longmatch.open(built_folder) as opened:
        with pytest.raises(QueryError, match="there is no table 'chunks'; export documents, sections or vectors"):
            opened.to_arrow("chunks")  # type: ignore[arg-type]
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
        with pytest.raises(MissingExtra) as caught:
            opened.to_arrow()
    assert str(caught.value) == "Index.to_arrow() needs pyarrow; install it: pip install 'pyarrow>=21'"
