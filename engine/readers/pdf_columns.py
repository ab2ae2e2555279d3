"""Finds the columns of a page, and where the full lines of each one end. Pure functions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby

from engine.readers.pdf_lines import Line

_MIN_LINES = 5  # lines that start at one place make a column
_MIN_SHARE = 0.05  # of the lines of the page
_MIN_WIDTH = 0.15  # of the text of the page; cells of a table are narrower
_SHARE_ENDING = 0.8  # of the lines of a column end before the next column
_SAME_PLACE = 3.0  # points
_FULL = 0.9  # of the lines end at or before the edge


def right_edges(lines: Sequence[Line]) -> list[float]:
    """For each line, the right edge of the full lines of its column, in points.

    Args:
        lines: lines of one page are neighbours.
    """
    edges: list[float] = []
    for _, page in groupby(lines, key=lambda line: line.page):
        edges.extend(_of_page(list(page)))
    return edges


def column_starts(page: Sequence[Line]) -> list[float]:
    """Left edges of the columns of a page, from left to right; at least one."""
    lefts = sorted(line.left for line in page)
    width = max(line.right for line in page) - lefts[0]
    starts = [lefts[0]]
    for place, n_lines in _places(lefts):
        if n_lines < max(_MIN_LINES, _MIN_SHARE * len(page)) or place - starts[-1] < _MIN_WIDTH * width:
            continue
        inside = [line.right for line in page if starts[-1] - _SAME_PLACE <= line.left < place - _SAME_PLACE]
        if sum(right <= place for right in inside) >= _SHARE_ENDING * len(inside):
            starts.append(place)
    return starts


def _places(lefts: Sequence[float]) -> list[tuple[float, int]]:
    """The places where lines start, with the number of lines; starts that are close together are one place."""
    places: list[list[float]] = []
    for left in lefts:
        if places and left - places[-1][0] <= _SAME_PLACE:
            places[-1].append(left)
        else:
            places.append([left])
    return [(place[0], len(place)) for place in places]


def _of_page(page: Sequence[Line]) -> list[float]:
    starts = column_starts(page)
    columns = [bisect_right(starts, line.left + _SAME_PLACE) - 1 for line in page]
    ends: dict[int, list[float]] = {}
    for number, line in enumerate(page):
        if _is_wide(line, columns[number], starts):
            columns[number] = len(starts)  # lines across columns have an edge of their own
        ends.setdefault(columns[number], []).append(line.right)
    edges = {column: sorted(rights)[int(_FULL * (len(rights) - 1))] for column, rights in ends.items()}
    return [edges[column] for column in columns]


def _is_wide(line: Line, column: int, starts: Sequence[float]) -> bool:
    return column + 1 < len(starts) and line.right > starts[column + 1] + _SAME_PLACE
