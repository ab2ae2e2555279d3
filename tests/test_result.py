"""Results of a search: plain values, hits, snippets, tables, and section matrices."""

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.errors import MissingExtra, QueryError
from engine.result import Status, shown_spans
from engine.scoring.parts import Breakdown, ChunkPart, SectionPair, TermPart
from engine.store.checks import content_hash
from engine.text.document import Document
from engine.text.segmentation import Coverage, Section, Span
from engine.views import Hit, Result
from engine.words.places import QueryText
from tests.strict_schema import check

QUERY = Document("q", "Query", "alpha beta", (Section("A", ("A",), 0, 10),))
TARGET = Document(
    "t",
    "Target",
    "gamma delta",
    (Section("", (), 0, 6), Section("D", ("D",), 6, 11)),
    {"year": 2020},
    "t.txt",
    pages=(0, 6),
)
ALPHA, BETA, GAMMA, DELTA = Span(0, 5), Span(6, 10), Span(0, 5), Span(6, 11)
PARTS = (ChunkPart(ALPHA, DELTA, 0.75, 0.7, 0.5, 0.8, 0.2), ChunkPart(BETA, DELTA, 0.6, 0.7, 0.5, 0.1, 0.1))
PLACES = QueryText(QUERY, "english").places, QueryText(TARGET, "english").places
_, DELTA_KEY = PLACES[1].terms.words.tolist()
TERMS = (TermPart("delta", 0.07, DELTA_KEY), TermPart("eps", 0.03))
PAIRS = (
    SectionPair(0, 1, 0.4, PARTS, 0.1, TERMS),
    SectionPair(0, 0, 0.05, (ChunkPart(ALPHA, GAMMA, 0.5, 0.7, 0, 0.2, 0.05),)),
)
COMPONENTS = {"chunks": 0.35, "words": 0.1, "pairs": 0.0}
BREAKDOWN = Breakdown(PAIRS, TERMS, COMPONENTS, places=PLACES)
HIT = Hit(1, BREAKDOWN.score, TARGET, BREAKDOWN, Coverage(5, 10))
RESULT = Result(QUERY, Coverage(0, 0), (HIT,), Status.ESTIMATED, 7, 3, 30, 0.0123456789, "english", 2)
HIT_OF_RESULT = RESULT[0]


def _place(start: int, end: int, page: int | None = None) -> dict[str, Any]:
    return {"start": start, "end": end, "page": page, "last_page": page, "pin": ""}


def test_a_result_as_plain_values_holds_everything() -> None:
    query_section = {"index": 0, "heading": "A", "label": "A", **_place(0, 10)}
    delta = {**_place(6, 11, 2), "text": "delta"}
    quote = {**_place(0, 10), "text": "alpha beta", "marks": []}
    strongest = {
        "kind": "section_pair",
        "contribution": 0.4,
        "word_contribution": 0.1,
        "query_section": query_section,
        "target_section": {"index": 1, "heading": "D", "label": "D", **_place(6, 11, 2)},
        "similarity": 0.75,
        "threshold": 0.5,
        "words": [
            {"term": "delta", "contribution": 0.07, "query_spans": [], "target_spans": [6, 11]},
            {"term": "eps", "contribution": 0.03, "query_spans": [], "target_spans": []},
        ],
        "spans": [
            {
                **{"contribution": 0.2, "similarity": 0.75, "opening": 0.7, "threshold": 0.5, "weight": 0.8},
                **{"query": {**_place(0, 5), "text": "alpha"}, "target": delta},
            },
            {
                **{"contribution": 0.1, "similarity": 0.6, "opening": 0.7, "threshold": 0.5, "weight": 0.1},
                **{"query": {**_place(6, 10), "text": "beta"}, "target": delta},
            },
        ],
        "marks": {"query": [], "target": []},
        "quotes": {"query": quote, "target": {**_place(6, 11, 2), "text": "delta", "marks": []}, "stock": None},
    }
    other = {
        "kind": "section_pair",
        "contribution": 0.05,
        "word_contribution": 0.0,
        "query_section": query_section,
        "target_section": {"index": 0, "heading": "", "label": "“gamma delta”", **_place(0, 6, 1)},
        "similarity": 0.5,
        "threshold": 0,
        "words": [],
        "spans": [
            {
                **{"contribution": 0.05, "similarity": 0.5, "opening": 0.7, "threshold": 0, "weight": 0.2},
                **{"query": {**_place(0, 5), "text": "alpha"}, "target": {**_place(0, 5, 1), "text": "gamma"}},
            }
        ],
        "marks": None,
        "quotes": {"query": quote, "target": {**_place(0, 5, 1), "text": "gamma", "marks": []}, "stock": None},
    }
    hit = {
        "rank": 1,
        "above": None,
        "score": pytest.approx(0.45),
        "id": "t",
        "title": "Target",
        "source": "t.txt",
        "metadata": {"year": 2020},
        "content": content_hash(TARGET),
        "coverage": {"tokens_read": 5, "tokens_total": 10, "share": 0.5},
        "has_vectors": True,
        "components": {"chunks": 0.35, "words": 0.1, "word_pairs": 0.0},
        "words": [{"term": "delta", "contribution": 0.07}, {"term": "eps", "contribution": 0.03}],
        "references": {"n_shared": 0, "shared": [], "query_cites": [], "target_cites": []},
        "n_pairs": 2,
        "by_section": {
            "n_sections": 1,
            "n_covered": None,
            "strongest": ["A"],
            "rows": [
                {
                    "part": 0,
                    "kind": "body",
                    "is_covered": None,
                    "contribution": pytest.approx(0.45),
                    "word_contribution": 0.1,
                    "share": pytest.approx(1.0),
                    "n_pairs": 2,
                }
            ],
            "rest": [],
        },
        "parts": [strongest, other],
    }
    assert RESULT.to_dict() == {
        "schema": "longmatch-result/1",
        "query": {
            "id": "q",
            "title": "Query",
            "source": "",
            "coverage": {"tokens_read": 0, "tokens_total": 0, "share": 1.0, "chunks_pooled": 1},
            "content": content_hash(QUERY),
            "document": None,
        },
        "status": "estimated",
        "n_found": 7,
        "n_evident": 3,
        "n_searched": 30,
        "n_undated": None,
        "seconds": 0.012346,
        "language": "english",
        "query_language": None,
        "copies": [],
        "floor": None,
        "nothing_stands_out": False,
        "reference": 2,
        "encoding": None,
        "provenance": None,
        "hits": [hit],
    }
    check(RESULT.to_dict())
    assert json.loads(json.dumps(RESULT.to_dict())) == RESULT.to_dict()


@pytest.mark.parametrize("n_pairs", [0, 1, 5, None])
def test_a_rest_sums_the_pairs_that_are_not_listed(n_pairs: int | None) -> None:
    (hit,) = RESULT.to_dict(n_pairs=n_pairs)["hits"]
    parts = [(part["kind"], round(part["contribution"], 6)) for part in hit["parts"]]
    pairs, rest = [("section_pair", 0.4), ("section_pair", 0.05)], {0: [("rest", 0.45)], 1: [("rest", 0.05)]}
    assert parts == [*pairs[:n_pairs], *rest.get(-1 if n_pairs is None else n_pairs, [])]
    assert hit["n_pairs"] == 2
    if n_pairs == 0:
        assert hit["parts"][-1]["word_contribution"] == 0.1


def test_a_hit_has_its_pairs_and_document_and_equals_itself_alone_and_pickled() -> None:
    assert (HIT.doc_id, HIT.title, HIT.metadata, HIT.pairs) == ("t", "Target", {"year": 2020}, PAIRS)
    assert RESULT[0] == HIT
    assert pickle.loads(pickle.dumps(RESULT)) == RESULT
    assert pickle.loads(pickle.dumps(RESULT))[0].snippets() == HIT_OF_RESULT.snippets()


def test_a_result_is_the_sequence_of_its_hits() -> None:
    others = tuple(replace(HIT, rank=rank) for rank in (2, 3))
    result = replace(RESULT, hits=(HIT, *others))
    assert len(result) == 3
    assert [hit.rank for hit in result] == [1, 2, 3]
    assert (result[0].rank, result[-1].rank, [hit.rank for hit in result[1:]]) == (1, 3, [2, 3])
    assert list(reversed(result)) == list(result)[::-1]
    assert others[1] in result and result.index(others[1]) == 2
    with pytest.raises(IndexError):
        result[3]
    empty = replace(RESULT, hits=())
    assert (len(empty), list(empty), bool(empty)) == (0, [], False)


def test_snippets_show_both_sides_of_the_strongest_pairs_with_pages() -> None:
    strongest, other = HIT_OF_RESULT.snippets()
    assert (strongest.contribution, strongest.query_section, strongest.target_section) == (0.4, "A", "D")
    assert (strongest.query.text, strongest.target.text) == ("alpha beta", "delta")
    assert (strongest.query_pages, strongest.target_pages) == ((), (2,))
    assert other.target_pages == (1,)
    assert str(strongest) == "0.4000  A -> D (p. 2)\n  < alpha beta\n  > delta"
    over = replace(strongest, query_pages=(1, 2, 3))
    assert str(over).startswith("0.4000  A (pp. 1-3) -> D (p. 2)\n")
    assert [len(HIT_OF_RESULT.snippets(n_pairs)) for n_pairs in (-1, 0, 1, 5)] == [0, 0, 1, 2]


def test_where_words_add_more_the_sections_are_shown() -> None:
    words = SectionPair(0, 1, 0.9, PARTS, 0.8, TERMS)
    assert shown_spans(words, QUERY, TARGET) == (Span(0, 10), Span(6, 11))
    assert shown_spans(PAIRS[0], QUERY, TARGET) == (ALPHA, DELTA)
    assert shown_spans(SectionPair(0, 0, 0.1, ()), QUERY, TARGET) == (Span(0, 10), Span(0, 6))


def test_hits_show_themselves_in_a_notebook_and_have_no_snippets_without_a_result() -> None:
    assert HIT_OF_RESULT._repr_html_() == RESULT._repr_html_()
    assert HIT._repr_html_() is None  # a notebook then shows the repr
    with pytest.raises(QueryError, match="the hit 't' belongs to no result; take hits from the result of a search"):
        HIT.snippets()


def test_the_repr_of_a_result_is_short_and_names_its_file() -> None:
    assert repr(RESULT) == "Result('Query', 1 of 7 hits, estimated)"
    of_file = replace(RESULT, query=replace(QUERY, source="draft.md"))
    assert repr(of_file) == "Result('Query' from 'draft.md', 1 of 7 hits, estimated)"
    long = replace(QUERY, title="word " * 100, source="folder/" * 100)
    assert len(repr(replace(RESULT, query=long))) < 160


def test_a_table_has_one_row_a_hit_and_its_columns_without_any() -> None:
    assert RESULT.to_pandas().to_dict("records") == [
        {"query_id": "q", "rank": 1, "score": HIT.score, "doc_id": "t", "title": "Target", "status": "estimated"}
        | {"year": 2020}
    ]
    empty = replace(RESULT, hits=())
    assert list(empty.to_pandas().columns) == ["query_id", "rank", "score", "doc_id", "title", "status"]
    assert list(empty.parts_to_pandas().columns) == list(RESULT.parts_to_pandas().columns)


def test_metadata_never_take_the_place_of_rank_or_score() -> None:
    misleading = replace(
        TARGET, metadata={"score": 1e9, "rank": 0, "doc_id": "x", "title": "y", "status": "z", "year": 1}
    )
    (row,) = replace(RESULT, hits=(replace(HIT, document=misleading),)).to_pandas().to_dict("records")
    assert (row["rank"], row["score"], row["doc_id"], row["title"]) == (1, HIT.score, "t", "Target")
    assert (row["status"], row["year"]) == ("estimated", 1)


def test_a_table_of_parts_has_one_row_a_part() -> None:
    frame = RESULT.parts_to_pandas(n_pairs=1)
    assert list(frame["kind"]) == ["section_pair", "rest"]
    assert frame["contribution"].sum() == pytest.approx(HIT.score)
    first = frame.iloc[0]
    assert (first["query_section"], first["target_heading"], first["target_page"]) == (0, "D", 2)
    assert first["words"] == "delta; eps"
    assert frame["query_page"].isna().all() and frame["query_page"].dtype == "Int64"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: RESULT.to_pandas(), "Result.to_pandas()"),
        (lambda: RESULT.parts_to_pandas(), "Result.parts_to_pandas()"),
    ],
)
def test_a_missing_pandas_raises_an_error_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[], object], name: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtra) as raised:
        call()
    assert str(raised.value) == f"{name} needs pandas; install it: pip install 'pandas>=2.2'"
