"""A result as an HTML fragment for notebooks. Every text in it is escaped; it loads no other files."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from engine.report.snippets import Snippet, pair_snippets, term_weights
from engine.report.table import missing_lines, pooled_note
from engine.result import Hit, Result
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


def result_html(result: Result) -> str:
    """The hits of one query; each opens to its section pairs with snippets of both sides."""
    coverage = result.query_coverage
    head = (
        f"<p><b>{escape(result.query.title)}</b> <span class='quiet'>{coverage.tokens_read:,} of "
        f"{coverage.tokens_total:,} tokens read{pooled_note(coverage)}; "
        f"{len(result.hits)} of {result.n_found:,} matching, {result.n_searched:,} searched, "
        f"{escape(', '.join([result.status.value, *missing_lines(result)]))}</span></p>"
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
