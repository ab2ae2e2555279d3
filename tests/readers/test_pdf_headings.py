"""Headings of a PDF by its outline, by type, and by known titles."""

from dataclasses import replace

import pytest

from engine.readers.pdf_headings import HeadingLines, by_outline, by_type, with_unnumbered
from engine.readers.pdf_lines import Line

BODY = "This is a line of the body text, as most lines are"


def line(text: str, y: float, size: float = 10) -> Line:
    return Line(text, 0, 72, 500, y, size, is_bold=False)


def page(*texts: str, size: float = 10) -> list[Line]:
    """Lines after ten lines of body text."""
    lines = [line(BODY, 760 - 12 * number) for number in range(10)]
    return [*lines, *(line(text, 600 - 40 * number, size) for number, text in enumerate(texts))]


def test_outlines_match_numbers_on_lines_of_their_own_and_no_formulas() -> None:
    lines = page("B = 0", "The hat matrix", "B 1", "3.5. Changes")
    entries = [("The hat matrix", 1, 0), ("Changes", 2, 0)]
    assert by_outline(lines, entries) == [HeadingLines(11, 12, 1), HeadingLines(13, 14, 2)]
    entries = [("2.1 The hat matrix", 1, 0), ("2.2 Changes of it", 1, 0)]
    lines = page("2.1", "The hat matrix", "2.2 Changes", "of it")
    assert by_outline(lines, entries) == [HeadingLines(10, 12, 1), HeadingLines(12, 14, 1)]


def test_an_entry_can_name_the_page_before_its_heading() -> None:
    lines = [*page("1 Aim"), replace(line("2 Means of it", 700, 13), page=1), replace(line(BODY, 680), page=1)]
    entries = [("Aim", 1, 0), ("Means of it", 1, 0)]
    assert by_outline(lines, entries) == [HeadingLines(10, 11, 1), HeadingLines(11, 12, 1)]


def test_lettered_titles_below_roman_ones_are_headings_in_the_size_of_the_text() -> None:
    texts = ["I. THEIR AIMS", "A. Gates and Weirs of", "Old Rivers", BODY, "C. Out of Order", "II. THEIR MEANS",
             "A. Data", BODY, "B. These Are in a List", "B. Barges", BODY]  # fmt: skip
    heights = [700, 680, 668, 648, 628, 608, 588, 568, 556, 536, 516]
    lines = [line(BODY, 960 - 12 * number) for number in range(20)]
    lines += [line(text, y) for text, y in zip(texts, heights, strict=True)]
    ranges = [(20, 21, 1), (21, 23, 2), (25, 26, 1), (26, 27, 2), (29, 30, 2)]
    assert by_type(lines)[1] == [HeadingLines(*one) for one in ranges]
    assert by_type(lines[:24])[1] == [HeadingLines(20, 21, 1)]


@pytest.mark.parametrize("text", ["References", "ACKNOWLEDGMENTS", "Acknowledgements.", "Bibliography", "Abstract"])
def test_a_known_heading_needs_no_other_type(text: str) -> None:
    lines = page("1 Aim", text, "and references to it", size=10)
    assert by_type(lines)[1] == [HeadingLines(11, 12, 1)]


def test_known_headings_stand_beside_numbered_ones_and_complete_an_outline() -> None:
    lines = [*page("1 Aim", "2 Means", size=13), line("References", 300), line("A. Lee. On pumps.", 260)]
    assert by_type(lines)[1] == [HeadingLines(10, 11, 1), HeadingLines(11, 12, 1), HeadingLines(12, 13, 1)]
    lines = page("1 Aim", "References", "Some words in bold", "A Proofs")
    outlined = [HeadingLines(10, 11, 2), HeadingLines(13, 14, 2)]
    typed = [HeadingLines(number, number + 1, 1) for number in range(10, 14)]
    assert with_unnumbered(outlined, typed, lines) == [outlined[0], HeadingLines(11, 12, 2), outlined[1]]


@pytest.mark.parametrize(
    "text", ["+N\u03b7t, \u03b7", "\uf8ec# . The sum of it", ". The hat matrix", "yx = abc + (i, j, k) / 2 n"]
)
def test_formulas_are_no_headings(text: str) -> None:
    assert by_type(page(text, size=12))[1] == []


@pytest.mark.parametrize(
    "text",
    ["The hat matrix", "\u201cPiracy\u201d", "4.2 Methods", "[Docket No. 12; Product]", "\u6570\u5024\u89e3\u6cd5"],
)
def test_words_are_headings(text: str) -> None:
    assert by_type(page(text, size=11))[1] == [HeadingLines(10, 11, 1 if text[0] != "4" else 2)]


def test_a_title_has_the_type_of_the_headings_but_is_none_of_them() -> None:
    lines = [line("On the matching of documents", 780, 14), *page("Abstract", "Methods", size=14)]
    assert by_type(lines) == ("On the matching of documents", [HeadingLines(11, 12, 1), HeadingLines(12, 13, 1)])
    assert by_type([line("Abstract", 780, 14), *page("Methods", size=14)])[0] == ""
    assert by_type([line("1 On the matching of documents", 780, 14), *page("Methods", size=14)])[0] == ""


@pytest.mark.parametrize(("sign", "headings"), [(".", [HeadingLines(5, 6, 1)]), ("", [])])
def test_capitals_in_the_middle_of_a_typescript_are_a_heading(sign: str, headings: list[HeadingLines]) -> None:
    lines = [line(BODY + sign, 760 - 24 * number) for number in range(10)]
    lines[5] = replace(lines[5], text="THE OLD TOLL", left=250, right=322)
    assert by_type(lines) == ("", headings)
