from __future__ import annotations

from collections import Counter

import pytest
import torch

from benchmarks.baselines.word_inputs import (
    PADDING,
    UNKNOWN,
    Vocabulary,
    count_words,
    make_vocabulary,
    pad_words,
    read_words,
)
from engine.errors import TrainingError
from tests.fakes import make_document

TEXT = "One two. Three four five!\n\nSix seven. Eight."
WORDS = Vocabulary({word: number for number, word in enumerate(("one", "two", "three", "four", "six"), start=2)})


def test_words_sentences_and_paragraphs_are_counted() -> None:
    read = read_words(make_document("d", TEXT), WORDS, 100)
    assert read.ids.tolist() == [2, 3, 4, 5, UNKNOWN, 6, UNKNOWN, UNKNOWN]
    assert read.sentences.tolist() == [2, 3, 2, 1]
    assert read.paragraphs.tolist() == [2, 2]


def test_a_section_ends_sentence_and_paragraph() -> None:
    read = read_words(make_document("d", [("", "One two"), ("", "Three. Four")]), WORDS, 100)
    assert (read.sentences.tolist(), read.paragraphs.tolist()) == ([2, 1, 1], [1, 2])


@pytest.mark.parametrize(
    ("max_words", "sentences", "paragraphs"), [(5, [2, 3], [2]), (6, [2, 3, 1], [2, 1]), (1, [1], [1])]
)
def test_only_the_first_words_are_read(max_words: int, sentences: list[int], paragraphs: list[int]) -> None:
    read = read_words(make_document("d", TEXT), WORDS, max_words)
    assert read.ids.tolist() == [2, 3, 4, 5, UNKNOWN, 6][:max_words]
    assert (read.sentences.tolist(), read.paragraphs.tolist()) == (sentences, paragraphs)


def test_a_document_without_words_is_one_unknown_word() -> None:
    read = read_words(make_document("d", " - ... "), WORDS, 10)
    assert (read.ids.tolist(), read.sentences.tolist(), read.paragraphs.tolist()) == ([UNKNOWN], [1], [1])


def test_the_vocabulary_holds_the_most_frequent_words_first() -> None:
    counts = count_words([make_document("a", "b A c. a C, b d"), make_document("b", "a e e")])
    assert counts == Counter(a=3, b=2, c=2, e=2, d=1)
    made = make_vocabulary(counts, min_count=2, max_words=3)
    assert (dict(made.ids), made.size) == ({"a": 2, "b": 3, "c": 4}, 5)


def test_a_corpus_of_rare_words_is_refused() -> None:
    with pytest.raises(TrainingError, match=r"stands in it 5 times \(2 are rarer\); lower min_count"):
        make_vocabulary(Counter(a=4, b=1), min_count=5, max_words=10)


def test_padding_is_marked() -> None:
    read = [read_words(make_document("d", text), WORDS, 10) for text in ("one two three", "x")]
    ids, mask = pad_words(read, torch.device("cpu"))
    assert ids.tolist() == [[2, 3, 4], [UNKNOWN, PADDING, PADDING]]
    assert mask.tolist() == [[True, True, True], [True, False, False]]
