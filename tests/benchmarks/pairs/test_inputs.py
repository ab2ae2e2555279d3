from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.baselines.text_baselines import WordVectors
from benchmarks.pairs.inputs import (
    PADDING,
    UNKNOWN,
    Vocabulary,
    WordConfig,
    WordTable,
    count_trigrams,
    count_words,
    frequent_trigrams,
    letter_trigrams,
    make_vocabulary,
    make_word_table,
    read_words,
)
from tests.benchmarks.pairs.cases import TINY_WORDS, topical_documents
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


CORPUS = [make_document("a", "Cat cat dog dog bird"), make_document("b", "cat dog bird fish")]


def table(
    monkeypatch: pytest.MonkeyPatch, vectors: dict[str, list[float]], *, min_count: int = 1, tuned: bool = True
) -> WordTable:
    rows = {word: row for row, word in enumerate(vectors)}
    known = WordVectors(rows, np.array(list(vectors.values()), np.float32))
    monkeypatch.setattr("benchmarks.pairs.inputs.word_vectors", lambda source, texts: known)
    return make_word_table(CORPUS, WordConfig(min_count=min_count, tuned=tuned), seed=0)


VECTORS = {"cat": [1.0, 2, 3], "dog": [3.0, 4, 5], "lion": [9.0, 9, 9]}


def test_words_get_their_vectors_and_others_drawn_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    made = table(monkeypatch, VECTORS, min_count=2)
    assert dict(made.vocabulary.ids) == {"cat": 2, "dog": 3, "bird": 4}
    rows = made.embedding.weight.detach()
    assert rows[[PADDING, UNKNOWN, 2, 3]].tolist() == [[0, 0, 0], [2, 3, 4], [1, 2, 3], [3, 4, 5]]
    assert rows[4].abs().min() > 0  # drawn
    assert torch.equal(table(monkeypatch, VECTORS, min_count=2).embedding.weight, rows)


def test_word2vec_brings_words_of_a_topic_together_the_same_way_each_time() -> None:
    documents = list(topical_documents(12).values())
    config = replace(TINY_WORDS, epochs=30)
    made, again, other = (make_word_table(documents, config, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(made.embedding.weight, again.embedding.weight)
    assert not torch.equal(made.embedding.weight, other.embedding.weight)
    rows = torch.nn.functional.normalize(made.embedding.weight.detach(), dim=-1)
    a, b = ([made.vocabulary.ids[letter] for letter in letters] for letters in ("bcde", "fghi"))
    assert (rows[a] @ rows[a].T).mean() > (rows[a] @ rows[b].T).mean()


def test_vectors_are_tuned_only_if_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert table(monkeypatch, VECTORS).embedding.weight.requires_grad
    assert not table(monkeypatch, VECTORS, tuned=False).embedding.weight.requires_grad


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
