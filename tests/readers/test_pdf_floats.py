"""Captions and footnotes of a PDF are moved behind the sentence that they interrupt."""

from collections.abc import Sequence

from engine.readers.pdf import floats_last
from engine.readers.pdf_lines import Line


def line(text: str, *, right: float = 500, size: float = 10) -> Line:
    return Line(text, 0, 72, right, 700, size, is_bold=False)


def ordered(lines: Sequence[Line], *, headings: frozenset[int] = frozenset()) -> list[list[int]]:
    """The order of paragraphs of one line each."""
    paragraphs = [range(number, number + 1) for number in range(len(lines))]
    return floats_last(paragraphs, lines, [500.0] * len(lines), 10, headings)


OPEN, REST = line("improve the ranking of results (e.g., Xiong et al.,"), line("and others show that. They end.")
CAPTION, NOTE, LABEL = line("Figure 1: Part of the graph."), line("1 A footnote.", size=8), line("Author", right=110)


def test_a_sentence_is_completed_before_figures_and_notes() -> None:
    assert ordered([OPEN, LABEL, CAPTION, REST]) == [[0, 3], [1], [2]]
    assert ordered([OPEN, NOTE, REST]) == [[0, 2], [1]]
    middle = line("and the next full line of it which has no")
    assert ordered([OPEN, NOTE, middle, CAPTION, REST]) == [[0, 2, 4], [1], [3]]


def test_lines_that_end_a_sentence_or_are_short_or_small_are_complete() -> None:
    for first in (line("The sentence ends here, in full."), line("a verse and", right=200), line("a note and", size=8)):
        assert ordered([first, CAPTION, REST]) == [[0], [1], [2]]


def test_a_short_line_goes_on_behind_small_notes_at_the_foot_of_its_page() -> None:
    first, rest = line("the 24 men who moved the", right=200), Line("forklift out.", 1, 72, 500, 700, 10, is_bold=False)
    for size, order in ((8, [[0, 2], [1]]), (10, [[0], [1], [2]])):
        assert ordered([first, Line("1 See Beta.", 0, 72, 500, 60, size, is_bold=False), rest]) == order


def test_nothing_moves_across_headings_paragraphs_or_long_texts() -> None:
    assert ordered([OPEN, line("2 Methods"), REST], headings=frozenset([1])) == [[0], [1], [2]]
    assert ordered([OPEN, line("Another paragraph of the text."), REST]) == [[0], [1], [2]]
    long = line("and so on " * 900 + "and")
    assert ordered([long, long, long]) == [[0], [1], [2]]


def test_a_capital_or_a_formula_does_not_continue_a_sentence() -> None:
    assert ordered([OPEN, CAPTION, line("New sentence.")]) == [[0], [1], [2]]
    assert ordered([OPEN, CAPTION, line("f(x) = 0")]) == [[0], [1], [2]]
