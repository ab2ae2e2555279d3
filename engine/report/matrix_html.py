"""A section matrix as an HTML fragment for notebooks: a heat map of cosines. Every text is escaped."""

from __future__ import annotations

from html import escape

from engine.encoders.encoder import Vectors
from engine.result import SectionMatrix
from engine.text.document import section_label

_STYLE = (
    "<style>.longmatch-matrix{font-family:system-ui,sans-serif;font-size:12px;line-height:1.3}"
    ".longmatch-matrix div{overflow-x:auto}"
    ".longmatch-matrix table{border-collapse:collapse}"
    ".longmatch-matrix td{min-width:2.2em;padding:.15em;text-align:center}"
    ".longmatch-matrix tbody th{font-weight:normal;text-align:left;white-space:nowrap;max-width:24em;"
    "overflow:hidden;text-overflow:ellipsis;padding-right:.6em}</style>"
)
_COLOUR = "59,125,216"  # of the bars of results


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
        f"<div class='longmatch-matrix'>{_STYLE}<p>Cosine × 100 of the sections of <b>{escape(matrix.query.title)}</b> "
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
