"""Similarities of sections as lines of a terminal: numbers where there is room, shaded cells where there is not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.report.lines import SHADES, Line, Run, Style, cut, line, pad, plain
from engine.result import SectionMatrix
from engine.text.document import section_label

_CHARACTERS = " ░▒▓█"  # of the shades
_LEAST_NAME, _USUAL_NAME = 16, 26  # columns of the names of rows; fewer than usual if numbers fit only then
_NUMBER_ROOM = 5  # columns of the number of a row, and blanks
_NUMBER_COLUMNS = 4
_EVERY = 5  # every fifth section number is shown above shaded cells
_LEGEND_COLUMNS = 40  # least width of a column of the legend


def matrix_lines(matrix: SectionMatrix, *, width: int) -> list[Line]:
    """Section by section cosines, and a legend of the sections.

    Cells are numbers (cosine x 100) if all columns fit, else shades, one or two columns wide. Sections of the
    target that still do not fit follow in further bands.

    Args:
        matrix: of two documents.
        width: columns of the terminal.
    """
    if not matrix.cosines.size:
        return [line("no cosines of sections: the documents have no vectors")]
    rows = [section_label(matrix.query, position) for position in range(len(matrix.query.sections))]
    names = [section_label(matrix.target, position) for position in range(len(matrix.target.sections))]
    numbers = _NUMBER_COLUMNS * len(names)
    name_columns = max(_LEAST_NAME, min(_USUAL_NAME, width - _NUMBER_ROOM - numbers))
    if numbers > width - _NUMBER_ROOM - name_columns:
        name_columns = _USUAL_NAME
    left = name_columns + _NUMBER_ROOM
    room = max(1, width - left)
    cell = next((size for size in (_NUMBER_COLUMNS, 2) if size * len(names) <= room), 1)
    hundredths = np.rint(100 * np.asarray(matrix.cosines, np.float64)).astype(np.int64)
    bounds = shade_bounds(hundredths)
    lines = [
        cut(line("cosine x 100: ", Run(matrix.query.title, Style.TITLE), " (rows)"), width),
        cut(line("          and ", Run(matrix.target.title, Style.TITLE), " (columns)"), width),
    ]
    if cell < _NUMBER_COLUMNS:
        lines.append(_key(bounds))
    for first in range(0, len(names), room // cell):
        band = range(first, min(first + room // cell, len(names)))
        lines.append(line(" " * left, Run(_numbers(band, cell), Style.FAINT)))
        for row, name in enumerate(rows):
            label = pad(cut(line(Run(f"{row + 1:>3} ", Style.FAINT), name), left - 1), left)
            lines.append((*label, *_cells(hundredths[row, band.start : band.stop], bounds, cell)))
    return [*lines, line(""), *_legend(names, width)]


def shade_bounds(hundredths: NDArray[np.int64]) -> tuple[int, ...]:
    """The lowest values of the second, third ... shade: equal steps from the lowest to the highest value."""
    if not hundredths.size:
        return ()
    low, high = int(hundredths.min()), int(hundredths.max())
    return tuple(low + round((high - low) * step / len(SHADES)) for step in range(1, len(SHADES)))


def _cells(values: NDArray[np.int64], bounds: tuple[int, ...], cell: int) -> Line:
    shades = np.searchsorted(bounds, values, side="right").tolist()
    if cell == _NUMBER_COLUMNS:
        numbers = zip(values.tolist(), shades, strict=True)
        return tuple(Run(f"{value:>{cell}}", SHADES[shade]) for value, shade in numbers)
    return tuple(Run(_CHARACTERS[shade] * cell, SHADES[shade]) for shade in shades)


def _key(bounds: tuple[int, ...]) -> Line:
    shades = zip(_CHARACTERS[1:], SHADES[1:], bounds, strict=True)
    runs = [(Run(character * 2, shade), Run(f" from {bound}   ")) for character, shade, bound in shades]
    *others, (last, bound) = runs
    return line("shades: ", *(run for both in others for run in both), last, bound.text.rstrip())


def _numbers(band: range, cell: int) -> str:
    """A line of section numbers, each ending above its cell; above narrow cells some are omitted."""
    text = ""
    for place, column in enumerate(band, start=1):
        is_shown = cell == _NUMBER_COLUMNS or place == 1 or (column + 1) % _EVERY == 0
        number = str(column + 1)
        if is_shown and len(text) + len(number) <= place * cell:
            text = text.ljust(place * cell - len(number)) + number
    return text


def _legend(names: Sequence[str], width: int) -> list[Line]:
    """The numbers and names of the columns, in as many columns as the width allows."""
    n_columns = max(1, min(width // _LEGEND_COLUMNS, len(names)))
    n_rows = -(-len(names) // n_columns)
    room = width // n_columns
    entries = [cut(line(Run(f"{number:>3} ", Style.FAINT), name), room - 2) for number, name in enumerate(names, 1)]
    lines = []
    for row in range(n_rows):
        *others, last = entries[row::n_rows]
        lines.append((*(run for entry in others for run in pad(entry, room)), *last))
    return lines


def matrix_table(matrix: SectionMatrix, *, width: int) -> str:
    """`matrix_lines` as plain text."""
    return plain(matrix_lines(matrix, width=width))
