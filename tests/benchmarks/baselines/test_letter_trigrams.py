from __future__ import annotations

import math

import pytest

from benchmarks.baselines.letter_trigrams import count_trigrams, frequent_trigrams, letter_trigrams
from engine.errors import TrainingError
from tests.fakes import make_document


def test_a_word_is_cut_as_the_paper_cuts_it() -> None:
    assert letter_trigrams("good") == ["#go", "goo", "ood", "od#"]
    assert letter_trigrams("a") == ["#a#"]


def test_the_most_frequent_trigrams_are_kept() -> None:
    words = {"good": 3, "wood": 2, "a": 2, "rare": 1}
    assert frequent_trigrams(words, min_count=2, most=4) == {"od#": 0, "ood": 1, "#go": 2, "goo": 3}
    assert set(frequent_trigrams(words, min_count=2, most=99)) == {"od#", "ood", "#go", "goo", "#a#", "#wo", "woo"}


def test_a_document_is_the_logarithms_of_its_counts() -> None:
    ids = {"ood": 0, "#go": 1, "zzz": 2}
    counts = count_trigrams(make_document("d", "Good wood, good. Food"), ids)
    assert counts.ids.tolist() == [0, 1]
    assert counts.weights.tolist() == pytest.approx([math.log(5), math.log(3)])


def test_a_document_may_hold_no_known_trigram() -> None:
    assert len(count_trigrams(make_document("d", "xyz"), {"ood": 0})) == 0


def test_rare_trigrams_alone_are_refused() -> None:
    with pytest.raises(TrainingError, match=r"stands 9 times in the corpus \(1 are rarer\)"):
        frequent_trigrams({"a": 1}, min_count=9, most=10)
