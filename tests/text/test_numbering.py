"""Numbers of headings, and lines that look like numbered headings."""

from __future__ import annotations

import pytest

from engine.text.numbering import Kind, could_be_title, is_contents_line, parse, roman_value


@pytest.mark.parametrize(
    ("line", "kind", "number", "level", "title"),
    [
        ("1. Introduction", Kind.DECIMAL, (1,), 1, "Introduction"), ("2.3 Foo", Kind.DECIMAL, (2, 3), 2, "Foo"),
        ("2.3.  foo-option", Kind.DECIMAL, (2, 3), 2, "foo-option"),
        ("0. Definitions.", Kind.DECIMAL, (0,), 1, "Definitions."), ("A.1 Bar", Kind.LETTER, (1, 1), 2, "Bar"),
        ("IV. METHODS", Kind.ROMAN, (4,), 1, "METHODS"), ("Section 3", Kind.NAMED, (), 3, ""),
        ("Article 5: Scope", Kind.NAMED, (), 3, "Scope"), ("§ 4", Kind.NAMED, (), 3, ""),
        ("CHAPTER IV", Kind.NAMED, (), 2, ""), ("Appendix A. Proofs", Kind.NAMED, (), 1, "Proofs"),
    ],
)  # fmt: skip
def test_numbers_are_read(line: str, kind: Kind, number: tuple[int, ...], level: int, title: str) -> None:
    numbered = parse(line)
    assert numbered is not None
    assert (numbered.kind, numbered.number, numbered.level, numbered.title) == (kind, number, level, title)


@pytest.mark.parametrize(
    "line",
    [
        "1. Introduction ........ 3", "1. Introduction . . . . 3", "2.1 Methods    17", "3 apples were eaten",
        "1. Wash the car, then dry it.", "Section 3 of the Act provides otherwise",
        "Section 3 This is how it goes on", "Article I wrote about this", "1999 Smith", "12. Name      Value",
        "1. First the pump is started. Then the valve is opened", "4.2",
    ],
)  # fmt: skip
def test_other_lines_are_not_headings(line: str) -> None:
    assert parse(line) is None


@pytest.mark.parametrize(("digits", "value"), [("IV", 4), ("xl", 40), ("XCIX", 99), ("cxli", 141)])
def test_roman_numbers_have_their_values(digits: str, value: int) -> None:
    assert roman_value(digits) == value


def test_sentences_are_no_titles_and_contents_have_page_numbers() -> None:
    titles = ["Results and Discussion", "We show results.", "1234 5678"]
    assert [*map(could_be_title, titles)] == [True, False, False]
    assert [*map(is_contents_line, ["Methods ..... 12", "Methods\t12", "Methods of 1912"])] == [True, True, False]
