"""The score by section of the query: shares that sum to it, sections that are covered, and the words for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.comparison import compare_alone
from engine.index import Index
from engine.report.shares import QuerySections, rest_note, section_shares, summary
from engine.scoring.evidence import Floor
from engine.scoring.parts import SectionPair
from engine.search.request import Request
from engine.text.cleaning import json_text
from engine.text.document import Document
from engine.text.section_kinds import SectionKind
from engine.views import result_view
from tests.fakes import FakeEncoder, make_document

SENTENCE = "The heron waits for trout at the weir of the mill. "
QUERY = make_document("q", [("A", SENTENCE * 4), ("B", SENTENCE * 4), ("C", SENTENCE * 2), ("References", SENTENCE)])
KINDS = (SectionKind.BODY, SectionKind.BODY, SectionKind.BODY, SectionKind.REFERENCES)
FLOOR = Floor(0.1, 0.15, 0.2)


@given(st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 4)), st.floats(1e-6, 0.3), max_size=12))
def test_the_sections_sum_to_the_pairs_and_the_body_is_first(values: dict[tuple[int, int], float]) -> None:
    pairs = [SectionPair(*places, value, ()) for places, value in sorted(values.items(), key=lambda one: -one[1])]
    rows = section_shares(QuerySections(QUERY, KINDS, None), pairs).rows
    assert sum(row.contribution for row in rows) == pytest.approx(sum(values.values()))
    assert sum(row.n_pairs for row in rows) == len(values)
    assert [row.kind for row in rows] == sorted(row.kind for row in rows)
    for row in rows:
        own = [pair for pair in pairs if pair.query_section == row.section]
        assert pairs[row.best] == own[0] and row.contribution == pytest.approx(sum(pair.contribution for pair in own))


def test_a_section_is_covered_if_it_adds_half_more_than_its_share_of_the_floor() -> None:
    pairs = [
        SectionPair(3, 0, 0.3, ()),
        SectionPair(0, 1, 0.13, ()),
        SectionPair(2, 1, 0.07, ()),
        SectionPair(1, 1, 0.1, ()),
    ]
    shares = section_shares(QuerySections(QUERY, KINDS, FLOOR), pairs)
    assert (shares.n_covered, shares.n_sections) == (2, 3)
    assert [(row.section, row.is_covered) for row in shares.rows] == [(0, True), (1, False), (2, True), (3, False)]
    assert [row.section for row in shares.strongest()] == [0, 1]
    whole = make_document("q", [("A", SENTENCE * 4)])
    alone = section_shares(QuerySections(whole, KINDS[:1], FLOOR), [SectionPair(0, 0, 0.21, ())])
    assert alone.n_covered == 1  # a hit above the floor covers a query of one section
    unknown = section_shares(QuerySections(QUERY, KINDS, None), pairs)
    assert (unknown.n_covered, {row.is_covered for row in unknown.rows}) == (None, {None})


def test_a_hit_is_one_sentence_and_its_rest_one_line() -> None:
    rest = [{"kind": "body", "n_sections": 8, "share": 0.2}, {"kind": "references", "n_sections": 1, "share": 0.05}]
    counts = {"n_covered": 7, "n_sections": 11, "strongest": ["Claims", "Background"]}
    values = {"by_section": counts | {"rest": rest}}
    assert summary(values) == "covers 7 of 11 sections; strongest in Claims and Background"
    values["by_section"]["n_covered"] = None
    assert summary(values) == "is strongest in Claims and Background"
    assert rest_note(values) == (pytest.approx(0.25), "8 more sections 20.0 %, references 5.0 %")
    values = {"by_section": {"n_covered": 0, "n_sections": 1, "strongest": [], "rest": rest[:1]}}
    assert (summary(values), rest_note(values)[1]) == ("covers 0 of 1 section", "8 more sections")


@pytest.mark.parametrize("n_pairs", [0, 1, 3, None])
def test_rows_and_rest_of_a_result_sum_to_the_score(index: Index, corpus: list[Document], n_pairs: int | None) -> None:
    for hit in index.search(corpus[3], Request(k=5, min_pair=0.01)).to_dict(n_pairs=n_pairs)["hits"]:
        entries = [*hit["by_section"]["rows"], *hit["by_section"]["rest"]]
        assert sum(one["contribution"] for one in entries) == pytest.approx(hit["score"], abs=1e-5)
        assert sum(one["share"] for one in entries) == pytest.approx(1, abs=1e-4)


def test_long_lists_of_sections_give_a_short_json() -> None:
    sections = [(f"S{n}", f"Heron {n % 90} waits for trout {n % 70} at the weir {n}.") for n in range(450)]
    documents = make_document("q", sections), make_document("t", sections)
    comparison = result_view(compare_alone(*documents, FakeEncoder()))
    (hit,) = comparison.to_dict()["hits"]
    assert hit["n_pairs"] > 10_000 and len(json_text(hit)) < 100_000
    assert sum(part["contribution"] for part in hit["parts"]) == pytest.approx(hit["score"], abs=1e-5)
    assert len(comparison.to_dict(n_pairs=20)["hits"][0]["by_section"]["rows"]) == 20
