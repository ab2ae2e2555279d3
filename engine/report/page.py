"""Reports as one offline file, rendered from templates. No script, font or image is loaded from elsewhere.

Jinja2 escapes every value; values inside of scripts are JSON without markup characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from engine.report.contract import head_dict
from engine.report.evidence import hit_views, pages_label, place_of, result_view
from engine.report.table import coverage_note, encoding_lines, no_hits
from engine.result import N_MATCHES, Result, Status
from engine.text.document import Document, section_label
from engine.text.spans import Span

_STATUS = {
    Status.CERTIFIED: "Every document that could be found was scored completely. The ranking is exact.",
    Status.ESTIMATED: "An approximate index, or words, chose the documents that were scored. Every hit was scored "
    "completely. A document that was not chosen could belong here; an exact search scores all.",
    Status.PARTIAL: "Evidence is missing: the query was not read to its end, its chunks were pooled, or documents "
    "have no vectors yet.",
}


def result_page(
    results: Sequence[Result], *, n_pairs: int = N_MATCHES, command: str = "", background: str | None = None
) -> str:
    """The evidence report of one or several queries, or of a comparison.

    Args:
        results: results of searches, or the single result of a comparison.
        n_pairs: section pairs shown for each hit.
        command: the command line that made the report, shown at its end.
        background: for a comparison, the index that supplied thresholds, or "" if none did; None for searches.
    """
    views = [result_view(result, n_pairs=n_pairs) for result in results]
    return render("evidence.html", views=views, command=command, background=background)


def result_pieces(result: Result, *, n_pairs: int = N_MATCHES) -> Iterator[tuple[str, str]]:
    """The report of one query piece by piece, for a page that shows each piece as it arrives.

    Args:
        result: of a search.
        n_pairs: section pairs shown for each hit.

    Returns:
        Kind and HTML of each piece: "head", "hit" for each hit, "tail".
    """
    most = result.hits[0].score if result.hits else 0.0
    yield "head", render("pieces/head.html", result=result)
    for view in hit_views(result, n_pairs=n_pairs):
        yield "hit", render("pieces/hit.html", result=result, one=view, most=most)
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
        "share": lambda value, total: f"{100 * value / total:.1f}" if total else "0",
    }
    environment.globals |= {
        "coverage_note": coverage_note,
        "encoding_lines": encoding_lines,
        "no_hits": no_hits,
        "query_sections": _query_sections,
        "status_note": lambda status: _STATUS[status],
    }
    return environment


def _query_sections(query: Document) -> Iterator[tuple[str, str, str]]:
    """Label, pages and text of each section."""
    for index, section in enumerate(query.sections):
        span = Span(section.start, section.stop)
        yield section_label(query, index), pages_label(place_of(query, span)), query.text[span.start : span.stop]
