"""A table and a chart of a result: lines, matrices, cells and runs of passages."""

import csv
import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import docx
import lxml.html
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.comparison import compare_alone
from engine.index import Index
from engine.report.chart import Chart, chart_csv, chart_docx, chart_html, claim_chart
from engine.report.contract import QuerySections, rest_note, section_shares, summary
from engine.report.lines import columns, plain
from engine.report.page import MOST_CELLS, Mark, MarkedRun, excerpts, marked_runs, section_map
from engine.report.table import coverage_note, encoding_lines, result_lines
from engine.result import Encoding
from engine.scoring.evidence import Floor
from engine.scoring.parts import Breakdown, ChunkPart, SectionPair, pair_columns
from engine.search.request import Request
from engine.text.cleaning import json_text
from engine.text.document import Document
from engine.text.section_kinds import SectionKind
from engine.text.segmentation import Coverage, Span
from engine.text.units import Unit, divide_by
from engine.views import result_view
from indexer.building.builder import build
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
        table = plain(result_lines(result, width=width))
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
    table = plain(result_lines(compare_alone(query, make_document("t", text), FakeEncoder())))
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
    values = {"by_section": counts | {"rows": ["A"], "rest": rest}}
    assert summary(values) == "covers 7 of 11 sections; strongest in Claims and Background"
    values["by_section"]["n_covered"] = None
    assert summary(values) == "is strongest in Claims and Background"
    assert rest_note(values) == (pytest.approx(0.25), "8 more sections 20.0 %, references 5.0 %")
    counts = {"n_covered": 0, "n_sections": 1, "strongest": ["“A pump”"], "rows": []}
    values = {"by_section": counts | {"rest": rest[:1]}}
    assert (summary(values), rest_note(values)[1]) == ("covers 0 of 1 section", "8 sections")


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


FOX = "Old foxes cross the wide river at night. Nothing else happens in this part of the land."
HOUSE = "A red stone house has a green door. Nothing else happens in this part of the land."
CHARTED = make_document("q", [("Animals", "The fox crosses a river at night."), ("Rest", "Quite unrelated wording.")])


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Chart:
    folder = tmp_path_factory.mktemp("chart") / "x.lm"
    documents = [
        make_document("foxes", [("Rivers", FOX), ("Stone", HOUSE)]),
        make_document("house", [("Stone", HOUSE)]),
    ]
    build(folder, documents, encode="none", language="english")
    with Index.open(folder) as index:
        divided = divide_by(CHARTED, Unit.SECTION)
        made = claim_chart(index.search(divided.document), divided.rows)
        chart_html(made, Unit.SECTION)
        return made


def test_a_cell_has_the_sentence_its_words_and_its_contribution(chart: Chart) -> None:
    cell = chart.rows[0].cells[0]
    assert cell.text == "Old foxes cross the wide river at night."
    assert (cell.section, cell.pages, cell.similarity) == ("Rivers", "", None)
    marked = {text for text, is_marked in cell.quote.runs() if is_marked}
    assert {"foxes", "cross", "river", "night"} <= {word for text in marked for word in text.split()}
    pairs = [pair for pair in chart.result.hits[0].pairs if pair.query_section == 0]
    assert cell.contribution == pytest.approx(sum(pair.contribution for pair in pairs))


def test_a_row_that_matches_nothing_or_less_than_the_least_contribution_is_empty(chart: Chart) -> None:
    assert [row.label for row in chart.rows] == ["Animals", "Rest"]
    assert chart.rows[1].cells[0] is None
    assert chart.shown(0) <= chart.result.hits[0].score + 1e-6
    raised = claim_chart(chart.result, (0, 1), least=1.0)
    assert [row.cells for row in raised.rows] == [(None,) * len(chart.result.hits)] * 2
    assert "--least 0" in raised.rule and "--least 0" not in chart.rule


def test_a_cell_that_does_not_stand_out_from_unrelated_documents_is_empty(chart: Chart) -> None:
    cell = chart.rows[0].cells[0]
    at_the_floor = cell.contribution  # the other section is too short to be counted
    for share, is_shown in ((0.9, True), (1.1, False)):
        floor = Floor(0.0, 0.0, share * at_the_floor)
        found = claim_chart(replace(chart.result, floor=floor), (0,))
        assert (found.rows[0].cells[0] is not None) == is_shown


@pytest.mark.parametrize(("share", "has_passage", "is_shown"), [(0.26, 0, True), (0.24, 0, False), (0.01, 1, True)])
def test_without_a_floor_a_cell_has_a_passage_or_half_of_an_even_share(
    chart: Chart, share: float, has_passage: int, is_shown: bool
) -> None:
    passage = ChunkPart(Span(0, 10), Span(0, 10), 0.9, 0.9, 0.8, 1.0, 0.01)
    pairs = (SectionPair(0, 0, 1 - share, ()), SectionPair(1, 0, share, (passage,) * has_passage))
    hit = replace(chart.result.hits[0], score=1.0, breakdown=Breakdown(pairs, (), {}))
    found = claim_chart(replace(chart.result, hits=(hit,)), (0, 1))
    assert [row.cells[0] is not None for row in found.rows] == [True, is_shown]
    assert chart.result.floor is None and "half of an even share" in found.rule


def test_a_row_has_the_whole_claim_and_a_cancelled_one_is_empty(chart: Chart) -> None:
    limbs = "; ".join(f"a fox {number} that crosses the river" for number in range(60))
    text = f"1. A trap comprising:\n\n{limbs}.\n2. (canceled)\n"
    divided = divide_by(make_document("q", [("Claims", text)]), Unit.CLAIM)
    result = replace(chart.result, query=divided.document)
    rows = claim_chart(result, divided.rows, least=0.0).rows
    assert [row.text for row in rows] == [f"1. A trap comprising:\n{limbs}.", "2. (canceled)"]
    assert len(claim_chart(result, divided.rows, most_characters=90).rows[0].text) <= 90
    assert rows[1].cells == (None,) * len(chart.result.hits)


def test_csv_has_a_line_for_each_row_and_its_passages_are_no_formulas(chart: Chart) -> None:
    first, second = csv.DictReader(io.StringIO(chart_csv(chart)))
    assert first["foxes passage"] == "Old foxes cross the wide river at night."
    (cell,) = chart.rows[0].cells
    assert cell is not None and np.float32(first["foxes contribution"]) == np.float32(cell.contribution)
    assert (second["label"], second["foxes passage"], second["foxes contribution"]) == ("Rest", "", "")
    row = replace(chart.rows[0], label="=1+1", text="-2 degrees")
    (line,) = csv.DictReader(io.StringIO(chart_csv(replace(chart, rows=(row,)))))
    assert (line["label"], line["text"]) == ("'=1+1", "'-2 degrees")


def test_html_escapes_and_states_the_sum_of_its_cells(chart: Chart) -> None:
    page = lxml.html.document_fromstring(chart_html(chart, Unit.SECTION, command="<script>x</script>"))
    assert len(page.xpath("//script")) == 1 and "<script>x</script>" in page.text_content()
    cells = [float(one) for one in page.xpath("//tbody//td/p/b/data/@value")]
    totals = [float(one) for one in page.xpath("//tfoot//td/data[1]/@value")][: len(chart.result.hits)]
    assert sum(cells) == pytest.approx(sum(chart.shown(at) for at in range(len(chart.result.hits))))
    assert totals[0] == chart.shown(0)


def test_a_word_file_has_the_same_cells_with_matched_words_in_bold(chart: Chart) -> None:
    (table,) = docx.Document(io.BytesIO(chart_docx(chart, Unit.SECTION))).tables
    cell = table.rows[1].cells[1]
    assert cell.text.startswith(f"{chart.rows[0].cells[0].contribution:.4f}  Rivers")  # type: ignore[union-attr]
    bold = {run.text.strip() for run in cell.paragraphs[1].runs if run.bold}
    assert "river" in " ".join(bold)
    assert table.rows[2].cells[1].text == ""


def test_control_characters_do_not_break_a_word_file(tmp_path: Path) -> None:
    odd = Document("o", "odd\x0b title", FOX, CHARTED.sections[:1])
    build(tmp_path / "x.lm", [make_document("a", FOX)], encode="none", language="english")
    with Index.open(tmp_path / "x.lm") as index:
        made = claim_chart(index.search(odd), (0,))
    assert docx.Document(io.BytesIO(chart_docx(made, Unit.SECTION))).paragraphs[0].text == "odd  title"


def document(n_sections: int) -> Document:
    return make_document("d", [(f"Part {number}", "fox and river. ") for number in range(n_sections)])


def test_cells_are_shaded_by_the_root_of_their_share_and_a_hit_without_parts_has_an_empty_map() -> None:
    pairs = [SectionPair(1, 0, 0.08, ()), SectionPair(0, 1, 0.02, ()), SectionPair(0, 2, 0.0199, ())]
    found = section_map(document(2), document(3), pair_columns(pairs), [(1, 0)])
    assert (found.n_rows, found.n_columns, found.cell, found.most) == (2, 3, 24, 0.08)
    assert found.shades == ((4, "M24 0h48v24h-48z"), (8, "M0 24h24v24h-24z"))
    assert found.cells == ((1, 0, 0.08), (0, 1, 0.02), (0, 2, 0.0199))
    found = section_map(document(1), document(1), pair_columns([]), [])
    assert (found.shades, found.shown, found.most) == ((), (), 0.0)


def test_matches_that_are_shown_are_numbered_and_named() -> None:
    pairs = pair_columns([SectionPair(1, 2, 0.08, ()), SectionPair(0, 1, 0.04, ())])
    found = section_map(document(2), document(3), pairs, [(1, 2)])
    (shown,) = found.shown
    assert (shown.x, shown.y, shown.match, shown.title) == (48, 24, 1, "match 1: Part 1 → Part 2")
    assert found.is_numbered


def test_a_large_map_names_as_many_rows_as_there_is_room_for() -> None:
    large = document(300)
    pairs = [SectionPair(row, column, 0.001, ()) for row in range(300) for column in range(0, 300, 2)]
    found = section_map(large, large, pair_columns(pairs), [])
    assert found.cell == 3 and not found.is_numbered
    assert [label.text for label in found.rows][:2] == ["1 Part 0", "6 Part 5"]
    assert len(found.shades) == 1
    assert (len(found.cells), found.n_cells) == (MOST_CELLS, 45_000)


TEXT = "The old fox crosses the wide river."


def test_passages_that_overlap_share_a_run() -> None:
    marks = [Mark(Span(4, 19), 1), Mark(Span(12, 28), 2)]
    assert marked_runs(TEXT, Span(0, 35), marks) == [
        MarkedRun((), (("The ", False),)),
        MarkedRun((1,), (("old fox ", False),)),
        MarkedRun((1, 2), (("crosses", False),)),
        MarkedRun((2,), ((" the wide", False),)),
        MarkedRun((), ((" river.", False),)),
    ]


_SPANS = st.tuples(st.integers(0, 35), st.integers(0, 35)).map(lambda ends: Span(min(ends), max(ends)))
_MARKS = st.lists(st.builds(Mark, _SPANS, st.integers(1, 3), st.booleans()), max_size=8)


@given(_SPANS, _MARKS)
def test_runs_join_to_the_text_and_know_their_passages(span: Span, marks: list[Mark]) -> None:
    runs = marked_runs(TEXT, span, marks)
    assert "".join(text for run in runs for text, _ in run.pieces) == TEXT[span.start : span.stop]
    assert all(one.matches != other.matches for one, other in pairwise(runs))
    at = span.start
    for run in runs:
        for text, is_word in run.pieces:
            for place in range(at, at + len(text)):
                over = [mark for mark in marks if mark.span.start <= place < mark.span.stop]
                assert is_word == any(mark.is_word for mark in over)
                assert run.matches == tuple(sorted({mark.match for mark in over if not mark.is_word}))
            at += len(text)


def test_excerpts_stay_in_the_section_and_join_where_they_meet() -> None:
    focuses = [Span(60, 70), Span(12, 20), Span(22, 30)]
    assert excerpts(Span(10, 75), focuses, 5) == [Span(10, 35), Span(55, 75)]
