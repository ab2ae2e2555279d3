"""Tables of the catalog, lookups in it, and the rows and texts of documents."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import IndexDamaged, QueryError, StorageError
from engine.index import Index
from engine.store.catalog import (
    CATALOG_FILE,
    FORMAT,
    OPENED_TABLES,
    named_rows,
    newest,
    open_catalog,
    read_opened,
    reading,
)
from engine.store.checks import content_hash, read_meta, record_tables, stored_documents
from engine.store.partitioned import Field, check_fields, stored_fields, stored_hashes, stored_values
from engine.store.snapshot import IndexSnapshot
from engine.store.writable import create_tables, engine_of, write_meta
from engine.store.writer import Writer
from engine.text.document import Document, MetadataValue
from engine.text.segmentation import Section
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus, make_document


def write(path: Path, values: dict[str, Any]) -> None:
    """Set named values of a catalog, which is made if it is missing."""
    with closing(open_catalog(path, read_only=False)) as connection, engine_of(connection).begin() as writing:
        create_tables(writing)
        write_meta(writing, values)
        record_tables(connection)


def test_named_values_are_set_and_the_others_left(tmp_path: Path) -> None:
    write(tmp_path / CATALOG_FILE, {"format": FORMAT, "a": 1, "b": {"x": ["é", None]}})
    write(tmp_path / CATALOG_FILE, {"a": 2})
    with reading(tmp_path / CATALOG_FILE) as connection:
        assert read_meta(connection, "x") == {"format": FORMAT, "a": 2, "b": {"x": ["é", None]}}


def test_a_reader_keeps_seeing_what_it_saw_first(tmp_path: Path) -> None:
    write(tmp_path / CATALOG_FILE, {"format": FORMAT})
    with reading(tmp_path / CATALOG_FILE) as reader:
        assert read_meta(reader, "x") == {"format": FORMAT}
        write(tmp_path / CATALOG_FILE, {"a": 2})
        assert read_meta(reader, "x") == {"format": FORMAT}


def test_a_reader_writes_nothing_and_makes_no_catalog(tmp_path: Path) -> None:
    with pytest.raises(IndexDamaged, match="is missing"), reading(tmp_path / CATALOG_FILE):
        pass
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / CATALOG_FILE, {})
    with pytest.raises(StorageError, match="readonly"), reading(tmp_path / CATALOG_FILE) as connection:
        connection.execute("INSERT INTO meta VALUES ('a', '1')")


@pytest.mark.parametrize("name", ["with space.lm", "100%41?x=1#y.lm", "ünï.lm", "a&mode=memory.lm"])
def test_any_folder_name_works(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    path = tmp_path / name / CATALOG_FILE
    write(path, {})
    with reading(path) as connection:
        assert read_meta(connection, "x") == {}
    assert path.exists()


def test_a_text_without_its_document_is_refused(tmp_path: Path) -> None:
    write(tmp_path / CATALOG_FILE, {})
    refused = pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY")
    with refused, closing(open_catalog(tmp_path / CATALOG_FILE, read_only=False)) as connection:
        connection.execute("INSERT INTO texts VALUES (7, x'00')")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opened") / "x.lm"
    build(folder, make_corpus(30), encoder=FakeEncoder(), factory="Flat", language="english")
    return folder / CATALOG_FILE


def test_rows_are_those_of_the_catalog_and_the_newest_has_the_highest_key(catalog: Path) -> None:
    with reading(catalog) as connection:
        stored = read_opened(connection)
        connection.row_factory = sqlite3.Row
        expected = {table: list(map(dict, connection.execute(f"SELECT * FROM {table}"))) for table in OPENED_TABLES}
    assert len(expected["shards"]) == len(expected["generations"]) == 1
    for table in OPENED_TABLES[1:]:
        assert [row._asdict() for row in named_rows(stored, table)] == expected[table]
    shards = [(2, "b", 1, "", 1, 1, "{}"), (3, "c", 1, "", 1, 1, "{}")]
    found = newest({"shards": shards}, "shards")
    assert (found.id, found.file) == (3, "c")


def test_documents_are_there_once_they_are_committed(tmp_path: Path) -> None:
    fox, dog = make_document("fox", "a fox"), make_document("dog", "a dog")
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim({"name": "fake", "fingerprint": "f", "width": 32})
        assert stored_hashes(writer.folder, ["fox", "dog"]) == {}
        writer.commit(list(zip([fox], FakeEncoder().encode([fox]), strict=True)))
        assert stored_hashes(writer.folder, ["fox", "dog"]) == {"fox": content_hash(fox)}
        writer.commit(list(zip([dog], FakeEncoder().encode([dog]), strict=True)))
        assert stored_hashes(writer.folder, ["dog", "fox"]) == {"fox": content_hash(fox), "dog": content_hash(dog)}
        assert stored_hashes(writer.folder, []) == {}


METADATA: list[dict[str, MetadataValue]] = [
    {"year": 2019, "venue": "ACL", "authors": ["Ann", "Ben"], "open": True},
    {"year": 2021.5, "venue": "ACL", "authors": "Cem", "note": None},
    {"venue": "EMNLP", "a `b`": "x", "authors": ["Ann"]},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fields") / "x.lm"
    documents = [
        make_document(f"d{number}", f"the fox {number} runs", metadata=one) for number, one in enumerate(METADATA)
    ]
    build(path, documents, encoder=FakeEncoder(), factory="scan")
    return path


def test_fields_have_types_counts_and_examples_and_values_the_commonest_first(folder: Path) -> None:
    assert stored_fields(folder) == [
        Field("a `b`", ("text",), 1, ("x",)),
        Field("authors", ("list", "text"), 3, ("Ann", "Ben", "Cem")),
        Field("open", ("true or false",), 1, (True,)),
        Field("venue", ("text",), 3, ("ACL", "EMNLP")),
        Field("year", ("number",), 2, (2019, 2021.5)),
    ]
    assert stored_values(folder, "authors", limit=1) == [("Ann", 2)]


@pytest.mark.parametrize(
    ("name", "containing", "values"),
    [
        ("venue", "", [("ACL", 2), ("EMNLP", 1)]),
        ("authors", "", [("Ann", 2), ("Ben", 1), ("Cem", 1)]),
        ("authors", "E", [("Ben", 1), ("Cem", 1)]),
        ("year", "21", [(2021.5, 1)]),
        ("open", "", [(True, 1)]),
        ("open", "1", []),
        ("a `b`", "", [("x", 1)]),
        ("venue", "%", []),
        ("note", "", []),
        ("absent", "", []),
    ],
)
def test_values_are_counted_by_documents(
    folder: Path, name: str, containing: str, values: list[tuple[object, int]]
) -> None:
    assert stored_values(folder, name, containing=containing) == values


@pytest.mark.parametrize(
    "where",
    [
        "year >= 2019",
        "doc_id = 'd1' or title like '%' or source = 'x'",
        "absent exists",
        "not absent exists and year > 1",
        "year > '1' and year != 'x' and venue like '1%' and venue in ('x', 1)",
    ],
)
def test_known_fields_and_tests_for_presence_pass(folder: Path, where: str) -> None:
    with IndexSnapshot(folder) as snapshot:
        check_fields(snapshot, where)


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("yeer >= 2019", "no document has the field 'yeer'; did you mean 'year'? there are a `b`"),
        ("VENUE = 'ACL'", "did you mean 'venue'?"),
        ("year > 1 and (note = 'x' or venue = 'ACL')", "no document has the field 'note'"),
        ("absent != 1", "no document has the field 'absent'; there are"),
        ("year > 'abc'", "no value of 'year' is a text, as 'abc' is; take one such as 2"),
        ("not venue in (2019, 1)", "no value of 'venue' is a number, as 2019 is; take one such as \"ACL\""),
    ],
)
def test_an_unknown_field_is_refused_with_those_that_exist(folder: Path, where: str, told: str) -> None:
    with IndexSnapshot(folder) as snapshot, pytest.raises(QueryError) as error:
        check_fields(snapshot, where)
    assert told in str(error.value) and "longmatch" not in str(error.value)  # which the search page shows as well


def test_the_error_for_documents_without_metadata_names_other_fields(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", [make_document("d", "the fox runs")], encoder=FakeEncoder(), factory="scan")
    expected = "the documents have no metadata; filter by doc_id, title or source"
    with IndexSnapshot(tmp_path / "x.lm") as snapshot, pytest.raises(QueryError, match=expected):
        check_fields(snapshot, "year = 1")


def test_copies_have_the_same_title_text_and_sections(folder: Path) -> None:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        same = index.document("d1")
        assert index.copies(make_document("other", "the fox 1 runs", title=same.title)) == ["d1"]
        assert index.copies(make_document("other", "the fox 1 runs.", title=same.title)) == []


DOCUMENT = Document(
    doc_id="a/ü 'b\".md",
    title="Ein “Titel”",
    text="Zero\x00, tab\t, emoji 🦊, line\u2028break, e\u0301.\n" * 3,
    sections=(Section("", (), 0, 40), Section("H “q”", ("A", "H “q”"), 40, 120, n_merged=3, part=2, n_parts=5)),
    metadata={"a.b c": "x", "n": 2**62, "f": 0.1, "yes": True, "none": None, "list": ["é", 1, False, None]},
    source="/tmp/ä b.md",
    pages=(0, 17, 55),
)


def test_a_document_comes_back_equal_and_its_hash_is_of_its_text(tmp_path: Path, encoder: FakeEncoder) -> None:
    with Writer(tmp_path / "x.lm") as writer:
        ids = writer.commit([(DOCUMENT, encoder.encode([DOCUMENT])[0])])
        with writer.read() as connection:
            ((document, coverage),) = stored_documents(connection, ids)
    assert document == DOCUMENT
    assert coverage == encoder.segment(DOCUMENT).coverage
    changed = replace(DOCUMENT, doc_id="other", metadata={}, source="elsewhere")
    assert content_hash(changed) == content_hash(DOCUMENT)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 1201])  # more than one statement takes
def test_documents_come_in_the_requested_order(tmp_path: Path, n: int) -> None:
    encoder, documents = FakeEncoder(width=1), [make_document(f"d{number}", "w") for number in range(n)]
    with Writer(tmp_path / "x.lm") as writer:
        ids = writer.commit(list(zip(documents, encoder.encode(documents), strict=True)))
        with writer.read() as connection:
            found = stored_documents(connection, [ids[1], 9999, *ids[:1], *ids[:1:-1]])
    assert [document.doc_id for document, _ in found] == ["d1", "d0", *(f"d{number}" for number in range(n - 1, 1, -1))]


@pytest.mark.parametrize(
    "change",
    [
        {"text": "other"},
        {"title": "other"},
        {"sections": (Section("", (), 0, 41), Section("H “q”", ("A", "H “q”"), 41, 120))},
        {"sections": (Section("G", ("G",), 0, 40), *DOCUMENT.sections[1:])},
    ],
)
def test_the_hash_changes_with_all_that_the_encoder_sees(change: dict[str, object]) -> None:
    assert content_hash(replace(DOCUMENT, **change)) != content_hash(DOCUMENT)  # type: ignore[arg-type]


@given(st.text(max_size=20), st.text(max_size=20), st.text(min_size=1, max_size=5))
def test_text_that_moves_between_title_and_body_changes_the_hash(title: str, text: str, moved: str) -> None:
    one = Document("d", title + moved, text, ())
    assert content_hash(one) != content_hash(Document("d", title, moved + text, ()))
