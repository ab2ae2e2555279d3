"""Dicts are read as documents, as the reader of JSON lines reads them."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import pytest

from engine.errors import DocumentError
from engine.readers import jsonl
from engine.text.document import Document
from longmatch.sources import Columns, is_missing, record_document, record_id, whole_document

BODY = "A long enough paragraph on the subject. " * 8


def read(record: dict[Any, Any], **columns: str) -> Document:
    return record_document(record, Columns(**columns))


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


def test_an_id_is_looked_up_without_an_error() -> None:
    assert record_id({"_id": 5}, Columns()) == "5"
    assert record_id({"doi": "x"}, Columns(id="doi")) == "x"
    assert record_id({"id": None}, Columns()) is None
    assert record_id({"id": [1]}, Columns()) is None


def test_none_and_the_missing_values_of_tables_are_missing() -> None:
    assert all(map(is_missing, [None, float("nan"), np.float32("nan"), pandas.NA, pandas.NaT]))
    assert not any(map(is_missing, ["", 0, False]))


def test_a_document_made_without_sections_gets_one() -> None:
    made = whole_document(Document("q", "title", "text", ()))
    assert [(one.start, one.stop) for one in made.sections] == [(0, 4)]
    assert whole_document(made) is made
