"""The claim chart: a row for each part of a query, a column for each hit; as values, HTML, CSV or a Word file.

A cell holds the best passage of the hit for its row. It is empty if no passage of the row is more similar than its
threshold and the row adds less than an even share of the score, or if the row adds less than a given minimum.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.report.contract import place_of, result_dict
from engine.report.lines import pages_label
from engine.report.page import render
from engine.report.quotes import Quote, Quotes
from engine.report.rows import as_cell
from engine.result import Hit, Result
from engine.scoring.breakdown import SectionPair
from engine.text.document import Document, section_label
from engine.text.outside import safe
from engine.text.spans import Span
from engine.text.units import Unit
from engine.words.places import after_heading

N_WORDS = 5  # words listed in a cell
_ROW_CHARACTERS = 400  # most characters of the text of a row


@dataclass(frozen=True, slots=True)
class Cell:
    """The match of a hit for a row."""

    contribution: float  # of the row to the score of the hit, over all sections of the hit
    section: str
    pages: str  # of the passage; "" for a format without pages
    quote: Quote  # the passage, its matched words marked
    words: tuple[str, ...]  # matched words, strongest first
    similarity: float | None  # None where words alone match

    @property
    def text(self) -> str:
        """The passage on one line."""
        return self.quote.text


@dataclass(frozen=True, slots=True)
class Row:
    """A section, sentence or claim of the query."""

    label: str
    pages: str
    text: str  # shortened if it is long
    cells: tuple[Cell | None, ...]  # one for each hit


@dataclass(frozen=True, slots=True)
class Chart:
    """The chart of one query."""

    result: Result
    rows: tuple[Row, ...]

    def shown(self, hit: int) -> float:
        """The sum of the contributions in the column of a hit, given by its place from 0; at most the hit's score."""
        cells = (row.cells[hit] for row in self.rows)
        return sum(cell.contribution for cell in cells if cell is not None)


def claim_chart(result: Result, rows: Sequence[int], *, least: float = 0.0) -> Chart:
    """Arrange a result as a chart.

    Args:
        result: of a search with a query that was cut by `engine.text.units`.
        rows: positions of the sections of the query that become rows.
        least: lowest contribution of a cell; a cell with less is empty.
    """
    columns = [_column(result, hit, rows, least) for hit in result.hits]
    return Chart(
        result,
        tuple(_row(result.query, row, tuple(column[at] for column in columns)) for at, row in enumerate(rows)),
    )


def _row(query: Document, number: int, cells: tuple[Cell | None, ...]) -> Row:
    section = query.sections[number]
    label = section_label(query, number) if section.heading else " > ".join(section.path)
    span = Span(section.start, section.stop)
    text = " ".join(query.text[after_heading(query, span, number) : span.stop].split())
    cut = text if len(text) <= _ROW_CHARACTERS else text[: _ROW_CHARACTERS - 1].rsplit(" ", 1)[0] + "…"
    return Row(label, pages_label(place_of(query, span)), cut, cells)


def _column(result: Result, hit: Hit, rows: Sequence[int], least: float) -> list[Cell | None]:
    pairs: dict[int, list[SectionPair]] = {}
    for pair in hit.breakdown.pairs:
        pairs.setdefault(pair.query_section, []).append(pair)
    even = hit.score / max(1, len(result.query.sections))
    quotes = Quotes(result.query, hit, result.language)
    return [_cell(hit, pairs.get(row, []), quotes, least, even) for row in rows]


def _cell(hit: Hit, pairs: Sequence[SectionPair], quotes: Quotes, least: float, even: float) -> Cell | None:
    contribution = sum(pair.contribution for pair in pairs)
    has_passage = any(pair.parts for pair in pairs)
    if not pairs or contribution < least or not (has_passage or contribution >= even):
        return None
    best = max(pairs, key=lambda pair: pair.contribution)
    _, quote = quotes.of(best)
    return Cell(
        contribution,
        section_label(hit.document, best.target_section),
        pages_label(place_of(hit.document, quote.span)),
        quote,
        tuple(part.term for part in best.terms[:N_WORDS]),
        best.parts[0].similarity if best.parts else None,
    )


_MARGIN_CM, _LONG_CM, _SHORT_CM = 1.5, 29.7, 21.0


def chart_html(chart: Chart, unit: Unit, *, command: str = "") -> str:
    """One offline file.

    Args:
        chart: of a query.
        unit: the part of the query that a row represents.
        command: the command line that made the chart, shown at its end.
    """
    values = result_dict(chart.result, n_pairs=0)
    return render("chart.html", chart=chart, unit=unit.value, values=values, command=command)


def chart_csv(chart: Chart) -> str:
    """A line for each row; for each hit five columns, whose names begin with its doc_id."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    names = [
        f"{hit.doc_id} {column}"
        for hit in chart.result.hits
        for column in ("passage", "section", "pages", "contribution", "words")
    ]
    lines.writerow(map(as_cell, ["row", "label", "pages", "text", *names]))
    for number, row in enumerate(chart.rows, start=1):
        cells = [value for cell in row.cells for value in _csv_cell(cell)]
        lines.writerow(map(as_cell, [number, row.label, row.pages, row.text, *cells]))
    return text.getvalue()


def _csv_cell(cell: Cell | None) -> list[Any]:
    if cell is None:
        return [""] * 5
    return [cell.text, cell.section, cell.pages, cell.contribution, "; ".join(cell.words)]


def chart_docx(chart: Chart, unit: Unit, *, command: str = "") -> bytes:
    """A Word file in landscape; matched words are bold."""
    # Loads python-docx, which the other formats do not need.
    from docx import Document as WordDocument
    from docx.enum.section import WD_ORIENT
    from docx.shared import Cm, Pt

    file = WordDocument()
    page = file.sections[0]
    page.orientation, page.page_width, page.page_height = WD_ORIENT.LANDSCAPE, Cm(_LONG_CM), Cm(_SHORT_CM)
    page.left_margin = page.right_margin = page.top_margin = page.bottom_margin = Cm(_MARGIN_CM)
    file.styles["Normal"].font.size = Pt(9)
    result = chart.result
    file.add_heading(safe(result.query.title), 1)
    file.add_paragraph(f"Chart by {unit.value}; ranking {result.status.value}.")
    table = file.add_table(rows=1, cols=1 + len(result.hits), style="Table Grid")
    head = table.rows[0].cells
    head[0].paragraphs[0].add_run("Query").bold = True
    for cell, hit in zip(head[1:], result.hits, strict=True):
        cell.paragraphs[0].add_run(safe(f"{hit.rank}. {hit.title}")).bold = True
        cell.add_paragraph(safe(f"{hit.doc_id}, score {hit.score:.4f}"))
    for row in chart.rows:
        _add_row(table.add_row().cells, row)
    last = table.add_row().cells
    last[0].paragraphs[0].add_run("Shown cells add").bold = True
    for at, hit in enumerate(result.hits):
        last[at + 1].paragraphs[0].add_run(f"{chart.shown(at):.4f} of {hit.score:.4f}")
    if command:
        file.add_paragraph(safe(f"Made by {command}"))
    stream = io.BytesIO()
    file.save(stream)
    return stream.getvalue()


def _add_row(cells: Any, row: Row) -> None:  # noqa: ANN401
    first = cells[0].paragraphs[0]
    first.add_run(safe(row.label)).bold = True
    if row.pages:
        first.add_run(f" {row.pages}")
    cells[0].add_paragraph(safe(row.text, lines=True))
    for place, cell in zip(cells[1:], row.cells, strict=True):
        if cell is None:
            continue
        where = ", ".join(part for part in (cell.section, cell.pages) if part)
        place.paragraphs[0].add_run(f"{cell.contribution:.4f}").bold = True
        place.paragraphs[0].add_run(safe(f"  {where}"))
        passage = place.add_paragraph()
        for text, is_marked in cell.quote.runs():
            passage.add_run(safe(text)).bold = is_marked
