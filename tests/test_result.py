"""What a search returns, as plain values."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.document import Coverage, Document, Section, Span
from engine.errors import MissingExtra, QueryError
from engine.result import Hit, Result, Status, shown_spans
from engine.scoring.breakdown import Breakdown, ChunkPart, DocumentPart, SectionPair, TermPart

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
PARTS = (ChunkPart(ALPHA, DELTA, 0.75, 0.5, 0.8, 0.2), ChunkPart(BETA, DELTA, 0.6, 0.5, 0.1, 0.1))
TERMS = (TermPart("delta", 0.07), TermPart("eps", 0.03))
PAIRS = (
    SectionPair(0, 1, 0.4, PARTS, 0.1, TERMS),
    SectionPair(0, 0, 0.05, (ChunkPart(ALPHA, GAMMA, 0.5, 0, 0.2, 0.05),)),
)
COMPONENTS = {"chunks": 0.35, "document": 0.01, "words": 0.1, "pairs": 0.0}
BREAKDOWN = Breakdown(PAIRS, DocumentPart(0.4, 0.1, 0.05, 0.01), TERMS, COMPONENTS)
HIT = Hit(1, BREAKDOWN.score, TARGET, BREAKDOWN, Coverage(5, 10))
RESULT = Result(QUERY, Coverage(0, 0), (HIT,), Status.ESTIMATED, 7, 3, 30, 0.0123456789, "english", 2)
HIT_OF_RESULT = RESULT[0]


def test_a_result_as_plain_values_says_everything() -> None:
    assert RESULT.to_dict() == {
        "query": {
            "doc_id": "q",
            "title": "Query",
            "coverage": {"tokens_read": 0, "tokens_total": 0, "share": 1.0, "chunks_pooled": 1},
        },
        "status": "estimated",
        "n_found": 7,
        "n_evident": 3,
        "reference": 2,
        "n_searched": 30,
        "seconds": 0.012346,
        "encoding": None,
        "hits": [
            {
                "rank": 1,
                "score": pytest.approx(0.46),
                "doc_id": "t",
                "title": "Target",
                "source": "t.txt",
                "metadata": {"year": 2020},
                "coverage": {"tokens_read": 5, "tokens_total": 10, "share": 0.5},
                "has_vectors": True,
                "components": COMPONENTS,
                "document_part": {"similarity": 0.4, "threshold": 0.1, "weight": 0.05, "contribution": 0.01},
                "n_pairs": 2,
                "pairs": [
                    {
                        "query_section": 0,
                        "query_heading": "A",
                        "target_section": 1,
                        "target_heading": "D",
                        "contribution": 0.4,
                        "parts": [
                            {
                                "similarity": 0.75,
                                "threshold": 0.5,
                                "weight": 0.8,
                                "contribution": 0.2,
                                "query": {"start": 0, "stop": 5, "text": "alpha", "pages": []},
                                "target": {"start": 6, "stop": 11, "text": "delta", "pages": [2]},
                            },
                            {
                                "similarity": 0.6,
                                "threshold": 0.5,
                                "weight": 0.1,
                                "contribution": 0.1,
                                "query": {"start": 6, "stop": 10, "text": "beta", "pages": []},
                                "target": {"start": 6, "stop": 11, "text": "delta", "pages": [2]},
                            },
                        ],
                        "words": 0.1,
                        "terms": [{"term": "delta", "contribution": 0.07}, {"term": "eps", "contribution": 0.03}],
                    },
                    {
                        "query_section": 0,
                        "query_heading": "A",
                        "target_section": 0,
                        "target_heading": "",
                        "contribution": 0.05,
                        "parts": [
                            {
                                "similarity": 0.5,
                                "threshold": 0,
                                "weight": 0.2,
                                "contribution": 0.05,
                                "query": {"start": 0, "stop": 5, "text": "alpha", "pages": []},
                                "target": {"start": 0, "stop": 5, "text": "gamma", "pages": [1]},
                            }
                        ],
                        "words": 0.0,
                        "terms": [],
                    },
                ],
                "rest": 0.0,
                "terms": [{"term": "delta", "contribution": 0.07}, {"term": "eps", "contribution": 0.03}],
            }
        ],
    }


def test_plain_values_survive_json() -> None:
    assert json.loads(json.dumps(RESULT.to_dict())) == RESULT.to_dict()


@pytest.mark.parametrize("n_pairs", [0, 1, 5])
def test_pairs_are_cut_but_counted(n_pairs: int) -> None:
    (hit,) = RESULT.to_dict(n_pairs=n_pairs)["hits"]
    assert [pair["contribution"] for pair in hit["pairs"]] == [0.4, 0.05][:n_pairs]
    assert hit["n_pairs"] == 2


@pytest.mark.parametrize("n_pairs", [0, 1, 5, None])
def test_pairs_rest_and_document_sum_to_the_score(n_pairs: int | None) -> None:
    (hit,) = RESULT.to_dict(n_pairs=n_pairs)["hits"]
    shown = sum(pair["contribution"] for pair in hit["pairs"])
    assert shown + hit["rest"] + hit["document_part"]["contribution"] == pytest.approx(hit["score"])


def test_a_hit_has_the_names_of_its_document() -> None:
    assert (HIT.doc_id, HIT.title, HIT.metadata) == ("t", "Target", {"year": 2020})


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


def test_a_result_without_hits_is_empty() -> None:
    empty = replace(RESULT, hits=())
    assert (len(empty), list(empty), bool(empty)) == (0, [], False)


def test_a_hit_of_a_result_equals_itself_alone() -> None:
    assert RESULT[0] == HIT
    assert pickle.loads(pickle.dumps(RESULT)) == RESULT
    assert pickle.loads(pickle.dumps(RESULT))[0].snippets() == HIT_OF_RESULT.snippets()


def test_a_hit_has_its_pairs() -> None:
    assert HIT.pairs == PAIRS


def test_snippets_show_both_sides_of_the_strongest_pairs_with_pages() -> None:
    strongest, other = HIT_OF_RESULT.snippets()
    assert (strongest.contribution, strongest.query_section, strongest.target_section) == (0.4, "A", "D")
    assert (strongest.query.text, strongest.target.text) == ("alpha", "delta")
    assert (strongest.query_pages, strongest.target_pages) == ((), (2,))
    assert other.target_pages == (1,)
    assert str(strongest) == "0.4000  A -> D (p. 2)\n  < alpha\n  > delta"
    assert [len(HIT_OF_RESULT.snippets(n_pairs)) for n_pairs in (-1, 0, 1, 5)] == [0, 0, 1, 2]


def test_where_words_add_more_the_sections_are_shown() -> None:
    words = SectionPair(0, 1, 0.9, PARTS, 0.8, TERMS)
    assert shown_spans(words, QUERY, TARGET) == (Span(0, 10), Span(6, 11))
    assert shown_spans(PAIRS[0], QUERY, TARGET) == (ALPHA, DELTA)
    assert shown_spans(SectionPair(0, 0, 0.1, ()), QUERY, TARGET) == (Span(0, 10), Span(0, 6))


def test_several_pages_are_shown_as_a_range() -> None:
    over = replace(HIT_OF_RESULT.snippets(1)[0], query_pages=(1, 2, 3))
    assert str(over).startswith("0.4000  A (pp. 1-3) -> D (p. 2)\n")


def test_a_hit_of_no_result_has_no_snippets() -> None:
    with pytest.raises(QueryError, match="the hit 't' belongs to no result; take hits from the result of a search"):
        HIT.snippets()


def test_a_hit_shows_itself_in_a_notebook() -> None:
    html = HIT_OF_RESULT._repr_html_()
    assert html == RESULT._repr_html_()


def test_a_result_names_the_file_it_was_asked_with() -> None:
    assert repr(RESULT) == "Result('Query', 1 hits of 7, estimated)"
    of_file = replace(RESULT, query=replace(QUERY, source="draft.md"))
    assert repr(of_file) == "Result('Query' from 'draft.md', 1 hits of 7, estimated)"


_PANDAS = """
class DataFrame:
    def __init__(self, rows, columns=None):
        self.rows, self.columns = rows, columns
"""


@pytest.fixture
def fake_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pandas.py").write_text(_PANDAS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pandas", raising=False)


@pytest.mark.usefixtures("fake_pandas")
def test_a_table_has_one_row_a_hit() -> None:
    rows = RESULT.to_pandas().rows
    assert rows == [{"rank": 1, "score": HIT.score, "doc_id": "t", "title": "Target", "year": 2020}]


@pytest.mark.usefixtures("fake_pandas")
def test_metadata_never_takes_the_place_of_rank_or_score() -> None:
    liar = Document("t", "Target", "gamma", (), {"score": 1e9, "rank": 0, "doc_id": "x", "title": "y", "year": 1})
    result = Result(
        QUERY, Coverage(0, 0), (Hit(1, 0.5, liar, BREAKDOWN, Coverage(1, 1)),), Status.CERTIFIED, 1, 1, 1, 0.0, None, 1
    )
    (row,) = result.to_pandas().rows
    assert {name: row[name] for name in ("rank", "score", "doc_id", "title", "year")} == {
        "rank": 1,
        "score": 0.5,
        "doc_id": "t",
        "title": "Target",
        "year": 1,
    }


@pytest.mark.usefixtures("fake_pandas")
def test_a_table_of_no_hit_has_its_columns() -> None:
    empty = Result(QUERY, Coverage(0, 0), (), Status.CERTIFIED, 0, 0, 0, 0.0, None, 1)
    assert empty.to_pandas().columns == ["rank", "score", "doc_id", "title"]


def test_a_missing_pandas_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtra) as raised:
        RESULT.to_pandas()
    assert str(raised.value) == "Result.to_pandas() needs pandas; install it: pip install 'longmatch[pandas]'"
