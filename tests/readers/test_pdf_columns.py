"""Columns of a PDF page: their starts and right edges."""

from __future__ import annotations

from engine.readers.pdf_columns import column_starts, right_edges
from engine.readers.pdf_lines import Line


def line(left: float, right: float, page: int = 0) -> Line:
    return Line("words", page, left, right, 700, 10, is_bold=False)


def column(left: float, right: float, n_lines: int = 20) -> list[Line]:
    """Lines of a column: indented first lines and short last lines among full ones."""
    kinds = [(12, 0), (0, 0), (0, 0), (0, -150)]
    return [line(left + kinds[n % 4][0], right + kinds[n % 4][1]) for n in range(n_lines)]


def test_each_column_has_its_edge() -> None:
    lines = [*column(54, 293), *column(317, 556)]
    assert column_starts(lines) == [54, 317]
    assert right_edges(lines) == [293] * 20 + [556] * 20


def test_lines_across_the_columns_have_an_edge_of_their_own() -> None:
    lines = [*column(54, 293), line(54, 540), line(60, 550), *column(317, 556)]
    assert right_edges(lines)[20:22] == [540, 540]
    assert right_edges(lines)[0] == 293


def test_indents_are_no_columns() -> None:
    assert column_starts([*column(72, 540), *(line(110, 500) for _ in range(20))]) == [72]


def test_narrow_cells_of_a_table_make_few_columns() -> None:
    cells = [line(72 + 50 * n, 100 + 50 * n) for n in range(9) for _ in range(8)]
    assert len(column_starts(cells)) < 6


def test_pages_have_edges_of_their_own() -> None:
    assert right_edges([line(72, 500), line(72, 400, page=1)]) == [500, 400]
