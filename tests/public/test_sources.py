"""Sources of documents: records, tables, paths and texts."""

import datetime
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest

from engine.errors import DocumentError
from engine.readers import Unreadable, jsonl
from engine.readers.fields import Fields
from engine.text.document import Document
from longmatch.sources import (
    is_missing,
    is_table,
    named_path,
    read_source,
    record_document,
    record_id,
    table_columns,
    table_rows,
    whole_document,
)
from tests.fakes import make_document

BODY = "A long enough paragraph on the subject. " * 8


def read(record: dict[Any, Any], **columns: str) -> Document:
    return record_document(record, Fields(**columns))


@pytest.mark.parametrize(
    "record",
    [
        {"id": "a", "title": "On foxes", "text": BODY},
        {"_id": 7, "title": "On foxes", "text": [BODY, BODY], "year": 2020, "tags": ["x", "y"], "vector": [0.5]},
        {"id": "a", "title": "T", "sections": [{"heading": "One", "text": BODY}, {"title": "Two", "text": BODY}]},
        {"id": "a", "title": "T", "text": BODY, "metadata": {"venue": {"name": "ACL"}, "authors": [{"last": "Fox"}]}},
    ],
)
def test_a_dict_is_read_as_a_line_of_a_file(record: dict[str, Any]) -> None:
    (line,) = jsonl.stream(io.BytesIO(json.dumps(record).encode()), "")
    made = read(record)
    assert isinstance(line, Document)
    assert (made.doc_id, made.title, made.text, made.sections) == (line.doc_id, line.title, line.text, line.sections)
    assert made.metadata == line.metadata


def test_fields_are_found_by_the_names_that_are_given() -> None:
    made = read({"doi": "10.1/x", "name": "On foxes", "abstract": BODY, "text": "other", "year": 1999},
                text="abstract", id="doi", title="name")  # fmt: skip
    assert (made.doc_id, made.title) == ("10.1/x", "On foxes")
    assert made.text == f"On foxes\n\n{BODY}"
    assert made.metadata == {"year": 1999}


def test_a_record_without_id_is_named_by_its_content() -> None:
    first, again, other = read({"text": BODY}), read({"text": BODY, "year": 1}), read({"text": BODY, "title": "T"})
    assert first.doc_id == again.doc_id == Document.from_text(BODY).doc_id
    assert first.doc_id != other.doc_id
    assert first.title == "A long enough paragraph on the subject. A long enough…"
    assert other.title == "T"


def test_values_of_numpy_pandas_and_dates_become_plain() -> None:
    made = read(
        {
            "id": np.int64(3),
            "text": np.str_(BODY),
            "year": np.int32(2020),
            "share": np.float32(0.5),
            "is_new": np.bool_(True),
            "day": datetime.date(2020, 5, 1),
            "at": pandas.Timestamp("2020-05-01 10:00"),
            "price": Decimal("1.5"),
            "nan": float("nan"),
            "na": pandas.NA,
            "nat": pandas.NaT,
            "vector": np.zeros(3),
            "tags": np.array(["x", "y"], object),
            "letters": np.array(["a", "b"]),
            "mixed": np.array(["a", 1], object),
            "object": object(),
        }
    )
    assert made.doc_id == "3"
    assert made.metadata == {
        "year": 2020,
        "share": 0.5,
        "is_new": True,
        "day": "2020-05-01",
        "at": "2020-05-01T10:00:00",
        "price": 1.5,
        "tags": ["x", "y"],
        "letters": ["a", "b"],
    }


def cyclic() -> dict[str, Any]:
    nested: dict[str, Any] = {}
    nested["x"] = nested
    return nested


@pytest.mark.parametrize(
    ("record", "columns", "message"),
    [
        ({"body": "x", "year": 1}, {}, "no field 'text' among ['body', 'year']; name the one that holds the text"),
        ({"text": "x"}, {"text": "abstract"}, "no field 'abstract' among ['text']; change text='abstract'"),
        ({"text": "x"}, {"id": "doi"}, "no field 'doi' among ['text']; change id='doi'"),
        ({"text": None}, {}, "the field 'text' is empty; leave the record out"),
        ({"text": float("nan")}, {}, "the field 'text' is empty; leave the record out"),
        ({"text": " "}, {}, "it holds no text"),
        ({"text": 5}, {}, 'the field "text" is int, not text'),
        ({"text": b"bytes"}, {}, "the record cannot be stored"),
        ({"text": "x", "id": True}, {}, "the id in 'id' is True; give a text or a number"),
        ({"text": "x", "doi": None}, {"id": "doi"}, "the id in 'doi' is None; give a text or a number"),
        ({"text": "x", "metadata": 5}, {}, 'the field "metadata" is int, not an object'),
        ({"text": "x", "metadata": {"a": {1, 2}}}, {}, "the record cannot be stored"),
        ({"text": "x", "metadata": cyclic()}, {}, "the record cannot be stored"),
    ],
)
def test_a_record_that_cannot_be_read_is_refused(record: dict[str, Any], columns: dict[str, str], message: str) -> None:
    with pytest.raises(DocumentError) as raised:
        read(record, **columns)
    assert str(raised.value).startswith(message)


def test_an_id_is_looked_up_without_an_error_and_missing_values_are_known() -> None:
    assert record_id({"_id": 5}, Fields()) == "5"
    assert record_id({"doi": "x"}, Fields(id="doi")) == "x"
    assert record_id({"id": None}, Fields()) is None
    assert record_id({"id": [1]}, Fields()) is None
    assert all(map(is_missing, [None, float("nan"), np.float32("nan"), pandas.NA, pandas.NaT]))
    assert not any(map(is_missing, ["", 0, False]))


def test_a_document_made_without_sections_gets_one() -> None:
    made = whole_document(Document("q", "title", "text", ()))
    assert [(one.start, one.stop) for one in made.sections] == [(0, 4)]
    assert whole_document(made) is made


@pytest.fixture
def papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers").mkdir()
    for name in ("one.md", "two.txt"):
        (tmp_path / "papers" / name).write_text(f"Words of {name}.")
    return tmp_path / "papers"


def ids(source: object, **columns: str) -> list[str]:
    found = list(read_source(source, Fields(**columns)).documents)
    assert all(isinstance(one, Document) for one in found)
    return [one.doc_id for one in found]


@pytest.mark.slow
def test_a_folder_may_be_a_path_or_a_string(papers: Path) -> None:
    for source in (papers, "papers", str(papers), [papers], ["papers"], "papers/*", iter([papers])):
        assert ids(source) == ["one.md", "two.txt"]
    assert read_source(papers, Fields()).n_expected == 2


def test_a_list_may_mix_texts_files_dicts_and_documents(papers: Path) -> None:
    mixed = ["A text.", "papers/one.md", papers / "two.txt", {"id": "d", "text": "x"}, make_document("m", "words")]
    assert ids(mixed) == [Document.from_text("A text.").doc_id, "one.md", "two.txt", "d", "m"]
    assert read_source(mixed, Fields()).n_expected == 5


@pytest.mark.parametrize("source", [{"id": "a", "text": "words"}, make_document("a", "words")])
def test_one_dict_or_document_is_a_source(source: object) -> None:
    assert ids(source) == ["a"]


def test_texts_that_come_again_are_left_out_but_not_records_with_an_id() -> None:
    stream = read_source(["same", "other", "same", {"text": "same"}], Fields())
    assert len(list(stream.documents)) == 2
    assert stream.n_repeated == 2
    named = [{"id": "text-1", "text": "x"}, {"id": "text-1", "text": "x"}]
    assert ids(named) == ["text-1", "text-1"]


def test_a_generator_is_read_one_by_one() -> None:
    drawn = []

    def records() -> Iterator[dict[str, Any]]:
        for number in range(1_000_000):
            drawn.append(number)
            yield {"id": number, "text": "words"}

    stream = read_source(records(), Fields())
    assert drawn == [0]
    next(stream.documents), next(stream.documents)
    assert drawn == [0, 1]
    assert stream.n_expected is None


def test_columns_of_a_table_are_named() -> None:
    table = pandas.DataFrame({"doi": ["a", "b"], "abstract": ["fox", "dog"], "year": [1, 2]})
    stream = read_source(table, Fields(text="abstract", id="doi"))
    assert stream.n_expected == 2
    found = [one for one in stream.documents if isinstance(one, Document)]
    assert [(one.doc_id, one.text, dict(one.metadata)) for one in found] == [
        ("a", "fox", {"year": 1}),
        ("b", "dog", {"year": 2}),
    ]


def test_a_series_of_texts_is_a_list_of_texts() -> None:
    texts = pandas.Series(["fox", None, "dog"])
    found = list(read_source(texts, Fields()).documents)
    assert found[1] == Unreadable("record 1", "it is empty; leave it out")
    assert [one.text for one in found if isinstance(one, Document)] == ["fox", "dog"]


def test_a_bad_record_becomes_a_failure_and_the_others_are_read() -> None:
    records = [{"id": "a", "text": "x"}, {"id": "b", "text": ""}, {"text": None}, {"id": "c"}, {"id": "d", "text": "y"}]
    found = list(read_source(records, Fields()).documents)
    assert [one.doc_id for one in found if isinstance(one, Document)] == ["a", "d"]
    assert [(one.source, one.doc_id) for one in found if isinstance(one, Unreadable)] == [
        ("b", "b"),
        ("record 2", ""),
        ("c", "c"),
    ]


def test_a_file_that_cannot_be_read_becomes_a_failure(papers: Path) -> None:
    (papers / "bad.pdf").write_text("no PDF")
    found = list(read_source([papers, {"id": "a", "text": "x"}], Fields()).documents)
    assert [one.source for one in found if isinstance(one, Unreadable)] == [str(papers / "bad.pdf")]


@pytest.mark.usefixtures("papers")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        (5, "the source is int; pass a folder, a table, or a list of"),
        (None, "the source is NoneType; pass"),
        (b"bytes", "the source is bytes; pass"),
        ([5], "record 0 is int; pass a text, a path, a dict or a Document"),
        (iter([{1}]), "record 0 is set; pass"),
        ("a text of words", "'a text of words' does not exist; to index texts, pass a list of them"),
        ("no", "'no' does not exist; to index texts, pass a list of them"),
        ("no/*.md", "no/*.md does not exist and no file matches it as a pattern"),
        (Path("no"), "no does not exist"),
        (["papers/no.md"], "papers/no.md does not exist"),
        ([{"body": "x"}], "no field 'text' among ['body']; name the one that holds the text: text='body'"),
        (
            [{"id": "x", "full_text": "y"}],
            "no field 'text' among ['id', 'full_text']; name the one that holds the text: text='full_text'",
        ),
        (pandas.DataFrame({"a": [1]}), "no field 'text' among ['a']"),
    ],
)
def test_a_source_of_another_kind_is_refused_before_it_is_read(source: object, message: str) -> None:
    with pytest.raises(DocumentError) as raised:
        read_source(source, Fields())
    assert str(raised.value).startswith(message)


def test_an_open_file_and_a_record_of_another_type_later_on_are_refused(papers: Path) -> None:
    with (papers / "one.md").open() as lines, pytest.raises(DocumentError, match="an open file; pass its path"):
        read_source(lines, Fields())
    stream = read_source(["text", 5], Fields())
    with pytest.raises(DocumentError, match="record 1 is int"):
        list(stream.documents)


ROWS = [{"id": 1, "text": "fox"}, {"id": 2, "text": "dog"}]
ARROW = pyarrow.Table.from_pylist(ROWS)


class Dataset:
    """As `datasets.Dataset`."""

    column_names: list[str] | None = ["id", "text"]  # noqa: RUF012

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(ROWS)


class DatasetDict(dict[str, Any]):
    """As `datasets.DatasetDict`."""


class PolarsFrame:
    """As `polars.DataFrame`."""

    columns = ("id", "text")
    schema = SimpleNamespace(names=lambda: ["id", "text"])

    def iter_rows(self, *, named: bool) -> Iterator[dict[str, Any]]:
        assert named
        return iter(ROWS)


class LazyFrame:
    """As `polars.LazyFrame`."""

    columns = ("id", "text")

    def collect(self) -> None: ...


for stand_in, module in (
    (Dataset, "datasets.arrow_dataset"),
    (DatasetDict, "datasets.dataset_dict"),
    (PolarsFrame, "polars.dataframe.frame"),
    (LazyFrame, "polars.lazyframe.frame"),
):
    stand_in.__module__ = module


class Extended(pandas.DataFrame):
    """A table of a library that extends pandas."""


@pytest.mark.parametrize(
    "table",
    [
        pandas.DataFrame(ROWS),
        Extended(ROWS),
        ARROW,
        *ARROW.to_batches(),
        ARROW.to_reader(max_chunksize=1),
        Dataset(),
        PolarsFrame(),
    ],
    ids=lambda table: type(table).__name__,
)
def test_rows_are_dicts_by_column(table: object) -> None:
    assert is_table(table)
    assert table_columns(table) == ["id", "text"]
    assert list(table_rows(table)) == ROWS


def test_a_stream_of_a_dataset_may_not_know_its_columns() -> None:
    stream = Dataset()
    stream.column_names = None
    assert table_columns(stream) is None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (DatasetDict(train=Dataset(), test=Dataset()), r"splits \['train', 'test'\]; choose one: dataset\['train'\]"),
        (LazyFrame(), r"pass table.collect\(\)"),
    ],
)
def test_splits_and_lazy_tables_are_refused(table: object, message: str) -> None:
    assert is_table(table)
    with pytest.raises(DocumentError, match=message):
        table_columns(table)


@pytest.mark.parametrize("source", [[], {}, "text", pandas.Series(["a"]), ARROW["id"], iter(()), None])
def test_other_sources_are_no_tables(source: object) -> None:
    assert not is_table(source)


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers").mkdir()
    for name in ("draft.md", "my draft.md", "notes.log", "LICENSE", "papers/LICENSE"):
        (tmp_path / name).write_text("words")


EXISTING = ["draft.md", "my draft.md", "notes.log", "papers/LICENSE", "./LICENSE"]
NAMES_ALONE = ["no.pdf", "no.txt.gz", "papers/no.tex", "/no/such", "./no", "../no", "~/no"]
TEXTS = ["", "LICENSE", "papers", "fox", "and/or", "how to convert a .docx to .pdf", "see no.pdf", "draft.md\n"]
TEXTS += ["no.\u2028pdf", "version 3.11", "a\0.pdf", "A line that is too long for a name. " * 9, "x" * 100_000 + ".pdf"]


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(
    ("string", "is_name"), [(name, True) for name in EXISTING + NAMES_ALONE] + [(text, False) for text in TEXTS]
)
def test_a_string_is_a_file_or_can_only_be_one_or_is_a_text(string: str, is_name: bool) -> None:
    assert named_path(string) == (Path(string) if is_name else None)


@pytest.mark.usefixtures("named")
def test_a_folder_is_a_path_only_where_folders_are_accepted() -> None:
    assert named_path("papers", is_folder_named=True) == Path("papers")
    assert named_path("papers") is None
