"""Counts, statistics and the likelihood of terms against dictionaries and loops."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.words.counts import TermTable, WordTables, count_words, counted, join
from engine.words.likelihood import ALPHA, collect, matches, query_terms, scores
from engine.words.segmenter import Terms, WordSegmenter

TEXTS = st.lists(st.lists(st.integers(0, 12), max_size=15), min_size=1, max_size=6)


def table_of(texts: list[list[int]]) -> WordTables:
    """Documents of these terms, the same as words and as pairs; far apart, so that high bits differ too."""
    spans = np.zeros((0, 2), np.int64)
    terms = [np.array(text, np.uint32) * np.uint32(70_001) for text in texts]
    return counted([Terms(one, spans, one, spans) for one in terms])


def likelihood_by_hand(query: Counter[int], document: Counter[int], corpus: Counter[int]) -> float:
    total, length = sum(corpus.values()), sum(document.values())
    return sum(
        (1 + log(n)) * log(1 + ALPHA * document[term] * max(1, total) / (length * max(1, corpus[term])))
        for term, n in query.items()
        if document[term]
    )


@given(TEXTS, st.lists(st.integers(0, 15), max_size=15))
def test_scores_equal_the_equation(texts: list[list[int]], query: list[int]) -> None:
    tables, mine = table_of(texts), table_of([query])
    corpus = sum((Counter(text) for text in texts), Counter[int]())
    found = scores(query_terms(mine.words, collect([tables]).words), tables.words)
    own = likelihood_by_hand(Counter(query), Counter(query), corpus)
    expected = [
        min(1.0, likelihood_by_hand(Counter(query), Counter(text), corpus) / own) if own else 0 for text in texts
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow
@given(TEXTS, TEXTS)
def test_a_document_scores_the_same_in_any_table(texts: list[list[int]], others: list[list[int]]) -> None:
    tables, larger = table_of(texts), table_of([*others, *texts])
    terms = query_terms(table_of(texts[:1]).words, collect([tables]).words)
    assert scores(terms, tables.words).tolist() == scores(terms, larger.words).tolist()[len(others) :]


@given(TEXTS)
def test_shares_of_terms_sum_to_the_score(texts: list[list[int]]) -> None:
    tables = table_of(texts)
    terms = query_terms(table_of(texts[-1:]).words, collect([tables]).words)
    found = matches(terms, tables.words)
    summed = np.bincount(found.documents, found.shares, minlength=len(texts))
    np.testing.assert_allclose(np.minimum(summed, 1), scores(terms, tables.words), atol=1e-12)
    assert (np.diff(found.documents) >= 0).all()


def test_a_document_scores_one_with_itself_and_zero_with_unrelated_documents() -> None:
    tables = table_of([[1, 2, 2, 3], [4, 5]])
    terms = query_terms(table_of([[1, 2, 2, 3]]).words, collect([tables]).words)
    assert scores(terms, tables.words).tolist() == [pytest.approx(1.0), 0.0]


def test_rare_terms_weigh_more_than_frequent_ones() -> None:
    tables = table_of([[1, 2], [1, 3], [1, 4], [1, 5], [2, 9, 9, 9]])
    terms = query_terms(table_of([[1, 2]]).words, collect([tables]).words)
    by_document = scores(terms, tables.words)
    assert by_document[4] < by_document[0] and by_document[1] < by_document[0]
    assert scores(terms, table_of([[2, 7]]).words)[0] > scores(terms, table_of([[1, 7]]).words)[0]


@given(TEXTS, st.integers(1, 3))
def test_statistics_are_those_of_all_parts_together(texts: list[list[int]], step: int) -> None:
    parts = [table_of(texts[first : first + step]) for first in range(0, len(texts), step)]
    found, whole = collect(parts).words, collect([join(parts)]).words
    assert found.terms.tolist() == whole.terms.tolist() and found.counts.tolist() == whole.counts.tolist()
    counts = sum((Counter(text) for text in texts), Counter[int]())
    assert found.total == sum(counts.values())
    terms = np.arange(14, dtype=np.uint32) * np.uint32(70_001)
    expected = [max(1, counts[term]) / max(1, found.total) for term in range(14)]
    np.testing.assert_allclose(found.probabilities(terms), expected)


@given(TEXTS, st.data())
def test_rows_are_picked_in_the_order_given(texts: list[list[int]], data: st.DataObject) -> None:
    tables = table_of(texts)
    picked = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=8))
    found = tables.of(np.array(picked, np.int64)).words
    assert found.n_documents == len(picked)
    for row, number in enumerate(picked):
        stretch = slice(found.starts[row], found.starts[row + 1])
        expected = sorted(Counter(texts[number]).items())
        assert (
            list(zip((found.terms[stretch] // 70_001).tolist(), found.counts[stretch].tolist(), strict=True))
            == expected
        )
    assert found.lengths().tolist() == [float(len(texts[number])) for number in picked]


def test_counts_stop_at_the_largest_number_that_is_stored() -> None:
    table = counted([Terms(np.full(70_000, 3, np.uint32), np.zeros((0, 2), np.int64), *_NOTHING)]).words
    assert table.counts.tolist() == [65_535]


_NOTHING = (np.empty(0, np.uint32), np.zeros((0, 2), np.int64))


def test_texts_are_counted_by_their_terms() -> None:
    tables = count_words(WordSegmenter("english"), ["red fox red fox", ""])
    assert tables.words.counts.tolist() == [2, 2] and sorted(tables.pairs.counts.tolist()) == [1, 2]
    assert tables.words.starts.tolist() == [0, 2, 2]
    assert isinstance(tables.words, TermTable)
