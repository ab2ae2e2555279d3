"""Paragraphs, columns, running heads and line numbers of PDF pages."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from engine.readers.pdf_layout import (
    body_size,
    breaks_line,
    column_starts,
    joined,
    right_edges,
    starts_paragraph,
    without_line_numbers,
    without_running_heads,
)
from engine.readers.pdf_lines import Line


def line(text: str, y: float = 700, *, page: int = 0, left: float = 72, right: float = 500, size: float = 10) -> Line:
    return Line(text, page, left, right, y, size, is_bold=False)


def test_the_body_size_has_most_characters() -> None:
    assert body_size([line("Title", size=20), line("Sub", size=20), line("a long line of body")]) == 10


def test_words_are_joined_across_lines() -> None:
    assert joined("a docu-", "ment", frozenset()) == "a document"
    assert joined("a well-", "known one", frozenset(["well-known"])) == "a well-known one"
    assert joined("the Navier-", "Stokes one", frozenset()) == "the Navier-Stokes one"
    assert joined("from 3-", "5 of COVID-", frozenset()) == "from 3-5 of COVID-"
    assert joined("state-of-the-", "art locks", frozenset(["the"])) == "state-of-the-art locks"
    assert joined("an end", "here", frozenset()) == "an end here"


@pytest.mark.parametrize(
    ("before", "after", "is_start"),
    [
        (line("and so", 700), line("on it goes", 680), True),
        (line("and so", 700), line("on it goes", 688), False),
        (line("it ends.", 700, right=300), line("Next", 688), True),
        (line("it goes", 700, right=300), line("on", 688), False),
        (line("it ends.", 700), line("Next", 688), False),
        (line("it ends.", 700), line("Next", 688, left=84), True),
        (line("it goes", 80), line("on here", 700, page=1), False),
        (line("it goes", 80), line("on here", 700, left=320), False),
        (line("it ends.", 80), line("Next one", 700, page=1), True),
        (line("that most would reject", 700), line("it. Yet most do not", 688), False),
        (line("the parts are:", 700), line("a. the first", 688), True),
        (line("The data from the flight", 700, left=84, right=440), line("recorders of", 688), False),
        (line("[1] A. Author. 2001", 700, left=84, right=300), line("[2] B. Author", 688), True),
    ],
)
def test_a_paragraph_starts_at_a_gap_an_indent_or_a_new_sentence(before: Line, after: Line, *, is_start: bool) -> None:
    assert starts_paragraph(before, after, pitch=12, right_edge=500) is is_start


def test_a_line_that_ends_early_is_broken() -> None:
    assert breaks_line(line("x = 1", right=120), 500)
    assert not breaks_line(line("x = 1-", right=120), 500)
    assert not breaks_line(line("a full line", right=480), 500)


def column_line(left: float, right: float, page: int = 0) -> Line:
    return Line("words", page, left, right, 700, 10, is_bold=False)


def column(left: float, right: float, n_lines: int = 20) -> list[Line]:
    """Lines of a column: indented first lines and short last lines among full ones."""
    kinds = [(12, 0), (0, 0), (0, 0), (0, -150)]
    return [column_line(left + kinds[n % 4][0], right + kinds[n % 4][1]) for n in range(n_lines)]


def test_columns_pages_and_lines_across_have_their_own_edges() -> None:
    lines = [*column(54, 293), *column(317, 556)]
    assert column_starts(lines) == [54, 317]
    assert right_edges(lines) == [293] * 20 + [556] * 20
    lines = [*column(54, 293), column_line(54, 540), column_line(60, 550), *column(317, 556)]
    assert right_edges(lines)[20:22] == [540, 540]
    assert right_edges(lines)[0] == 293
    assert right_edges([column_line(72, 500), column_line(72, 400, page=1)]) == [500, 400]


def test_indents_are_no_columns_and_narrow_cells_few() -> None:
    assert column_starts([*column(72, 540), *(column_line(110, 500) for _ in range(20))]) == [72]
    cells = [column_line(72 + 50 * n, 100 + 50 * n) for n in range(9) for _ in range(8)]
    assert len(column_starts(cells)) < 6


def letters(number: int) -> str:
    """A number without digits."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def body(page: int, n_lines: int = 8) -> list[Line]:
    return [line(f"body {letters(1000 * n + page)}", 600 - 12 * n, page=page) for n in range(n_lines)]


def flat(pages: Iterable[list[Line]]) -> list[Line]:
    return [one for page in pages for one in page]


def test_running_heads_are_recognised_by_their_place_and_words() -> None:
    kept = without_running_heads(
        [
            line(text, y, page=page)
            for page in range(4)
            for text, y in [
                (f"Journal {page}", 770),
                ("Journal text", 700),
                ("x" * (page + 3), 500),
                (f"end {'abcd'[page]}", 100),
                (f"- {page} -", 30),
            ]
        ]
    )
    assert [line.text for line in kept[:4]] == ["Journal text", "xxx", "end a", "Journal text"]


def test_large_lines_on_every_page_are_left_out_and_slides_stay_whole() -> None:
    slides = [line("Agenda", 700 - 50 * n, page=page) for page in range(5) for n in range(3)]
    assert without_running_heads(slides) == slides
    lines = [one for page in range(6) for one in [*body(page), line("4TH PASS", 11, page=page, size=18)]]
    assert without_running_heads(lines) == [one for page in range(6) for one in body(page)]


def test_a_title_with_the_words_of_the_running_head_stays() -> None:
    lines = [line("On Pumps", 770, page=page, size=10 if page else 18) for page in range(5)]
    lines += [one for page in range(5) for one in body(page, 5)]
    kept = without_running_heads(sorted(lines, key=lambda line: line.page))
    assert [line.page for line in kept if line.text == "On Pumps"] == [0]


def test_the_head_of_a_short_chapter_of_a_long_book_is_left_out() -> None:
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    pages = [[*body(page), line(f"{words[page // 10]} {page}", 30, page=page)] for page in range(100)]
    heads = [[line(f"CHAPTER {words[page // 4 % 10]}", 770, page=page), *lines] for page, lines in enumerate(pages)]
    kept = without_running_heads([one for page in heads for one in page])
    assert kept == [one for page in range(100) for one in body(page)]


def test_a_page_number_among_other_lines_of_a_foot_is_left_out() -> None:
    foot = ["Some words", "and others", "which differ"]
    pages = [
        [*body(page, 16), line(f"{page + 80}", 54, page=page)]
        + [line(f"{foot[n]} {'abcdef'[page] * 3}", 42 - 12 * n, page=page) for n in range(2)]
        for page in range(6)
    ]
    kept = without_running_heads([one for page in pages for one in page])
    assert [one.text for one in kept if one.text.isdigit()] == []
    assert sum(one.text.startswith("Some words") for one in kept) == 6


def test_numbers_that_do_not_follow_the_pages_and_numbered_headings_stay() -> None:
    values = [3, 14, 15, 92, 65]
    pages = [[line(f"{value} cells {letters(page)}", 640, page=page), *body(page)] for page, value in enumerate(values)]
    pages = [[line(f"A heading {'abcde'[page]}", 660, page=page), *lines] for page, lines in enumerate(pages)]
    assert len(without_running_heads([one for page in pages for one in page])) == 5 * 10
    titles = ["Locks", "Weirs", "Gates", "Sluices", "Keepers"]
    pages = [[line(f"{page + 1} {title}", 640, page=page), *body(page)] for page, title in enumerate(titles)]
    assert flat(pages) == without_running_heads(flat(pages))
    heads = [[line(f"{page + 1} {titles[page // 4]}", 640, page=page), *body(page)] for page in range(5)]
    assert flat(map(body, range(5))) == without_running_heads(flat(heads))


def test_a_page_with_nothing_but_its_head_loses_the_head() -> None:
    lines = [
        one
        for page in range(6)
        for one in [line(f"Journal {page}", 770, page=page), *(body(page) if page != 3 else [])]
    ]
    assert without_running_heads(lines) == [one for page in (0, 1, 2, 4, 5) for one in body(page)]


WORDS = "the text of a manuscript goes on from row to row and says nothing of weight".split()


def row(text: str, y: float, *, page: int = 0, left: float = 90, right: float = 400, text_left: float = 0) -> Line:
    return Line(text, page, left, right, y, 10, is_bold=False, text_left=text_left)


def text_lines(page: int = 0) -> list[Line]:
    return [row(f"{word} {word}", 700 - 12 * number, page=page) for number, word in enumerate(WORDS)]


def numbers(page: int = 0, *, first: int = 1, right: float = 60) -> list[Line]:
    """Line numbers, aligned at the right."""
    return [
        row(str(value), 700 - 12 * number, page=page, left=right - 5 * len(str(value)), right=right)
        for number, value in enumerate(range(first, first + len(WORDS)))
    ]


@pytest.mark.parametrize("right", [60, 440], ids=["left margin", "right margin"])
@pytest.mark.parametrize("first", [1, 96, 991])
def test_numbers_beside_the_lines_are_left_out(right: float, first: int) -> None:
    pages = [[*text_lines(page), *numbers(page, first=first, right=right)] for page in range(2)]
    assert without_line_numbers([one for page in pages for one in page]) == [*text_lines(0), *text_lines(1)]


def test_every_fifth_line_may_be_numbered_and_marks_stand_between() -> None:
    lines = [row(f"line {letter}", 700 - 12 * number) for number, letter in enumerate("abcdefghijklmnopqrstuvwx", 1)]
    fifths = [row(f"{value}", 700 - 12 * value, left=60 - 5 * len(str(value)), right=60) for value in (5, 10, 15, 20)]
    assert without_line_numbers([*lines, *fifths]) == lines
    marks = [row("S32", 40, left=45, right=60), row("R33", 28, left=45, right=60)]
    assert without_line_numbers([*text_lines(), *numbers(), *marks]) == text_lines()


def test_numbers_before_the_text_of_their_line_are_cut_off() -> None:
    lines = [
        row(f"{number} {word}", 700 - 12 * number, left=60 - 5 * len(str(number)), text_left=90)
        for number, word in enumerate(WORDS, start=1)
    ]
    kept = without_line_numbers(lines)
    assert [one.text for one in kept] == WORDS
    assert {one.left for one in kept} == {90}


def test_numbers_in_tables_headings_and_sentences_stay() -> None:
    table = [row(f"{value}", 500 - 12 * value, left=150, right=155) for value in range(1, 10)]
    assert without_line_numbers([*text_lines(), *table]) == [*text_lines(), *table]
    scores = [row(str(value), 700 - 12 * n, left=50, right=60) for n, value in enumerate([31, 17, 42, 42, 18, 95, 60])]
    assert without_line_numbers([*text_lines(), *scores]) == [*text_lines(), *scores]
    headings = [row(f"{number} Heading", 730 - 100 * number, text_left=100) for number in range(1, 8)]
    assert without_line_numbers([*text_lines(), *headings]) == [*text_lines(), *headings]
    lines = [row(f"in the year {year}", 700 - 12 * n, right=400) for n, year in enumerate(range(1990, 2000))]
    assert without_line_numbers(lines) == lines


def test_a_stamp_of_electronic_filing_is_left_out_wherever_it_stands() -> None:
    stamps = [
        "Case: 20-15 Document: 0011 Page: 1 Date Filed: 12/22/2020 Entry ID: 63",
        "Case 17-35, Document 1-1, Page1 of 2",
    ]
    prose = ["Case 17-35 is no stamp.", "The document was filed on page 1"]
    lines = [line(text, 700 - 12 * row) for row, text in enumerate([prose[0], stamps[0], stamps[1], prose[1]])]
    assert [one.text for one in without_running_heads(lines)] == prose


def test_parts_of_opinions_and_notes_at_the_edges_are_no_running_heads() -> None:
    parts = ["Syllabus", "Syllabus", "Opinion of the Court", "Opinion of the Court"]
    pages = [
        [
            line(f"{page + 1} OAK v. ELM" if page % 2 else f"Cite as: 1 U. S. 2 {page + 1}", 740, page=page, size=9),
            line(part, 720, page=page),
            *(line("The keeper of the lock has no right to", 690 - 12 * row, page=page) for row in range(9)),
            replace(line(f"{page + 1} See Vane.", 80, page=page, size=8), is_note=True),
        ]
        for page, part in enumerate(parts)
    ]
    shown = [one.text for one in without_running_heads([one for page in pages for one in page])]
    shown = [text for text in shown if not text.startswith("The")]
    assert shown == ["Syllabus", "1 See Vane.", "2 See Vane.", "Opinion of the Court", "3 See Vane.", "4 See Vane."]
