"""Where terms stand: each word and each pair, in each section."""

from __future__ import annotations

import pytest

from engine.report.term_places import TermPlaces
from tests.fakes import make_document

DOCUMENT = make_document("d", [("", "The fox hunts. A quick fox. "), ("", "Two foxes hunt foxes; quick  fox hunts.")])


@pytest.mark.parametrize(
    ("term", "first", "second"),
    [
        ("fox", ["fox", "fox"], ["foxes", "foxes", "fox"]),
        ("Foxes", ["fox", "fox"], ["foxes", "foxes", "fox"]),
        ("quick fox", ["quick fox"], ["quick  fox"]),
        ("fox hunts", ["fox hunts"], ["foxes hunt", "fox hunts"]),
        ("the", [], []),
        ("dog", [], []),
        ("", [], []),
    ],
)
def test_all_places_of_a_stem_are_found_by_section(term: str, first: list[str], second: list[str]) -> None:
    places = TermPlaces(DOCUMENT, "english")
    for section, expected in enumerate((first, second)):
        assert [DOCUMENT.text[start:end] for start, end in places.spans(term, section)] == expected
    assert places.spans(term, 2) == []


def test_without_a_language_words_have_no_stem() -> None:
    places = TermPlaces(DOCUMENT, None)
    assert [DOCUMENT.text[start:end] for start, end in places.spans("fox", 1)] == ["fox"]
