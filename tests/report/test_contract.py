"""Results in the form of the schema, and as rows: every kind is valid, and its parts sum to the score."""

import copy
import csv
import gc
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest
from jsonschema_rs import meta

from engine.index import Index
from engine.report.contract import VERSION, envelope, reference_notes, result_schema, spans
from engine.report.exports import PART_COLUMNS, as_cell, part_rows
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.text.document import Document
from engine.words.segmenter import WordSegmenter
from indexer.building.builder import build
from indexer.cli.formats import Answer, render
from tests.fakes import FakeEncoder, few_first_vectors, make_corpus, make_document
from tests.strict_schema import VALIDATOR, check

CHINESE = [
    make_document("fox", [("狐狸", "狐狸在夜里打猎，机器学习很有用。"), ("", "夜里很黑。")]),
    make_document("dog", [("狗", "狗整天睡觉，深度学习也很有用。")]),
]
PAGED = [replace(document, pages=(0, 200, 300)) for document in make_corpus(8)]


def result_of(
    folder: Path,
    documents: list[Document],
    query: Document,
    *,
    encode: Any = "all",  # noqa: ANN401
    language: str | None = None,
    **options: Any,  # noqa: ANN401
) -> Mapping[str, Any]:
    build(folder, documents, encoder=FakeEncoder(), encode=encode, language=language)
    with Index.open(folder, encoder=FakeEncoder()) as index:
        return index.search(query, Request.of(**options)).to_dict()


def test_the_schema_is_valid_in_its_draft_of_json_schema() -> None:
    meta.validate(result_schema())
    assert result_schema()["$defs"]["version"]["const"] == result_schema()["title"] == VERSION


def test_a_result_of_vectors_and_words_is_valid(index: Index, corpus: list[Document]) -> None:
    result = check(index.search(corpus[3], Request(with_itself=True)).to_dict(n_pairs=10))
    kinds = {part["kind"] for hit in result["hits"] for part in hit["parts"]}
    assert kinds == {"section_pair"}
    assert any(part["spans"] and part["words"] for part in result["hits"][0]["parts"])
    assert check(json.loads(json.dumps(result))) == result


@pytest.mark.parametrize("options", [{}, {"skip": ["references"], "weights": {"body": 2.0}}])
def test_each_text_is_segmented_at_most_once(
    index: Index, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = make_document("new", [("Cats", "A cat sleeps in the warm sun."), ("Dogs", "A dog runs after the cat.")])
    index.search(query, Request.of(**options))  # caches of the index are filled
    texts: list[str] = []
    segment = WordSegmenter.segment
    monkeypatch.setattr(WordSegmenter, "segment", lambda self, text: texts.append(text) or segment(self, text))
    result = index.search(query, Request.of(**options))
    result.to_dict()
    result.to_html()
    assert len([text for text in texts if text]) <= 1 + len(result.hits) and len(result.hits) > 1
    assert len({text for text in texts if text}) == len([text for text in texts if text])


@pytest.mark.parametrize("n_pairs", [-1, 0, 1, 1_000, None])
def test_any_number_of_pairs_is_valid(index: Index, corpus: list[Document], n_pairs: int | None) -> None:
    result = index.search(corpus[3], Request(k=3, with_itself=True))
    for hit, shown in zip(result, check(result.to_dict(n_pairs=n_pairs))["hits"], strict=True):
        listed = [part for part in shown["parts"] if part["kind"] == "section_pair"]
        assert len(listed) == (len(hit.pairs) if n_pairs is None else min(max(0, n_pairs), len(hit.pairs)))
        assert shown["n_pairs"] == len(hit.pairs)
        rows = [row["part"] for row in shown["by_section"]["rows"]]
        n_sections = len({pair.query_section for pair in hit.pairs})
        assert len(set(rows)) == len(rows) == min(len(listed), n_sections)  # the best of each section comes first
        contributions = [part["contribution"] for part in listed]
        assert contributions == sorted(contributions, reverse=True)
        assert {at for at, part in enumerate(listed) if part["marks"]} == set(rows)


def test_a_result_is_freed_without_a_search_for_garbage(index: Index, corpus: list[Document]) -> None:
    for _ in range(2):  # the first time loads what is loaded once
        gc.collect()
        gc.disable()
        index.search(corpus[3], Request(with_itself=True)).to_dict()
        n_left = gc.collect()
        gc.enable()
    assert n_left == 0


def test_results_of_a_list_of_queries_are_one_envelope(index: Index, corpus: list[Document]) -> None:
    results = [index.search(document, Request(k=2)).to_dict(n_pairs=1) for document in corpus[:3]]
    several = check(envelope(results))
    assert [result["query"]["id"] for result in several["results"]] == ["doc000", "doc001", "doc002"]
    assert check(envelope(results[:1]))["results"] == results[:1]
    assert check(envelope([])) == {"schema": VERSION, "results": []}


def test_a_result_by_words_alone_is_valid(tmp_path: Path, corpus: list[Document]) -> None:
    result = check(result_of(tmp_path / "x.lm", corpus[:20], corpus[3], encode="none"))
    parts = [part for hit in result["hits"] for part in hit["parts"]]
    assert {(part["kind"], part["similarity"]) for part in parts} == {("section_pair", None), ("rest", None)}
    assert all(part["contribution"] == part["word_contribution"] for part in parts)
    assert result["status"] == "certified" and not result["hits"][0]["has_vectors"]


def test_a_result_of_vectors_without_words_is_valid(index: Index, corpus: list[Document]) -> None:
    result = check(
        index.search(corpus[3], Request(scoring=Scoring(word_weight=0, pair_weight=0), with_itself=True)).to_dict()
    )
    assert all(not part["words"] for hit in result["hits"] for part in hit["parts"])


@pytest.mark.slow
def test_a_result_of_an_index_without_all_vectors_is_valid(
    tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    few_first_vectors(monkeypatch, 4)
    result = check(result_of(tmp_path / "x.lm", corpus, corpus[3], encode="later", candidates=2, k=40))
    assert result["encoding"]["n_encoded"] == 2
    assert {hit["has_vectors"] for hit in result["hits"]} == {True, False}


def test_filtered_and_empty_results_are_valid_also_as_csv(index: Index, corpus: list[Document]) -> None:
    result = check(index.search(corpus[3], Request(where="topic = 3 and year > 2005", with_itself=True)).to_dict())
    assert {hit["metadata"]["topic"] for hit in result["hits"]} == {3}
    result = check(index.search(corpus[3], Request(where="topic = 99", with_itself=True)).to_dict())
    assert (result["hits"], result["n_found"], result["n_searched"]) == ([], 0, 0)
    nothing = index.search(corpus[3], Request(where="topic = 99", with_itself=True))
    assert render([Answer(nothing)], "csv", 2) == ",".join(PART_COLUMNS) + "\n"


def test_a_chinese_result_is_valid_and_its_words_are_in_the_text(tmp_path: Path) -> None:
    query = make_document("q", [("问", "狐狸打猎。机器学习。")])
    result = check(result_of(tmp_path / "x.lm", CHINESE, query, language="chinese"))
    words = [word for part in result["hits"][0]["parts"] for word in part["words"]]
    text = CHINESE[0].text
    places = [place for word in words for place in spans(word["target_spans"])]
    assert {text[place.start : place.stop] for place in places} == {word["term"] for word in words}
    assert {"狐狸", "机器学习"} <= {word["term"] for word in words}


def test_hits_of_documents_with_pages_have_page_numbers(tmp_path: Path) -> None:
    result = check(result_of(tmp_path / "x.lm", PAGED, PAGED[1]))
    sections = [part["target_section"] for part in result["hits"][0]["parts"] if part["kind"] == "section_pair"]
    for section in sections:
        first, last = (sum(page <= at for page in PAGED[1].pages) for at in (section["start"], section["end"] - 1))
        assert (section["page"], section["last_page"]) == (first, last)
    assert {section["last_page"] for section in sections} == {2, 3}


def test_words_stand_where_their_spans_are(index: Index, corpus: list[Document]) -> None:
    result = index.search(corpus[3], Request(k=3, with_itself=True))
    for hit, shown in zip(result, result.to_dict()["hits"], strict=True):
        for part in shown["parts"]:
            for word in part["words"]:
                sides = ((corpus[3], "query"), (hit.document, "target"))
                for document, side in sides:
                    section = part[f"{side}_section"]
                    assert word[f"{side}_spans"]
                    for place in spans(word[f"{side}_spans"]):
                        assert section["start"] <= place.start < section["end"]  # a pair may end in the next one
                        assert document.text[place.start : place.stop].split() == word["term"].split()


def _set(value: Any, *path: str | int) -> Callable[[dict[str, Any]], None]:  # noqa: ANN401
    def change(result: dict[str, Any]) -> None:
        at: Any = result
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_set("longmatch-result/2", "schema"), '"longmatch-result/1" was expected'),
        (_set("sure", "status"), '"sure" is not one of'),
        (_set(0, "hits", 0, "rank"), "less than the minimum"),
        (_set("chunk", "hits", 0, "parts", 0, "kind"), '"chunk" is not one of'),
        (_set("rest", "hits", 0, "parts", 0, "kind"), 'is not of type "null"'),
        (_set(None, "hits", 0, "parts", 0, "query_section"), 'null is not of type "object"'),
        (_set(-1, "hits", 0, "parts", 0, "contribution"), "less than the minimum"),
        (_set([1], "hits", 0, "parts", 0, "words", 0, "query_spans", 0), '[1] is not of type "integer"'),
        (_set(1, "hits", 0, "more"), "'more' was unexpected"),
        (lambda result: result["hits"][0].pop("parts"), '"parts" is a required property'),
    ],
)
def test_values_that_the_schema_does_not_allow_are_found(
    index: Index, corpus: list[Document], change: Callable[[dict[str, Any]], object], problem: str
) -> None:
    result = copy.deepcopy(index.search(corpus[3], Request(k=1, with_itself=True)).to_dict())
    change(result)
    assert any(problem in error.message for error in VALIDATOR.iter_errors(result))
    assert any(problem in error.message for error in VALIDATOR.iter_errors(envelope([result])))


def test_references_of_both_texts_come_with_their_sections(tmp_path: Path) -> None:
    opinion = [("Facts", "A bus stops in the sun."), ("Argument", "See 347 U. S. 483, 42 USC 1983 and RFC 2119.")]
    same = [("Argument", "Herons, 347 U.S. 483.")]
    other = [
        ("I", "Brown, 347 U.S. 483, again 347 U.S. at 495."),
        ("II.A", "A bus under 347 U.S. 483."),
        ("III", "Cats."),
    ]
    documents = [
        make_document("other", other),
        make_document("same", same),
        make_document("rfc2119.txt", "A bus that is cited in the sun."),
    ]
    result = check(result_of(tmp_path / "x.lm", documents, make_document("q", opinion)))
    values = {hit["id"]: hit["references"] for hit in result["hits"]}
    (shared,) = values["other"]["shared"]
    places = [[(place["label"], place["n"]) for place in shared[side]] for side in ("query", "target")]
    assert (shared["name"], shared["kind"], places) == (
        "347 U.S. 483",
        "case",
        [[("Argument", 1)], [("I", 2), ("II.A", 1)]],
    )
    assert [place["label"] for place in values["rfc2119.txt"]["query_cites"]] == ["Argument"]
    notes = {hit["id"]: reference_notes(hit) for hit in result["hits"]}
    assert notes["other"] == ["both cite 347 U.S. 483, in Argument and in I"]
    assert notes["same"] == ["both cite 347 U.S. 483, in Argument of both"]
    assert notes["rfc2119.txt"] == ["the query cites it, in Argument"]


def test_rows_of_parts_have_all_columns_and_sum_to_the_score(index: Index, corpus: list[Document]) -> None:
    rows = list(part_rows(index.search(corpus[3], Request(with_itself=True)).to_dict(n_pairs=2)))
    assert {tuple(row) for row in rows} == {PART_COLUMNS}
    assert {row["kind"] for row in rows} == {"section_pair", "rest"}
    frame = index.search(corpus[3], Request(with_itself=True)).parts_to_pandas(n_pairs=2)
    for _, rows in frame.groupby("rank"):
        assert rows["contribution"].sum() == pytest.approx(rows["score"].iloc[0], abs=1e-5)


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


@pytest.mark.parametrize("value", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_text_that_a_spreadsheet_would_compute_gets_an_apostrophe(value: str) -> None:
    assert as_cell(value) == f"'{value}".replace("\r", "\n")


@pytest.mark.parametrize("value", ["a=1", "", 3, None])
def test_other_values_stay_as_they_are(value: object) -> None:
    assert as_cell(value) == value


@pytest.mark.parametrize(("value", "cell"), [(0.10000000149011612, "0.1"), (-1.5, "-1.5"), (1 / 3, "0.33333334")])
def test_floats_have_the_digits_of_single_precision(value: float, cell: str) -> None:
    assert as_cell(value) == cell
