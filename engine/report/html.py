"""Results and matrices of sections as HTML fragments for notebooks. Every text is escaped; they load no files."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from engine.encoders.encoder import Vectors
from engine.report.snippets import Snippet, pair_snippets, term_weights
from engine.report.table import pooled_note
from engine.result import Hit, Result, SectionMatrix
from engine.scoring.breakdown import SectionPair
from engine.text.document import Document, section_label

_PAIRS = 5
_SNIPPET = 320

_STYLE = (
    "<style>.longmatch{font-family:system-ui,sans-serif;font-size:14px;line-height:1.4;max-width:72em}"
    ".longmatch summary{cursor:pointer;padding:.3em 0;border-top:1px solid #8884}"
    ".longmatch .bar{display:inline-block;height:.7em;background:#3b7dd8;border-radius:2px;margin-right:.5em}"
    ".longmatch .quiet{opacity:.65}.longmatch table{border-collapse:collapse;margin:.3em 0 .8em 1.5em}"
    ".longmatch td{vertical-align:top;text-align:left;padding:.25em .8em .25em 0;max-width:34em}</style>"
)
_MATRIX_STYLE = (
    "<style>.longmatch-matrix{font-family:system-ui,sans-serif;font-size:12px;line-height:1.3}"
    ".longmatch-matrix div{overflow-x:auto}"
    ".longmatch-matrix table{border-collapse:collapse}"
    ".longmatch-matrix td{min-width:2.2em;padding:.15em;text-align:center}"
    ".longmatch-matrix tbody th{font-weight:normal;text-align:left;white-space:nowrap;max-width:24em;"
    "overflow:hidden;text-overflow:ellipsis;padding-right:.6em}</style>"
)
_COLOUR = "59,125,216"  # of the bars of results


def result_html(result: Result) -> str:
    """The hits of one query; each opens to its section pairs with snippets of both sides."""
    coverage = result.query_coverage
    head = (
        f"<p><b>{escape(result.query.title)}</b> <span class='quiet'>{coverage.tokens_read:,} of "
        f"{coverage.tokens_total:,} tokens read{pooled_note(coverage)}; "
        f"{len(result.hits)} of {result.n_found:,} matching, {result.n_searched:,} searched, "
        f"{result.status.value}</span></p>"
    )
    best = result.hits[0].score if result.hits else 1.0
    hits = "".join(_hit(result, hit, best) for hit in result.hits)
    return f"<div class='longmatch'>{_STYLE}{head}{hits or '<p>no document matches</p>'}</div>"


def _hit(result: Result, hit: Hit, best: float) -> str:
    bar = f"<span class='bar' style='width:{8 * hit.score / best:.2f}em'></span>"
    weights = term_weights(hit, result.language)
    rows = "".join(_pair(result, hit, pair, weights) for pair in hit.breakdown.pairs[:_PAIRS])
    hidden = hit.breakdown.pairs[_PAIRS:]
    if hidden:
        rows += _row(sum(pair.contribution for pair in hidden), f"{len(hidden)} more section pairs", "")
    whole = hit.breakdown.document
    if whole is not None:
        rows += _row(whole.contribution, f"document vectors, cosine {whole.similarity:.3f}", "")
    return (
        f"<details{' open' if hit.rank == 1 else ''}><summary>{hit.rank}. {bar}{hit.score:.4f} "
        f"<b>{escape(hit.title)}</b> <span class='quiet'>{escape(hit.doc_id)}</span></summary>"
        f"<table>{rows}</table></details>"
    )


def _pair(result: Result, hit: Hit, pair: SectionPair, weights: Mapping[int, float]) -> str:
    snippets = pair_snippets(result, hit, pair, weights)
    return _row(
        pair.contribution,
        _side(result.query, pair.query_section, snippets.query),
        _side(hit.document, pair.target_section, snippets.target),
    )


def _side(document: Document, section: int, snippet: Snippet) -> str:
    shown = snippet.cut(_SNIPPET).joined(escape, "<mark>", "</mark>")
    return f"<b>{escape(section_label(document, section))}</b><br><span class='quiet'>{shown}</span>"


def _row(contribution: float, left: str, right: str) -> str:
    return f"<tr><td>{contribution:.4f}</td><td>{left}</td><td>{right}</td></tr>"


def matrix_html(matrix: SectionMatrix) -> str:
    """The cosines as shaded cells, in hundredths; sections of the target have numbers, named below the table.

    The shade runs from the lowest to the highest cosine. Numbers count from 0, as `index` in `Result.to_dict`.
    """
    rows = [section_label(matrix.query, position) for position in range(len(matrix.query.sections))]
    columns = [section_label(matrix.target, position) for position in range(len(matrix.target.sections))]
    head = "".join(f"<th title='{escape(name)}'>{number}</th>" for number, name in enumerate(columns))
    body = "".join(
        f"<tr><th title='{escape(name)}'>{number} {escape(name)}</th>{cells}</tr>"
        for number, (name, cells) in enumerate(zip(rows, _cells(matrix.cosines, rows, columns), strict=True))
    )
    legend = "".join(f"<br>{number} {escape(name)}" for number, name in enumerate(columns))
    return (
        f"<div class='longmatch-matrix'>{_MATRIX_STYLE}<p>Cosine × 100 of the sections of "
        f"<b>{escape(matrix.query.title)}</b> "
        f"(rows) and of <b>{escape(matrix.target.title)}</b> (columns)</p>"
        f"<div><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f"<details><summary>columns</summary>{legend}</details></div>"
    )


def _cells(cosines: Vectors, rows: list[str], columns: list[str]) -> list[str]:
    """The cells of each row; the numbers of the highest cosines are white."""
    low = float(cosines.min(initial=1.0))
    extent = max(float(cosines.max(initial=-1.0)) - low, 1e-9)
    lines = []
    for row, values in zip(rows, cosines.tolist(), strict=True):
        cells = []
        for column, value in zip(columns, values, strict=True):
            shade = (value - low) / extent
            ink = "#fff" if shade > 0.6 else "inherit"
            style = f"background:rgba({_COLOUR},{shade:.2f});color:{ink}"
            name = escape(f"{row} → {column}: {value:.3f}")
            cells.append(f"<td style='{style}' title='{name}'>{round(100 * value)}</td>")
        lines.append("".join(cells))
    return lines
