"""The cut-off by date: what passes is certainly before the day, and documents without a date are counted."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import longmatch
from engine.errors import QueryError
from engine.index import Index
from engine.search.request import Request
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document
from tests.strict_schema import check

DATES: list[dict[str, Any]] = [
    {"date": "2019-05-31"},
    {"date": "2019-06-01"},
    {"date": "2019-05-31T23:59:59Z"},
    {"date": "2019-05"},
    {"date": "2019-06"},
    {"year": 2018},
    {"year": "2019"},
    {"date": "June 2020", "year": 2018},
    {"date": "2020-01-01", "year": 2018},
    {"published": "2018-12-31", "created": "2020-01-01"},
    {"date": ["2020-01-01", "2018-01-01"]},
    {"date": "05-Aug-2003"},
    {"date": ""},
    {"date": 20180101},
    {"priority": "1999-01-01"},
    {},
]
PASSING = [0, 2, 3, 5, 7, 9, 10]
UNDATED = [11, 12, 13, 14, 15]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dated") / "x.lm"
    documents = [
        replace(make_document(f"d{number:02d}", f"fox river word{number}"), metadata=metadata | {"part": number % 2})
        for number, metadata in enumerate(DATES)
    ]
    build(folder, documents, encoder=FakeEncoder(), encode="none")
    return folder


def names(result: Any) -> list[int]:  # noqa: ANN401
    return sorted(int(hit.doc_id[1:]) for hit in result)


@pytest.mark.parametrize("before", ["2019-06-01", "2019-06", datetime.date(2019, 6, 1)])
def test_what_passes_is_certainly_before_the_day(folder: Path, before: Any) -> None:  # noqa: ANN401
    with longmatch.open(folder) as index:
        result = index.search("fox river", before=before, k=50)
        assert (names(result), result.n_undated) == (PASSING, len(UNDATED))
        assert check(result.to_dict())["provenance"]["parameters"]["before"] == "2019-06-01"
        assert f"({len(UNDATED)} without a date left out)" in str(result) and "5 without a date" in result.to_html()
        odd = index.search("fox river", before=before, where="part = 1", k=50)
        assert names(odd) == [number for number in PASSING if number % 2]
        assert odd.n_undated == sum(number % 2 for number in UNDATED)
        assert index.search("fox river").n_undated is None
        joint = index.search_together(["fox river"], before=before, k=50)
        assert (names(joint), joint.to_dict()["n_undated"]) == (PASSING, len(UNDATED))
        novelty = index.search("fox river", before=before, mode="novelty")
        assert (novelty.n_searched, novelty.n_undated) == (len(PASSING), len(UNDATED))


def test_filters_compare_any_field_with_a_date(folder: Path) -> None:
    with Index.open(folder) as index:
        query = make_document("q", "fox river")
        assert names(index.search(query, Request(where="priority before 2000"))) == [14]
        assert names(index.search(query, Request(where="not year before '2019' and year exists"))) == [6]
        with pytest.raises(QueryError, match="expected a date, as 2019"):
            index.search(query, Request(where="year before 'soon'"))


def test_a_cut_off_can_name_another_field(folder: Path) -> None:
    with longmatch.open(folder) as index:
        result = index.search("fox river", before="priority=2000", k=50)
        assert (names(result), result.n_undated) == ([14], len(DATES) - 1)
        assert result.to_dict()["provenance"]["parameters"]["before"] == "priority=2000-01-01"
        with pytest.raises(QueryError, match="no document has a date: a field prority;"):
            index.search("fox river", before="prority=2000")


@pytest.mark.parametrize("before", ["=2019", "year=soon", "2019-13", "2019-6-1", "19", "", "2019-06-01T00:00", True])
def test_other_values_are_no_date(before: object) -> None:
    with pytest.raises(QueryError, match="it must be a date"):
        Request.of(before=before)


def test_an_index_without_dates_is_refused(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", [make_document("d", "fox river")], encoder=FakeEncoder(), encode="none")
    with Index.open(tmp_path / "x.lm") as index, pytest.raises(QueryError, match="no document has a date"):
        index.search(make_document("q", "fox"), Request(before="2019"))
