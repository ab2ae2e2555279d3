"""Matrices of sections and documents in a notebook."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from engine.report.page import document_html, matrix_html
from engine.text.document import Document
from engine.text.spans import Section
from engine.views import SectionMatrix

QUERY = Document("q", "On <b>", "aa bb", (Section("A & B", ("A & B",), 0, 3), Section("C", ("C",), 3, 5)))
TARGET = Document("t", "Target", "cc", (Section("'D'", ("'D'",), 0, 2),))


def test_cells_are_shaded_from_the_lowest_to_the_highest() -> None:
    html = matrix_html(SectionMatrix(QUERY, TARGET, np.array([[0.25], [0.75]], np.float32)))
    cells = re.findall(r'<td style="background:rgba\(59,125,216,([\d.]+)\);color:(.*?)".*?>(.*?)</td>', html)
    assert cells == [("0.00", "inherit", "25"), ("1.00", "#fff", "75")]


def test_every_text_is_escaped() -> None:
    html = matrix_html(SectionMatrix(QUERY, TARGET, np.array([[0.25], [0.75]], np.float32)))
    assert "On &lt;b&gt;" in html and "On <b>" not in html
    assert 'title="A &amp; B → &#39;D&#39;: 0.250"' in html


def test_equal_and_absent_cosines_are_shown() -> None:
    assert ">50</td>" in matrix_html(SectionMatrix(QUERY, TARGET, np.full((2, 1), 0.5, np.float32)))
    nothing = Document("e", "Empty", "", ())
    assert "<td" not in matrix_html(SectionMatrix(nothing, TARGET, np.zeros((0, 1), np.float32)))


TEXT = "A & B\nfirst words\nC\nmore"
SECTIONS = (Section("A & B", ("A & B",), 0, 18), Section("C", ("C",), 18, 24))
DOCUMENT = Document("d.pdf", "On <i>", TEXT, SECTIONS, {"year": 2020, "tags": ["a", "<b>"]}, "x/d.pdf", pages=(0, 10))


def rows(html: str) -> list[list[str]]:
    (body,) = re.findall(r"<tbody>(.*)</tbody>", html, re.DOTALL)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]


def test_each_section_has_a_row() -> None:
    assert rows(document_html(DOCUMENT)) == [
        ["0", "A &amp; B", "18", "1-2", "A &amp; B first words"],
        ["1", "C", "6", "2", "C more"],
    ]


def test_the_head_names_document_and_metadata() -> None:
    html = document_html(DOCUMENT)
    assert "<b>On &lt;i&gt;</b>" in html
    assert "d.pdf, x/d.pdf; 24 characters in 2 sections on 2 pages<br>year: 2020<br>tags: a, &lt;b&gt;" in html


def test_a_format_without_pages_has_no_column_for_them() -> None:
    html = document_html(replace(DOCUMENT, pages=()))
    assert rows(html)[1] == ["1", "C", "6", "C more"]
    assert "<th>pages</th>" not in html and " pages<br>" not in html


def test_very_many_sections_are_counted_instead() -> None:
    many = replace(DOCUMENT, text="x" * 250, sections=tuple(Section("", (), at, at + 1) for at in range(250)))
    html = document_html(many)
    assert len(rows(html)) == 200
    assert "50 more sections" in html
