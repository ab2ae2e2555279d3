"""Where terms stand: each word and each pair, in each section."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from engine.words.places import PAIR, QueryText
from engine.words.segmenter import segmenter_of
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
    ],
)
def test_all_places_of_a_stem_are_found_by_section(term: str, first: list[str], second: list[str]) -> None:
    places, named = QueryText(DOCUMENT, "english").places, segmenter_of("english").segment(term)
    keys = [int(key) + PAIR for key in named.pairs] or [int(key) for key in named.words] or [0]
    _, spans = places.in_order(np.array(keys[:1]))
    for section, expected in zip(DOCUMENT.sections, (first, second), strict=True):
        own = [(start, end) for start, end in spans.tolist() if section.start <= start < section.stop]
        assert [DOCUMENT.text[start:end] for start, end in own] == expected


def test_a_copy_for_another_machine_is_without_what_can_be_computed_again() -> None:
    text = QueryText(DOCUMENT, "english")
    n_bytes = len(pickle.dumps(text))
    assert sum(int(table.counts.sum()) for table in text.places.tables(None)) == 18  # 11 words, 7 pairs
    assert len(pickle.dumps(text)) == n_bytes
    assert pickle.loads(pickle.dumps(text)).terms.words.tolist() == text.terms.words.tolist()
