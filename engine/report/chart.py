"""The claim chart: a row for each section, sentence or claim of a query, a column for each hit. Values only.

A cell holds the best passage of the hit for its row. It is empty if no passage of the row is more similar than its
threshold and the row adds less than an even share of the score, or if the row adds less than a given minimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.report.evidence import pages_label, place_of
from engine.report.quotes import Quote, Quotes
from engine.result import Hit, Result
from engine.scoring.breakdown import SectionPair
from engine.text.document import Document, section_label
from engine.text.spans import Span
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
