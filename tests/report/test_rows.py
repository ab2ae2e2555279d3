"""Rows of CSV and of tables: the same columns and values, which sum to the scores."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pandas
import pytest

from engine.index import Index
from engine.report.rows import PART_COLUMNS, as_cell, part_rows
from engine.search.request import Request
from engine.text.document import Document
from indexer.cli.output import Answer, render


def test_every_row_has_all_columns_in_order(index: Index, corpus: list[Document]) -> None:
    rows = list(part_rows(index.search(corpus[3], Request(with_itself=True)).to_dict(n_pairs=2)))
    assert {tuple(row) for row in rows} == {PART_COLUMNS}
    assert {row["kind"] for row in rows} == {"section_pair", "rest"}


def test_a_row_is_a_listed_part(index: Index, corpus: list[Document]) -> None:
    result = index.search(corpus[3], Request(k=1, with_itself=True)).to_dict(n_pairs=1)
    first, rest = part_rows(result)
    pair = result["hits"][0]["parts"][0]
    assert (first["query_id"], first["doc_id"], first["rank"]) == ("doc003", "doc003", 1)
    assert (first["query_section"], first["query_end"]) == (
        pair["query_section"]["index"],
        pair["query_section"]["end"],
    )
    assert (first["target_heading"], first["similarity"]) == (pair["target_section"]["heading"], pair["similarity"])
    assert first["words"].split("; ") == [word["term"] for word in pair["words"]]
    shared = [{"name": "RFC 2119"}, {"name": "347 U.S. 483"}]
    hits = [result["hits"][0] | {"references": {"shared": shared}}]
    assert [row["both_cite"] for row in part_rows(result | {"hits": hits})] == ["RFC 2119; 347 U.S. 483"] * 2
    assert (rest["query_section"], rest["words"], rest["similarity"]) == (None, None, None)


def test_pandas_reads_csv_as_the_table_of_parts(index: Index, corpus: list[Document]) -> None:
    results = [index.search(document, Request(k=3, with_itself=True)) for document in corpus[3:5]]
    text = render([Answer(result) for result in results], "csv", 2)
    expected = pandas.concat([result.parts_to_pandas(n_pairs=2) for result in results], ignore_index=True)
    read = pandas.read_csv(io.StringIO(text)).astype(expected.dtypes)
    assert read.pop("both_cite").isna().all() and expected.pop("both_cite").isna().all()
    pandas.testing.assert_frame_equal(read, expected)


def test_ids_in_csv_are_not_read_as_formulas(index: Index, corpus: list[Document]) -> None:
    query = replace(corpus[3], doc_id="=cmd()")
    (line, *_) = csv.DictReader(io.StringIO(render([Answer(index.search(query, Request(k=1)))], "csv", 2)))
    assert line["query_id"] == "'=cmd()"


def test_contributions_of_a_hit_sum_to_its_score(index: Index, corpus: list[Document]) -> None:
    frame = index.search(corpus[3], Request(with_itself=True)).parts_to_pandas(n_pairs=2)
    for _, rows in frame.groupby("rank"):
        assert rows["contribution"].sum() == pytest.approx(rows["score"].iloc[0], abs=1e-5)


@pytest.mark.parametrize("value", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_text_that_a_spreadsheet_would_compute_gets_an_apostrophe(value: str) -> None:
    assert as_cell(value) == f"'{value}".replace("\r", "\n")


@pytest.mark.parametrize("value", ["a=1", "", -1.5, 3, None])
def test_other_values_stay_as_they_are(value: object) -> None:
    assert as_cell(value) == value


def test_csv_of_no_hits_is_a_header(index: Index, corpus: list[Document]) -> None:
    nothing = index.search(corpus[3], Request(where="topic = 99", with_itself=True))
    assert render([Answer(nothing)], "csv", 2) == ",".join(PART_COLUMNS) + "\n"
