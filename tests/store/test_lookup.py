"""Documents that are looked up by name while a writer is open."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import QueryError
from engine.index import Index
from engine.search.request import Request
from engine.store.checks import content_hash
from engine.store.lookup import Field, check_fields, stored_fields, stored_hashes, stored_values
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import MetadataValue
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document


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


def test_fields_have_types_counts_and_examples(folder: Path) -> None:
    assert stored_fields(folder) == [
        Field("a `b`", ("text",), 1, ("x",)),
        Field("authors", ("list", "text"), 3, ("Ann", "Ben", "Cem")),
        Field("open", ("true or false",), 1, (True,)),
        Field("venue", ("text",), 3, ("ACL", "EMNLP")),
        Field("year", ("number",), 2, (2019, 2021.5)),
    ]


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


def test_the_commonest_values_come_first_up_to_a_limit(folder: Path) -> None:
    assert stored_values(folder, "authors", limit=1) == [("Ann", 2)]


@pytest.mark.parametrize(
    "where",
    [
        "year >= 2019",
        "doc_id = 'd1' or title like '%' or source = 'x'",
        "absent exists",
        "not absent exists and year > 1",
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
    ],
)
def test_an_unknown_field_is_refused_with_those_that_exist(folder: Path, where: str, told: str) -> None:
    with IndexSnapshot(folder) as snapshot, pytest.raises(QueryError) as error:
        check_fields(snapshot, where)
    assert told in str(error.value) and "longmatch show INDEX --fields" in str(error.value)


def test_the_error_for_documents_without_metadata_names_other_fields(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", [make_document("d", "the fox runs")], encoder=FakeEncoder(), factory="scan")
    expected = "the documents have no metadata; filter by doc_id, title or source"
    with IndexSnapshot(tmp_path / "x.lm") as snapshot, pytest.raises(QueryError, match=expected):
        check_fields(snapshot, "year = 1")


def test_a_search_refuses_unknown_fields_and_documents(folder: Path) -> None:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        with pytest.raises(QueryError, match="did you mean 'year'"):
            index.search("d0", Request(where="yeer = 2019"))
        with pytest.raises(QueryError, match="no document 'd9'"):
            index.search("d0", Request(without="d9"))


def test_documents_are_left_out_on_request(folder: Path) -> None:
    query = make_document("q", "the fox 1 runs", title="d1")
    with Index.open(folder, encoder=FakeEncoder()) as index:
        assert {hit.doc_id for hit in index.search(query, Request(with_itself=True))} == {"d0", "d1", "d2"}
        assert {hit.doc_id for hit in index.search(query, Request(without="d1", with_itself=True))} == {"d0", "d2"}
        found = index.search("d0", Request(without=["d1"]))
        assert [hit.doc_id for hit in found] == ["d2"] and found.n_searched == 1


def test_copies_have_the_same_title_text_and_sections(folder: Path) -> None:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        same = index.document("d1")
        assert index.copies(make_document("other", "the fox 1 runs", title=same.title)) == ["d1"]
        assert index.copies(make_document("other", "the fox 1 runs.", title=same.title)) == []
