"""A chart as HTML, CSV or a Word file. The values are those of `engine.report.chart`."""

from __future__ import annotations

import csv
import io
from typing import Any

from engine.report.chart import Cell, Chart, Row
from engine.report.contract import result_dict
from engine.report.page import render
from engine.report.rows import as_cell
from engine.text.outside import safe
from engine.text.units import Unit

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
