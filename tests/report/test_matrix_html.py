"""A section matrix in a notebook: shaded cells with the names of both sections."""

from __future__ import annotations

import re

import numpy as np

from engine.report.html import matrix_html
from engine.text.document import Document
from engine.text.spans import Section
from engine.views import SectionMatrix

QUERY = Document("q", "On <b>", "aa bb", (Section("A & B", ("A & B",), 0, 3), Section("C", ("C",), 3, 5)))
TARGET = Document("t", "Target", "cc", (Section("'D'", ("'D'",), 0, 2),))


def test_cells_are_shaded_from_the_lowest_to_the_highest() -> None:
    html = matrix_html(SectionMatrix(QUERY, TARGET, np.array([[0.25], [0.75]], np.float32)))
    cells = re.findall(r"<td style='background:rgba\(59,125,216,([\d.]+)\);color:(.*?)'.*?>(.*?)</td>", html)
    assert cells == [("0.00", "inherit", "25"), ("1.00", "#fff", "75")]


def test_every_text_is_escaped() -> None:
    html = matrix_html(SectionMatrix(QUERY, TARGET, np.array([[0.25], [0.75]], np.float32)))
    assert "On &lt;b&gt;" in html and "On <b>" not in html
    assert "title='A &amp; B → &#x27;D&#x27;: 0.250'" in html


def test_equal_and_absent_cosines_are_shown() -> None:
    assert ">50</td>" in matrix_html(SectionMatrix(QUERY, TARGET, np.full((2, 1), 0.5, np.float32)))
    nothing = Document("e", "Empty", "", ())
    assert "<td" not in matrix_html(SectionMatrix(nothing, TARGET, np.zeros((0, 1), np.float32)))
