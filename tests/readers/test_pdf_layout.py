"""Lines of a PDF become paragraphs."""

from __future__ import annotations

from engine.readers.pdf_layout import body_size, breaks_line, joined, starts_paragraph
from engine.readers.pdf_lines import Line


def line(text: str, y: float = 700, *, page: int = 0, left: float = 72, right: float = 500, size: float = 10) -> Line:
    return Line(text, page, left, right, y, size, is_bold=False)


def starts(before: Line, after: Line) -> bool:
    return starts_paragraph(before, after, pitch=12, right_edge=500)


def test_the_body_size_has_most_characters() -> None:
    assert body_size([line("Title", size=20), line("Sub", size=20), line("a long line of body")]) == 10


def test_words_are_joined_across_lines() -> None:
    assert joined("a docu-", "ment", frozenset()) == "a document"
    assert joined("a well-", "known one", frozenset(["well-known"])) == "a well-known one"
    assert joined("the Navier-", "Stokes one", frozenset()) == "the Navier-Stokes one"
    assert joined("from 3-", "5 of them", frozenset()) == "from 3- 5 of them"
    assert joined("an end", "here", frozenset()) == "an end here"


def test_a_gap_starts_a_paragraph() -> None:
    assert starts(line("and so", 700), line("on it goes", 680))
    assert not starts(line("and so", 700), line("on it goes", 688))


def test_a_short_line_that_ends_a_sentence_ends_a_paragraph() -> None:
    assert starts(line("it ends.", 700, right=300), line("Next", 688))
    assert not starts(line("it goes", 700, right=300), line("on", 688))
    assert not starts(line("it ends.", 700), line("Next", 688))


def test_an_indent_starts_a_paragraph() -> None:
    assert starts(line("it ends.", 700), line("Next", 688, left=84))


def test_a_sentence_runs_on_over_pages_and_columns() -> None:
    assert not starts(line("it goes", 80), line("on here", 700, page=1))
    assert not starts(line("it goes", 80), line("on here", 700, left=320))
    assert starts(line("it ends.", 80), line("Next one", 700, page=1))


def test_a_line_that_ends_early_is_broken() -> None:
    assert breaks_line(line("x = 1", right=120), 500)
    assert not breaks_line(line("x = 1-", right=120), 500)
    assert not breaks_line(line("a full line", right=480), 500)


def test_a_word_and_a_full_stop_are_no_item() -> None:
    assert not starts(line("that most would reject", 700), line("it. Yet most do not", 688))
    assert starts(line("the parts are:", 700), line("a. the first", 688))


def test_a_line_left_of_an_indented_short_one_continues_its_paragraph() -> None:
    assert not starts(line("The data from the flight", 700, left=84, right=440), line("recorders of", 688))
    assert starts(line("[1] A. Author. 2001", 700, left=84, right=300), line("[2] B. Author", 688))
