"""Results, matrices of sections and documents as HTML fragments for notebooks. They load no files."""

from __future__ import annotations

from engine.report.contract import result_dict
from engine.report.page import render
from engine.report.quotes import marked_runs, window
from engine.result import Result, SectionMatrix
from engine.text.document import Document, section_label
from engine.text.spans import Span

_PAIRS = 5
_QUOTE = 320  # most characters of a quote
_MOST_SECTIONS = 200
_OPENING = 160  # characters of a section that are shown


def result_html(result: Result) -> str:
    """The hits of one query; each opens to its section pairs with quotes of both sides."""
    values = result_dict(result, n_pairs=_PAIRS)
    best = max((hit["score"] for hit in values["hits"]), default=1.0)
    return render("notebook/result.html", values=values, best=best, coverage=result.query_coverage, quoted=_quoted)


def _quoted(quote: dict[str, object]) -> list[tuple[str, bool]]:
    marks = [Span(*mark) for mark in quote["marks"]]  # type: ignore[attr-defined]
    return marked_runs(*window(str(quote["text"]), marks, _QUOTE))


def matrix_html(matrix: SectionMatrix) -> str:
    """The cosines as shaded cells, in hundredths; sections of the target have numbers, named below the table.

    The shade runs from the lowest to the highest cosine. Numbers count from 0, as `index` in `Result.to_dict`.
    """
    rows, columns = (
        [section_label(document, position) for position in range(len(document.sections))]
        for document in (matrix.query, matrix.target)
    )
    low = float(matrix.cosines.min(initial=1.0))
    extent = max(float(matrix.cosines.max(initial=-1.0)) - low, 1e-9)
    cells = [[(value, (value - low) / extent) for value in row] for row in matrix.cosines.tolist()]
    return render("notebook/matrix.html", matrix=matrix, rows=rows, columns=columns, cells=cells)


def document_html(document: Document) -> str:
    """Title, id, source and metadata, and a table of the sections with their length, pages and first words."""
    shown = document.sections[:_MOST_SECTIONS]
    sections = [
        (
            section_label(document, number),
            section.stop - section.start,
            document.page_numbers(Span(section.start, section.stop)),
            " ".join(document.text[section.start : min(section.stop, section.start + _OPENING)].split()),
        )
        for number, section in enumerate(shown)
    ]
    return render("notebook/document.html", document=document, sections=sections)
