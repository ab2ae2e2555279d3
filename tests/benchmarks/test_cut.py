from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.cut import LEAD_WORDS, first_words, part_of
from tests.fakes import make_document

DOCUMENT = replace(make_document("a", [("One", "two three"), ("Four", "five six")]), pages=(0, 8, 20))


def words_by_hand(text: str, n_words: int) -> list[str]:
    return text.split()[:n_words]


@pytest.mark.parametrize("n_words", [1, 2, 3, 4, 5])
def test_the_first_words_stay_and_sections_cover_them(n_words: int) -> None:
    cut = first_words(DOCUMENT, n_words)
    assert cut.text.split() == words_by_hand(DOCUMENT.text, n_words)
    assert DOCUMENT.text.startswith(cut.text)
    assert [section.heading for section in cut.sections] == ["One", "Four"][: 1 if n_words < 4 else 2]
    assert (cut.sections[0].start, cut.sections[-1].stop) == (0, len(cut.text))
    assert cut.pages == tuple(page for page in (0, 8, 20) if page < len(cut.text))


def test_a_document_that_is_not_longer_stays_itself() -> None:
    assert first_words(DOCUMENT, 6) is DOCUMENT
    assert first_words(DOCUMENT, 100) is DOCUMENT


def test_a_part_is_the_title_the_lead_or_the_whole() -> None:
    long = replace(make_document("b", " ".join(f"w{number}" for number in range(500))), title="A short title")
    assert part_of(long, "whole") is long
    assert part_of(long, "lead").text.split() == [f"w{number}" for number in range(LEAD_WORDS)]
    title = part_of(long, "title")
    assert (title.doc_id, title.text, len(title.sections)) == ("b", "A short title", 1)
    assert part_of(replace(long, title=" "), "title").text.split() == [f"w{number}" for number in range(10)]
