"""Reports as one offline file: fills the templates. No script, font or image comes from outside.

Every value is escaped by Jinja2, those inside of scripts as JSON without markup characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from engine.report.evidence import pages_label, result_view
from engine.report.table import coverage_note, encoding_lines, no_hits
from engine.result import N_MATCHES, Result, Status

_STATUS = {
    Status.CERTIFIED: "Every document that could be found was scored completely. No other document belongs here.",
    Status.ESTIMATED: "An approximate index, or words, chose the documents that were scored. Every hit was scored "
    "completely. A document that was not chosen could belong here; --exact scores all.",
    Status.PARTIAL: "Evidence is missing: the query was not read to its end, its chunks were pooled, or documents "
    "have no vectors yet.",
}


def result_page(
    results: Sequence[Result], *, n_pairs: int = N_MATCHES, command: str = "", background: str | None = None
) -> str:
    """The evidence report of one or several queries, or of a comparison.

    Args:
        results: each of a search, or the one of a comparison.
        n_pairs: section pairs shown of each hit.
        command: that made the report, shown at its end.
        background: of a comparison, the index that gave thresholds, or ""; None for searches.
    """
    views = [result_view(result, n_pairs=n_pairs) for result in results]
    return render("evidence.html", views=views, command=command, background=background)


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
        "status_note": lambda status: _STATUS[status],
    }
    return environment
