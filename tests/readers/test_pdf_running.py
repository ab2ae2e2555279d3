"""Running heads and page numbers of a PDF are left out."""

from __future__ import annotations

from engine.readers.pdf_lines import Line
from engine.readers.pdf_running import without_running_heads


def line(text: str, y: float = 700, *, page: int = 0, size: float = 10) -> Line:
    return Line(text, page, 72, 500, y, size, is_bold=False)


def letters(number: int) -> str:
    """A number without digits."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def body(page: int, n_lines: int = 8) -> list[Line]:
    return [line(f"body {letters(1000 * n + page)}", 600 - 12 * n, page=page) for n in range(n_lines)]


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


def test_slides_of_few_lines_stay_whole() -> None:
    slides = [line("Agenda", 700 - 50 * n, page=page) for page in range(5) for n in range(3)]
    assert without_running_heads(slides) == slides


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


def test_numbers_that_do_not_follow_the_pages_stay() -> None:
    values = [3, 14, 15, 92, 65]
    pages = [[line(f"{value} cells {letters(page)}", 640, page=page), *body(page)] for page, value in enumerate(values)]
    pages = [[line(f"A heading {'abcde'[page]}", 660, page=page), *lines] for page, lines in enumerate(pages)]
    assert len(without_running_heads([one for page in pages for one in page])) == 5 * 10


def test_a_page_with_nothing_but_its_head_loses_the_head() -> None:
    lines = [
        one
        for page in range(6)
        for one in [line(f"Journal {page}", 770, page=page), *(body(page) if page != 3 else [])]
    ]
    assert without_running_heads(lines) == [one for page in (0, 1, 2, 4, 5) for one in body(page)]


def test_a_large_line_on_every_page_is_left_out() -> None:
    lines = [one for page in range(6) for one in [*body(page), line("4TH PASS", 11, page=page, size=18)]]
    assert without_running_heads(lines) == [one for page in range(6) for one in body(page)]
