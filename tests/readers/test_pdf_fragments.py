"""Fragments of one line of a PDF are joined."""

from __future__ import annotations

from engine.readers.pdf_fragments import rejoined
from engine.readers.pdf_lines import Line


def part(text: str, left: float, right: float, y: float = 700, size: float = 10, *, page: int = 0) -> Line:
    return Line(text, page, left, right, y, size, is_bold=False)


def test_a_superscript_does_not_end_the_line() -> None:
    lines = [part("in time O(k", 72, 120), part("2", 120.5, 124, 704, 7), part(") at most", 125, 170)]
    assert rejoined(lines) == [part("in time O(k2) at most", 72, 170)]


def test_words_in_another_type_keep_their_space() -> None:
    assert rejoined([part("the", 72, 90), part("word", 94, 120)])[0].text == "the word"


def test_the_longest_fragment_gives_place_and_type() -> None:
    assert rejoined([part("1", 72, 75, 704, 6), part("A footnote", 76, 140)]) == [part("1A footnote", 72, 140)]


def test_other_lines_stay_apart() -> None:
    lines = [
        part("a left column", 72, 290),
        part("a right column", 310, 500),
        part("the next line", 72, 290, 688),
        part("the next page", 291, 400, 688, page=1),
        part("hyphen\u00ad", 72, 290, 676, page=1),
        part("ated", 291, 300, 676, page=1),
    ]
    assert rejoined(lines) == lines
