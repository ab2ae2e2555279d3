"""The claim chart: a row for each part of a query, a column for each hit; as values, HTML, CSV or a Word file.

A cell holds the best passage of the hit for its row. It is empty if the row adds less to the score than a minimum: by
default what it must add to stand out from unrelated documents. Where these are not known, it is empty if no passage of
the row is more similar than its threshold and the row adds less than half of an even share of the score.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.report.contract import STANDS_OUT, QuerySections, place_of, result_dict
from engine.report.exports import csv_text
from engine.report.lines import pages_label
from engine.report.page import render
from engine.report.quotes import Quote, Quotes
from engine.result import Hit, Result
from engine.scoring.parts import SectionPair
from engine.text.cleaning import safe
from engine.text.document import Document, section_label
from engine.text.units import Unit
from engine.words.places import after_heading

SECTION_CHARACTERS = 400  # most characters of a row that is a section; claims and sentences are whole
N_WORDS = 5  # words listed in a cell
_PARAGRAPHS = re.compile(r"\n\s*\n")
_CANCELLED = re.compile(r"\W*(?:claims?)?[\d\W]*(?:cancel|withdraw|gestrichen|supprim)\w*\W*$", re.IGNORECASE)


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
class ChartRow:
    """A section, sentence, claim or element of a claim of the query."""

    label: str
    pages: str
    text: str  # a paragraph on a line
    cells: tuple[Cell | None, ...]  # one for each hit


@dataclass(frozen=True, slots=True)
class Chart:
    """The chart of one query."""

    result: Result
    rows: tuple[ChartRow, ...]
    rule: str = ""  # which cells are empty, for people

    def shown(self, hit: int) -> float:
        """The sum of the contributions in the column of a hit, given by its place from 0; at most the hit's score."""
        cells = (row.cells[hit] for row in self.rows)
        return sum(cell.contribution for cell in cells if cell is not None)


def claim_chart(
    result: Result, rows: Sequence[int], *, least: float | None = None, most_characters: int | None = None
) -> Chart:
    """Arrange a result as a chart.

    Args:
        least: lowest contribution of a cell; by default what a section must add to stand out.
    """
    query = result.query
    texts = [_shortened(_text(query, row), most_characters) for row in rows]
    columns = [_column(result, hit, rows, least) for hit in result.hits]
    rule = _rule(result, least)
    if result.hits and not any(cell for column in columns for cell in column):
        rule += " These are all cells; a lower least contribution (--least 0) fills them."
    return Chart(
        result,
        tuple(
            _row(query, row, text, tuple(None if _CANCELLED.match(text) else column[at] for column in columns))
            for at, (row, text) in enumerate(zip(rows, texts, strict=True))
        ),
        rule,
    )


def _rule(result: Result, least: float | None) -> str:
    if least is not None:
        return f"Cells that add less than {least:g} are empty."
    if result.floor is None:
        return "Cells without a passage above its threshold, and with less than half of an even share, are empty."
    return f"Cells that add less than {STANDS_OUT:g} times what unrelated documents of this index reach are empty."


def _lowest(result: Result, hit: Hit, rows: Sequence[int], least: float | None) -> list[float]:
    """The lowest contribution of the cell of each row."""
    if least is not None:
        return [least] * len(rows)
    if (floors := QuerySections.of(result).floors) is None:
        return [hit.score / max(2, 2 * len(result.query.sections))] * len(rows)
    return [float(floors[row]) for row in rows]


def _text(query: Document, number: int) -> str:
    section = query.sections[number]
    start = after_heading(query, section.span, number)
    paragraphs = _PARAGRAPHS.split(query.text[start : section.stop].strip().lstrip(" .):#*"))
    return "\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _shortened(text: str, most: int | None) -> str:
    return text if most is None or len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"


def _row(query: Document, number: int, text: str, cells: tuple[Cell | None, ...]) -> ChartRow:
    section = query.sections[number]
    label = section_label(query, number) if section.heading else " > ".join(section.path)
    return ChartRow(label, pages_label(place_of(query, section.span)), text, cells)


def _column(result: Result, hit: Hit, rows: Sequence[int], least: float | None) -> list[Cell | None]:
    pairs: dict[int, list[SectionPair]] = {}
    for pair in hit.breakdown.pairs:
        pairs.setdefault(pair.query_section, []).append(pair)
    quotes = Quotes(result.query, hit, result.language, result.stock)
    is_passage_enough = least is None and result.floor is None
    cells: list[Cell | None] = []
    for row, lowest in zip(rows, _lowest(result, hit, rows, least), strict=True):
        own = pairs.get(row, [])
        is_enough = sum(pair.contribution for pair in own) >= lowest
        is_enough |= is_passage_enough and any(pair.parts for pair in own)
        cells.append(_cell(hit, own, quotes) if own and is_enough else None)
    return cells


def _cell(hit: Hit, pairs: Sequence[SectionPair], quotes: Quotes) -> Cell:
    best = max(pairs, key=lambda pair: pair.contribution)
    _, quote = quotes.of(best)
    return Cell(
        sum(pair.contribution for pair in pairs),
        section_label(hit.document, best.target_section),
        pages_label(place_of(hit.document, quote.span)),
        quote,
        tuple(part.term for part in quotes.listed_in(best)[:N_WORDS]),
        best.parts[0].similarity if best.parts else None,
    )


_MARGIN_CM, _LONG_CM, _SHORT_CM = 1.5, 29.7, 21.0


def chart_html(chart: Chart, unit: Unit, *, command: str = "") -> str:
    """One offline file."""
    values = result_dict(chart.result, n_pairs=0)
    return render("chart.html", chart=chart, unit=unit.value, values=values, command=command)


def chart_csv(chart: Chart) -> str:
    """A line for each row; for each hit five columns, whose names begin with its doc_id."""
    columns = ("passage", "section", "pages", "contribution", "words")
    rows: list[list[Any]] = [["row", "label", "pages", "text"]]
    rows[0] += [f"{hit.doc_id} {column}" for hit in chart.result.hits for column in columns]
    for number, row in enumerate(chart.rows, start=1):
        rows.append([number, row.label, row.pages, row.text])
        for cell in row.cells:
            words = (
                () if cell is None else (cell.text, cell.section, cell.pages, cell.contribution, "; ".join(cell.words))
            )
            rows[-1] += words or [""] * len(columns)
    return csv_text(rows)


def chart_docx(chart: Chart, unit: Unit, *, command: str = "") -> bytes:
    """A Word file in landscape; matched words are bold."""
    # Loads python-docx, which the other formats do not need.
    from docx import Document as WordDocument
    from docx.enum.section import WD_ORIENT
    from docx.oxml import OxmlElement
    from docx.shared import Cm, Pt

    file = WordDocument()
    page = file.sections[0]
    page.orientation, page.page_width, page.page_height = WD_ORIENT.LANDSCAPE, Cm(_LONG_CM), Cm(_SHORT_CM)
    page.left_margin = page.right_margin = page.top_margin = page.bottom_margin = Cm(_MARGIN_CM)
    file.styles["Normal"].font.size = Pt(9)
    result = chart.result
    file.add_heading(safe(result.query.title), 1)
    file.add_paragraph(f"Chart by {unit.value}; ranking {result.status.value}. {chart.rule}")
    table = file.add_table(rows=1, cols=1 + len(result.hits), style="Table Grid")
    table.rows[0]._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))  # repeated on each page
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


def _add_row(cells: Any, row: ChartRow) -> None:  # noqa: ANN401
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
