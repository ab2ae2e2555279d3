"""Recognises the labels inside a figure of a PDF, which may be set like headings. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from engine.readers.pdf_lines import Line

_CAPTION = re.compile(r"fig(?:ure|\.)?\s*\d", re.IGNORECASE)  # captions of tables are above the table, after a heading
_MAX_LABELS = 30  # lines between one label and the caption
_NARROW = 0.6  # times the width of body text
_SAME_SIZE = 0.05  # times the body size


def body_width(lines: Sequence[Line], size: float) -> float:
    """The usual width of a line of body text, in points.

    Args:
        lines: all lines, at least one.
        size: of body text, in points.
    """
    body = [line for line in lines if abs(line.size - size) <= _SAME_SIZE * size] or lines
    return median(line.right - line.left for line in body)


def is_label(lines: Sequence[Line], group: range, width: float) -> bool:
    """Whether only narrow lines are between a group of lines and the caption of a figure below.

    Args:
        lines: all lines.
        group: the numbers of neighbouring lines.
        width: of body text, in points.
    """
    last = lines[group.stop - 1]
    for line in lines[group.stop : group.stop + _MAX_LABELS + 1]:
        if line.page != last.page:
            return False
        if _CAPTION.match(line.text):
            return line.y < last.y  # else the caption is in another column
        if line.right - line.left >= _NARROW * width:
            return False
    return False
