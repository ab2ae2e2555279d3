"""A document shown in a notebook, section by section."""

from __future__ import annotations

import re
from dataclasses import replace

from engine.report.document_html import document_html
from engine.text.document import Document
from engine.text.spans import Section

TEXT = "A & B\nfirst words\nC\nmore"
SECTIONS = (Section("A & B", ("A & B",), 0, 18), Section("C", ("C",), 18, 24))
DOCUMENT = Document("d.pdf", "On <i>", TEXT, SECTIONS, {"year": 2020, "tags": ["a", "<b>"]}, "x/d.pdf", pages=(0, 10))


def rows(html: str) -> list[list[str]]:
    (body,) = re.findall(r"<tbody>(.*)</tbody>", html)
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
