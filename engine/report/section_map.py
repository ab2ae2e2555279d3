"""The heat map of a hit as an SVG picture: the contribution of each pair of a query and a target section.

There is a path for each shade and no element for each cell, so that a map of 300 x 300 sections has as few
elements as one of 3 x 3. Computes coordinates only; the template draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.scoring.parts import PairColumns
from engine.text.document import Document, section_label

SHADES = 8
MOST_CELLS = 4_000  # cells whose contribution is shown under the pointer; the strongest
MOST_DRAWN = 20_000  # cells that are drawn; the strongest
_SIDE = 620  # pixels of the longer side, about
_SMALLEST, _LARGEST = 3, 24  # pixels of a cell
_LINE = 13  # pixels that a label needs
_LABEL_CHARACTERS = 34
_NUMBERED = 12  # pixels of a cell that has room for the number of its match
_PER_CHARACTER = 6.2  # pixels, about


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a row or column."""

    at: float  # pixels from the beginning of the axis to the middle of the cell
    text: str
    full: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell whose match is shown in the report."""

    x: int
    y: int
    match: int
    title: str


@dataclass(frozen=True, slots=True)
class SectionMap:
    """All values that the picture needs; lengths in pixels."""

    cell: int
    left: int  # room for the names of rows
    top: int  # room for the names of columns, which lean to the right
    lean: int  # how far the name of the last column extends beyond the column
    n_rows: int
    n_columns: int
    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    shades: tuple[tuple[int, str], ...]  # shade from 1, and the path of all its cells
    shown: tuple[Shown, ...]
    is_numbered: bool
    names: tuple[tuple[str, ...], tuple[str, ...]]  # of all sections of query and target
    cells: tuple[tuple[int, int, float], ...]  # row, column and contribution, strongest first
    n_cells: int  # cells that contribute, listed in `cells` or not
    most: float  # the highest contribution

    @property
    def width(self) -> int:
        """Width of the picture, with the part of the last column's name that extends beyond the column."""
        return self.left + self.n_columns * self.cell + self.lean

    @property
    def height(self) -> int:
        """Height of the picture."""
        return self.top + self.n_rows * self.cell + 4


def section_map(query: Document, target: Document, pairs: PairColumns, shown: Sequence[tuple[int, int]]) -> SectionMap:
    """Lay out the heat map of a hit."""
    names = tuple(
        tuple(section_label(document, position) for position in range(len(document.sections)))
        for document in (query, target)
    )
    n_rows, n_columns = max(1, len(names[0])), max(1, len(names[1]))
    cell = max(_SMALLEST, min(_LARGEST, _SIDE // max(n_rows, n_columns)))
    rows, columns = _labels(names[0], cell), _labels(names[1], cell)
    drawn = pairs.of(np.argsort(-pairs.contributions, kind="stable")[:MOST_DRAWN])
    strongest = drawn.of(slice(MOST_CELLS))
    cells = tuple(
        zip(
            *(one.tolist() for one in (strongest.query_sections, strongest.target_sections, strongest.contributions)),
            strict=True,
        )
    )
    return SectionMap(
        cell=cell,
        left=_room(rows),
        top=int(0.75 * _room(columns)) + 10,
        lean=int(0.67 * _room(columns)),
        n_rows=n_rows,
        n_columns=n_columns,
        rows=rows,
        columns=columns,
        shades=_shades(drawn, cell),
        shown=tuple(
            Shown(
                column * cell,
                row * cell,
                number,
                f"match {number}: {names[0][row]} → {names[1][column]}",
            )
            for number, (row, column) in enumerate(shown, start=1)
        ),
        is_numbered=cell >= _NUMBERED,
        names=(names[0], names[1]),
        cells=cells,
        n_cells=len(pairs.contributions),
        most=cells[0][2] if cells else 0.0,
    )


def _labels(names: Sequence[str], cell: int) -> tuple[Label, ...]:
    """The names of the rows or columns, as far as there is room for labels."""
    step = -(-_LINE // cell)
    return tuple(
        Label((number + 0.5) * cell, _cut(f"{number + 1} {name}"), f"{number + 1} {name}")
        for number, name in enumerate(names)
        if number % step == 0
    )


def _cut(name: str) -> str:
    return name if len(name) <= _LABEL_CHARACTERS else name[: _LABEL_CHARACTERS - 1].rstrip() + "…"


def _room(labels: Sequence[Label]) -> int:
    return int(_PER_CHARACTER * max((len(label.text) for label in labels), default=0)) + 12


def _shades(pairs: PairColumns, cell: int) -> tuple[tuple[int, str], ...]:
    """Paths by shade; neighbouring cells of a row with the same shade are one rectangle."""
    # Square roots, since one strong pair would otherwise leave all others white.
    most = max(float(pairs.contributions.max(initial=0.0)), 1e-12)
    levels = np.ceil(SHADES * np.sqrt(pairs.contributions / most)).astype(np.int64)
    order = np.lexsort((pairs.target_sections, pairs.query_sections, levels))
    levels, rows, columns = levels[order], pairs.query_sections[order], pairs.target_sections[order]
    is_new_row = (np.diff(levels, prepend=-1) != 0) | (np.diff(rows, prepend=-1) != 0)
    firsts = np.flatnonzero(is_new_row | (np.diff(columns, prepend=-2) != 1))
    sizes = np.diff(np.append(firsts, len(levels)))
    paths: dict[int, list[str]] = {}
    runs = np.stack([levels[firsts], rows[firsts], columns[firsts], sizes], axis=1)
    for level, row, start, n_cells in runs.tolist():
        path = f"M{start * cell} {row * cell}h{n_cells * cell}v{cell}h{-n_cells * cell}z"
        paths.setdefault(level, []).append(path)
    return tuple((level, "".join(path)) for level, path in paths.items() if level)
