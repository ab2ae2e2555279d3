"""A comparison of two documents as lines for a terminal, in styles or as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.report.lines import Line, Run, Style, cut, line, plain
from engine.report.table import N_PAIRS, WIDTH, coverage_note, hit_lines
from engine.text.document import Document
from engine.text.spans import Coverage

if TYPE_CHECKING:
    from engine.comparison import Comparison

_NO_BACKGROUND = (
    "without an index there are no thresholds: the score is high for any two",
    "texts, and serves to order the parts below; --index INDEX takes some",
)


def comparison_table(comparison: Comparison, *, n_pairs: int = N_PAIRS, width: int = WIDTH) -> str:
    """`comparison_lines` as plain text; words that both texts have are between asterisks."""
    return plain(comparison_lines(comparison, n_pairs=n_pairs, width=width, has_styles=False))


def comparison_lines(
    comparison: Comparison, *, n_pairs: int = N_PAIRS, width: int = WIDTH, has_styles: bool = True
) -> list[Line]:
    """Both documents, the score with the source of its thresholds, and its parts with snippets of both sides.

    Args:
        comparison: of two documents.
        n_pairs: section pairs shown.
        width: columns of the terminal.
        has_styles: whether the output shows styles; otherwise words that both texts have get asterisks.
    """
    result = comparison.result
    (hit,) = result.hits
    lines = [*_document("<", result.query, result.query_coverage), *_document(">", hit.document, hit.coverage), ()]
    score = line("     ", Run(f"{comparison.score:.4f}", Style.NUMBER), Run("  score", Style.TITLE))
    if comparison.background:
        note = f", with thresholds and word statistics of {comparison.background}"
        lines.append((*score, Run(note, Style.FAINT)))
    else:
        lines += [score, *(line(Run(f"     {note}", Style.FAINT)) for note in _NO_BACKGROUND)]
    if not hit.pairs:
        lines.append(line("     no passage and no word matches"))
    parts = hit_lines(result, hit, n_pairs, width, has_styles=has_styles)
    return [cut(one, width) for one in [*lines, (), *parts]]


def _document(mark: str, document: Document, coverage: Coverage) -> list[Line]:
    name = Run(f"  {document.source or document.doc_id}", Style.FAINT)
    read = "compared by words alone" if not coverage.tokens_read else coverage_note(coverage)
    return [
        line(Run(f"{mark} ", Style.FAINT), Run(document.title, Style.TITLE), name),
        line(Run(f"  {read}", Style.FAINT)),
    ]
