"""Reports as one offline file, and fragments for notebooks, rendered from templates. Nothing is loaded from elsewhere.

Jinja2 escapes every value; values inside of scripts are JSON without markup characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from engine.report.contract import head_dict, place_of, result_dict, spans
from engine.report.evidence import HitView, SectionText, hit_views, marked_runs
from engine.report.lines import pages_label
from engine.report.quotes import marked_runs as quote_runs
from engine.report.quotes import window
from engine.report.shares import percent, reference_notes, rest_note, summary
from engine.report.table import (
    NO_FLOOR_OF_SECTIONS,
    coverage_note,
    encoding_lines,
    floor_note,
    no_hits,
    stock_note,
    undated_note,
)
from engine.result import N_MATCHES, Result, SectionMatrix, SectionNovelty, Status
from engine.text.document import Document, section_label
from engine.text.segmentation import Span

_N_NOVELTY_PAIRS = 3  # of each section
_STATUS = {
    Status.CERTIFIED: "Every document that could be found was scored completely. The ranking is exact.",
    Status.ESTIMATED: "An approximate index, or words, chose the documents that were scored. Every hit was scored "
    "completely. A document that was not chosen could belong here; an exact search scores all.",
    Status.PARTIAL: "Evidence is missing: the query was not read to its end, its chunks were pooled, or documents "
    "have no vectors yet.",
}


def result_page(results: Sequence[Result], *, n_pairs: int | None = None, command: str = "") -> str:
    """The report of one or several results of the same mode, or of a comparison.

    Args:
        n_pairs: section pairs shown for each hit; by default 10, for novelty 3.
    """
    is_novelty = results[0].sections is not None
    n_shown = N_MATCHES if n_pairs is None else n_pairs
    views = []
    for result in results:
        shown: Iterator[HitView | SectionView]
        shown = _sections(result, n_pairs) if is_novelty else hit_views(result, n_pairs=n_shown)
        views.append(_ResultView(result, head_dict(result), tuple(shown)))
    if is_novelty:
        return render("novelty.html", views=views, command=command, notes=_NOVELTY_STATUS)
    return render("evidence.html", views=views, command=command, background=results[0].background)


def result_pieces(result: Result) -> Iterator[tuple[str, str]]:
    """The report of one query piece by piece, for a page that shows each piece as it arrives.

    Returns:
        Kind and HTML of each piece: "head", "hit" for each hit or each section of a novelty, "tail".
    """
    if result.sections is None:
        most = result.hits[0].score if result.hits else 0.0
        yield "head", render("pieces/head.html", result=result)
        for view in hit_views(result, n_pairs=N_MATCHES):
            yield "hit", render("pieces/hit.html", result=result, one=view, most=most)
    else:
        yield "head", render("pieces/novelty_head.html", result=result, note=_NOVELTY_STATUS[result.status])
        for section in _sections(result):
            yield "hit", render("pieces/section.html", result=result, one=section)
    yield "tail", render("pieces/tail.html", result=result, values=head_dict(result))


def asset(name: str) -> str:
    """A style sheet or a script of the report, as text."""
    return files("engine.report").joinpath("templates", name).read_text(encoding="utf-8")


def render(template: str, **values: Any) -> str:  # noqa: ANN401
    """Fill a template of `engine/report/templates`."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("engine.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "pages": pages_label,
        "number": lambda value: f"{value:.4f}",
        "percent": percent,
    }
    environment.globals |= {
        "coverage_note": coverage_note,
        "encoding_lines": encoding_lines,
        "rest_note": rest_note,
        "summary": summary,
        "reference_notes": reference_notes,
        "no_hits": no_hits,
        "floor_note": floor_note,
        "stock_note": stock_note,
        "undated_note": undated_note,
        "no_floor": NO_FLOOR_OF_SECTIONS,
        "query_sections": _query_sections,
        "status_note": lambda status: _STATUS[status],
    }
    return environment


def _query_sections(query: Document) -> Iterator[tuple[str, str, str]]:
    """Label, pages and text of each section."""
    for index, section in enumerate(query.sections):
        span = Span(section.start, section.stop)
        yield section_label(query, index), pages_label(place_of(query, span)), query.text[span.start : span.stop]


_NOVELTY_STATUS = {
    Status.CERTIFIED: "Every document was scored for every section. No document contains more of a section than the "
    "one that is named with it.",
    Status.ESTIMATED: "Every document was scored for every section, those without vectors by words alone. One of them "
    "could contain more of a section than the one that is named with it.",
    Status.PARTIAL: "Evidence is missing: the query was not read to its end, its chunks were pooled, or documents "
    "have no vectors yet. A section can be less novel than it is shown.",
}


@dataclass(frozen=True, slots=True)
class SectionView:
    """A section of the query, and its nearest document."""

    rank: int  # 1 is the most novel
    section: SectionNovelty
    pages: str
    text: SectionText  # of the section, with matches marked
    nearest: HitView | None  # None where no document shares anything with the section
    target: tuple[SectionText, ...]  # sections of the nearest document that match


@dataclass(frozen=True, slots=True)
class _ResultView:
    result: Result
    values: Mapping[str, Any]  # of the result, without its hits
    hits: tuple[HitView | SectionView, ...]  # sections of a novelty


def _sections(result: Result, n_pairs: int | None = None) -> Iterator[SectionView]:
    query, hits = result.query, hit_views(result, n_pairs=_N_NOVELTY_PAIRS if n_pairs is None else n_pairs)
    for rank, section in enumerate(result.sections or (), start=1):
        pages = pages_label(place_of(query, section.span))
        if section.hit is None:
            runs = tuple(marked_runs(query.text, section.span, []))
            text = SectionText(section.section, section.heading, pages, 0.0, (), runs)
            yield SectionView(rank, section, pages, text, None, ())
        else:
            view = next(hits)
            target = tuple(one for one in view.target if one.matches)
            yield SectionView(rank, section, pages, view.query[section.section], view, target)


_PAIRS = 5
_QUOTE = 320  # most characters of a quote
_MOST_SECTIONS = 200
_OPENING = 160  # characters of a section that are shown


def result_html(result: Result) -> str:
    """The hits of one query; each opens to its section pairs with quotes of both sides."""
    values = result_dict(result, n_pairs=_PAIRS)
    best = max((hit["score"] for hit in values["hits"]), default=1.0)
    return render("notebook/result.html", values=values, best=best, coverage=result.query_coverage, quoted=_quoted)


def _quoted(quote: Mapping[str, Any]) -> list[tuple[str, bool]]:
    return quote_runs(*window(quote["text"], tuple(spans(quote["marks"])), _QUOTE))


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
