from __future__ import annotations

import pytest

from benchmarks.baselines.texts import Stretches, are_content, read_texts, words_of
from tests.benchmarks.baselines.small_words import texts_of
from tests.fakes import make_document


def test_words_are_lower_cased_runs_of_word_characters() -> None:
    assert words_of("Don't PANIC: x86_64, Öl!") == ["don", "t", "panic", "x86_64", "öl"]


def test_words_are_numbered_in_the_order_of_first_use() -> None:
    texts = read_texts([make_document("a", "Cat dog cat."), make_document("b", ""), make_document("c", "dog owl")])
    assert texts.doc_ids == ("a", "b", "c")
    assert texts.vocabulary == ("cat", "dog", "owl")
    assert [numbers.tolist() for numbers in texts.numbers] == [[0, 1, 0], [], [1, 2]]


def test_stop_words_digits_and_single_characters_carry_no_content() -> None:
    pytest.importorskip("gensim")
    words = ["the", "river", "x", "b2b", "would", "löss", "2020"]
    assert dict(zip(words, are_content(words).tolist(), strict=True)) == {
        **dict.fromkeys(words, False),
        "river": True,
        "löss": True,
    }


def test_a_long_text_is_given_in_stretches_and_none_of_it_is_lost() -> None:
    stretches = Stretches(texts_of(["a b c d e", "", "f g"]), longest=2)
    expected = [(0, ["a", "b"]), (0, ["c", "d"]), (0, ["e"]), (2, ["f", "g"])]
    assert list(stretches.by_row()) == expected
    assert list(stretches) == list(stretches) == [words for _, words in expected]
