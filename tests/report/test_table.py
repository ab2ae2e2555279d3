"""Results in a terminal: tables, and the shares of a score."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.comparison import compare_alone
from engine.index import Index
from engine.report.contract import QuerySections, rest_note, section_shares, summary
from engine.report.lines import columns
from engine.report.table import coverage_note, encoding_lines, result_table
from engine.result import Encoding
from engine.scoring.evidence import Floor
from engine.scoring.parts import SectionPair
from engine.search.request import Request
from engine.text.cleaning import json_text
from engine.text.document import Document
from engine.text.section_kinds import SectionKind
from engine.text.segmentation import Coverage
from engine.views import result_view
from tests.fakes import FakeEncoder, make_document

NOW = Encoding(
    n_missing=0,
    n_candidates=5,
    n_encoded=5,
    n_encoded_now=2,
    tokens_now=9_000,
    seconds_now=4.5,
    tokens_missing=0,
    seconds_missing=0.0,
)


@pytest.mark.parametrize(
    ("coverage", "note"),
    [
        (Coverage(0, 0), "searched by words alone"),
        (Coverage(0, 500), "searched by words alone"),
        (Coverage(500, 500), "all 500 tokens read"),
        (Coverage(500, 500, 3), "all 500 tokens read, up to 3 chunks pooled into one"),
        (Coverage(250, 1_000), "250 of 1,000 tokens read (25.0%)"),
    ],
)
def test_a_note_shows_how_many_tokens_were_read(coverage: Coverage, note: str) -> None:
    assert coverage_note(coverage) == note


def test_documents_without_vectors_are_counted() -> None:
    assert encoding_lines(NOW) == ["5 of 5 candidates encoded, 2 of them now"]
    some = Encoding(7, 5, 5, 0, 0, 0.0, 12_000, None)
    assert encoding_lines(some) == [
        "5 of 5 candidates encoded",
        "7 documents scored by words alone: about 12,000 tokens to encode",
    ]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_notes_are_on_as_many_lines_as_they_need(width: int) -> None:
    compared = compare_alone(make_document("q", "A heron waits."), make_document("t", "A heron hunts."), FakeEncoder())
    found = replace(compared, background=None, floor=Floor(0.1, 0.2, 0.3), encoding=NOW)
    notes = [
        (
            compared,
            "the score is high for any two texts, and serves to order the parts below; --index INDEX takes some",
        ),
        (found, "1 searched, certified"),
        (found, "unrelated documents of this index reach 0.30; hits above that: 1 of 1"),
        (found, "5 of 5 candidates encoded, 2 of them now"),
    ]
    for result, note in notes:
        table = result_table(result, width=width)
        assert note in " ".join(table.split()) and max(map(columns, table.splitlines())) <= width


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("- The *heron* waits for `trout` at the weir of the mill.", ["="]),
        ("The heron waits for trout at the weir of a mill.", ["<", ">"]),
        ("The heron waits for trout at the weir of the mill, beside the mill and below the mill, as ever.", ["="]),
    ],
)
def test_two_quotes_of_the_same_words_are_one_line(text: str, signs: list[str]) -> None:
    end = ", beside the mill and below the mill, alone." if len(text) > 80 else "."
    query = make_document("q", f"The heron waits for trout at the weir of the mill{end}")
    table = result_table(compare_alone(query, make_document("t", text), FakeEncoder()))
    assert [line.split()[0] for line in table.splitlines() if line.startswith(" " * 14)] == [*signs, "words:"]


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
    values = {"by_section": {"n_covered": 0, "n_sections": 1, "strongest": ["“A pump”"], "rest": rest[:1]}}
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
