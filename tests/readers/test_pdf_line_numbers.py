"""Line numbers of a PDF are left out, and other numbers stay."""

from __future__ import annotations

import pytest

from engine.readers.pdf_line_numbers import without_line_numbers
from engine.readers.pdf_lines import Line

WORDS = "the text of a manuscript goes on from line to line and says nothing of weight".split()


def line(text: str, y: float, *, page: int = 0, left: float = 90, right: float = 400, text_left: float = 0) -> Line:
    return Line(text, page, left, right, y, 10, is_bold=False, text_left=text_left)


def text_lines(page: int = 0) -> list[Line]:
    return [line(f"{word} {word}", 700 - 12 * number, page=page) for number, word in enumerate(WORDS)]


def numbers(page: int = 0, *, first: int = 1, right: float = 60) -> list[Line]:
    """Line numbers, aligned at the right."""
    return [
        line(str(value), 700 - 12 * number, page=page, left=right - 5 * len(str(value)), right=right)
        for number, value in enumerate(range(first, first + len(WORDS)))
    ]


@pytest.mark.parametrize("right", [60, 440], ids=["left margin", "right margin"])
@pytest.mark.parametrize("first", [1, 96, 991])
def test_numbers_beside_the_lines_are_left_out(right: float, first: int) -> None:
    pages = [[*text_lines(page), *numbers(page, first=first, right=right)] for page in range(2)]
    assert without_line_numbers([one for page in pages for one in page]) == [*text_lines(0), *text_lines(1)]


def test_every_fifth_line_may_be_numbered() -> None:
    lines = [line(f"line {letter}", 700 - 12 * number) for number, letter in enumerate("abcdefghijklmnopqrstuvwx", 1)]
    fifths = [line(f"{value}", 700 - 12 * value, left=60 - 5 * len(str(value)), right=60) for value in (5, 10, 15, 20)]
    assert without_line_numbers([*lines, *fifths]) == lines


def test_numbers_before_the_text_of_their_line_are_cut_off() -> None:
    lines = [
        line(f"{number} {word}", 700 - 12 * number, left=60 - 5 * len(str(number)), text_left=90)
        for number, word in enumerate(WORDS, start=1)
    ]
    kept = without_line_numbers(lines)
    assert [one.text for one in kept] == WORDS
    assert {one.left for one in kept} == {90}


def test_marks_in_the_column_of_the_numbers_are_left_out() -> None:
    marks = [line("S32", 40, left=45, right=60), line("R33", 28, left=45, right=60)]
    assert without_line_numbers([*text_lines(), *numbers(), *marks]) == text_lines()


def test_a_column_of_a_table_stays() -> None:
    table = [line(f"{value}", 500 - 12 * value, left=150, right=155) for value in range(1, 10)]
    assert without_line_numbers([*text_lines(), *table]) == [*text_lines(), *table]


def test_numbers_out_of_sequence_stay() -> None:
    scores = [line(str(value), 700 - 12 * n, left=50, right=60) for n, value in enumerate([31, 17, 42, 42, 18, 95, 60])]
    assert without_line_numbers([*text_lines(), *scores]) == [*text_lines(), *scores]


def test_headings_and_items_stay() -> None:
    headings = [line(f"{number} Heading", 730 - 100 * number, text_left=100) for number in range(1, 8)]
    assert without_line_numbers([*text_lines(), *headings]) == [*text_lines(), *headings]


def test_years_at_the_ends_of_lines_stay() -> None:
    lines = [line(f"in the year {year}", 700 - 12 * n, right=400) for n, year in enumerate(range(1990, 2000))]
    assert without_line_numbers(lines) == lines
