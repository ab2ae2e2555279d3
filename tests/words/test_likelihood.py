"""Weights of terms: likelihood, mixtures, and terms packed and inverted."""

from collections import Counter
from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.words import likelihood
from engine.words.counts import MOST_COUNT, TermTable, WordTables, count_words, counted, gather, join, pack, unpacked
from engine.words.likelihood import (
    ALPHA,
    FEWEST_QUERIES,
    QueryTerms,
    collect,
    cover_terms,
    matches,
    query_terms,
    scores,
    scores_of_many,
)
from engine.words.mixture import DividedMixture, Mixture, TermShares
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


@given(TEXTS)
def test_shares_of_terms_sum_to_the_score(texts: list[list[int]]) -> None:
    tables = table_of(texts)
    terms = query_terms(table_of(texts[-1:]).words, collect([tables]).words)
    found, shares = matches(terms, tables.words)
    summed = np.bincount(found.documents, shares, minlength=len(texts))
    np.testing.assert_allclose(np.minimum(summed, 1), scores(terms, tables.words), atol=1e-12)
    assert (np.diff(found.documents) >= 0).all()


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


_NOTHING = (np.empty(0, np.uint32), np.zeros((0, 2), np.int64))


def test_texts_are_counted_by_their_terms_up_to_the_largest_count() -> None:
    tables = count_words(WordSegmenter("english"), ["red fox red fox", ""])
    assert tables.words.counts.tolist() == [2, 2] and sorted(tables.pairs.counts.tolist()) == [1, 2]
    assert tables.words.starts.tolist() == [0, 2, 2]
    assert isinstance(tables.words, TermTable)
    table = counted([Terms(np.full(70_000, 3, np.uint32), np.zeros((0, 2), np.int64), *_NOTHING)]).words
    assert table.counts.tolist() == [65_535]


Matrix = NDArray[np.float64]


def drawn_counts(seed: int, n_terms: int, n_query: int, n_target: int) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Shares (T, A) and (T, B) with many zeros, contributions (T,), and passages (A, B) with many zeros."""
    rng = np.random.default_rng(seed)

    def shares(n_sections: int) -> Matrix:
        counts = rng.integers(0, 3, (n_terms, n_sections)) * rng.integers(1, 9, (n_terms, n_sections))
        counts[np.arange(n_terms), rng.integers(0, n_sections, n_terms)] += 1
        return np.asarray(counts / counts.sum(1, keepdims=True))

    passages = np.maximum(0, rng.uniform(-0.2, 0.1, (n_query, n_target)))
    return shares(n_query), shares(n_target), rng.uniform(0.001, 0.1, n_terms), passages


def rows(shares: Matrix) -> TermShares:
    terms, sections = np.nonzero(shares)
    return TermShares(terms, sections, shares[terms, sections])


def by_hand(query: Matrix, target: Matrix, contributions: Matrix, passages: Matrix, rounds: int) -> Matrix:
    """(T, A, B) the contribution of each term to each pair, by the equations of the module."""
    of_sections = (contributions[:, None] * query)[:, :, None]
    shares = np.repeat(target[:, None, :], query.shape[1], axis=1)
    for _ in range(rounds):
        mass = passages + (of_sections * shares).sum(0)
        weighted = target[:, None, :] * mass**2
        norms = weighted.sum(2, keepdims=True)
        shares = np.divide(weighted, norms, out=np.zeros_like(weighted), where=norms > 0)
    return np.asarray(of_sections * shares)


@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5), st.integers(0, 6))
def test_contributions_follow_the_equations(seed: int, n_terms: int, n_query: int, n_target: int, rounds: int) -> None:
    query, target, contributions, passages = drawn_counts(seed, n_terms, n_query, n_target)
    expected = by_hand(query, target, contributions, passages, rounds)
    found = Mixture(rows(query), rows(target), contributions, passages, rounds)
    np.testing.assert_allclose(found.masses, expected.sum(0), atol=1e-12)
    for i, j in np.ndindex(passages.shape):
        terms, of_pair = found.of_pair(i, j)
        np.testing.assert_allclose(np.bincount(terms, of_pair, minlength=n_terms), expected[:, i, j], atol=1e-12)


@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5))
def test_divided_sections_are_those_of_the_whole(seed: int, n_terms: int, n_query: int, n_target: int) -> None:
    query, target, contributions, passages = drawn_counts(seed, n_terms, n_query, n_target)
    found = DividedMixture(rows(query), rows(target), contributions, passages.sum(1))
    whole = Mixture(rows(query), rows(target), contributions, passages)
    np.testing.assert_allclose(found.masses, (contributions[:, None] * query).sum(0), atol=1e-12)
    for i in range(n_query):
        np.testing.assert_allclose(found.divide(i, passages[i]), whole.masses[i], atol=1e-12)
        for j in range(n_target):
            for one, other in zip(found.of_pair(i, j), whole.of_pair(i, j), strict=True):
                np.testing.assert_allclose(one, other, atol=1e-12)


def test_a_term_goes_where_the_passages_are_and_no_shared_term_has_no_mass() -> None:
    half = np.array([[0.5, 0.5]])
    passages = np.array([[0.3, 0.0], [0.0, 0.0]])
    found = Mixture(rows(half), rows(half), np.array([0.1]), passages)
    np.testing.assert_allclose(found.masses.sum(1), [0.05, 0.05])
    assert found.masses[0, 0] > 0.0475
    assert found.masses[1].tolist() == pytest.approx([0.025, 0.025])
    nothing = TermShares(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    found = Mixture(nothing, nothing, np.empty(0), np.full((2, 3), 0.1))
    assert found.masses.tolist() == np.zeros((2, 3)).tolist()
    assert [len(values) for values in found.of_pair(1, 2)] == [0, 0]


def packed_table_of(*documents: dict[int, int]) -> TermTable:
    rows = [sorted(one.items()) for one in documents]
    return TermTable(
        np.array([term for row in rows for term, _ in row], np.uint32),
        np.array([count for row in rows for _, count in row], np.uint16),
        np.cumsum([0, *map(len, rows)]).astype(np.int64),
        np.array([sum(count for _, count in row) for row in rows], np.uint32),
    )


def drawn(rng: np.random.Generator, n_documents: int) -> TermTable:
    sizes = rng.integers(0, 40, n_documents)
    return packed_table_of(
        *(dict(zip(rng.integers(0, 1 << 32, n).tolist(), rng.geometric(0.4, n).tolist(), strict=True)) for n in sizes)
    )


def assert_equal(one: TermTable, other: TermTable) -> None:
    for column in ("terms", "counts", "starts"):
        mine, theirs = getattr(one, column), getattr(other, column)
        assert mine.tolist() == theirs.tolist(), column
        assert mine.dtype == theirs.dtype


HARD = packed_table_of(
    {},
    {0: 1},
    {(1 << 32) - 1: MOST_COUNT, 1 << 24: 1, (1 << 24) - 1: 8, 0: 2},
    {},
    {(255 << 24) + low: 1 + low for low in range(20)},
    {},
)


@pytest.mark.parametrize("table", [HARD, drawn(np.random.default_rng(0), 50), packed_table_of(), packed_table_of({})])
def test_unpacking_restores_the_packed_table(table: TermTable) -> None:
    packed = pack(WordTables(table, table))
    back = unpacked(packed)
    assert_equal(back.words, table)
    assert_equal(back.pairs, table)
    assert packed.words.lengths().tolist() == table.lengths().tolist()


def test_the_lengths_of_documents_whose_titles_count_more_are_packed_too() -> None:
    plain = packed_table_of({1: 3, 2: 1}, {}, {7: 2})
    titled = replace(plain, occurrences=np.array([2, 0, 2], np.uint32))
    packed = pack(WordTables(titled, titled)).words
    assert packed.lengths().tolist() == packed.unpacked().lengths().tolist() == [2, 0, 2]
    assert packed.of(np.array([2, 0])).unpacked().lengths().tolist() == [2, 2]
    every = np.arange(3)
    both = gather([(pack(WordTables(plain, plain)), every), (pack(WordTables(titled, titled)), every)])
    assert both.words.lengths().tolist() == [4, 0, 2, 2, 0, 2]
    joined = join([WordTables(titled, titled), WordTables(plain, plain)])
    assert joined.words.lengths().tolist() == [2, 0, 2, 4, 0, 2]


@pytest.mark.parametrize("table", [HARD, drawn(np.random.default_rng(1), 50)])
def test_selected_documents_equal_those_of_the_table(table: TermTable) -> None:
    packed = pack(WordTables(table, table)).words
    n = table.n_documents
    for some in (np.arange(2, 5), np.random.default_rng(0).permutation(n)[: n // 2], np.empty(0, np.int64)):
        assert_equal(packed.of(some).unpacked(), table.of(some))
        assert_equal(packed.of(some).of(np.arange(len(some))[::-1]).unpacked(), table.of(some[::-1]))


def test_scores_are_those_of_the_table_to_the_last_digit() -> None:
    rng = np.random.default_rng(2)
    table = drawn(rng, 80)
    terms = np.unique(rng.choice(table.terms, 200))
    query = QueryTerms(terms, rng.random(len(terms)), 1000 * rng.random(len(terms)))
    packed = pack(WordTables(table, table)).words
    expected = scores(query, table)
    assert np.count_nonzero(expected) > 20
    assert scores(query, packed).tolist() == expected.tolist()


def test_a_term_takes_less_than_four_bytes() -> None:
    rng = np.random.default_rng(3)
    one = packed_table_of(*({int(term): 1 for term in rng.integers(0, 1 << 32, 800)} for _ in range(20)))
    table = join([WordTables(one, one)]).words
    packed = pack(WordTables(table, table)).words
    columns = ("lows", "middles", "highs", "counts", "starts", "count_starts")
    assert sum(getattr(packed, column).nbytes for column in columns) < 3.4 * len(table.terms)


@pytest.mark.slow
@pytest.mark.parametrize("weigh", [query_terms, cover_terms])
@pytest.mark.parametrize("is_packed", [False, True])
@given(texts=TEXTS, queries=st.lists(st.lists(st.integers(0, 15), max_size=15), min_size=8, max_size=12))
def test_scores_are_those_of_each_query_alone(
    weigh: type, is_packed: bool, texts: list[list[int]], queries: list[list[int]]
) -> None:
    tables = table_of(texts)
    statistics = collect([tables]).words
    terms = [weigh(table_of([query]).words, statistics) for query in queries]
    table = pack(tables).words if is_packed else tables.words
    expected = [scores(one, table).tolist() for one in terms]
    assert scores_of_many(terms, table).tolist() == expected
    kept = likelihood.inverted(table)
    assert kept is None or [kept.scores(one).tolist() for one in terms] == expected


def test_many_queries_look_through_the_table_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    plain = likelihood.shared_terms

    def counted(*given: object) -> object:
        passes.append(1)
        return plain(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(likelihood, "shared_terms", counted)
    tables = table_of([[1, 2, 2], [3]])
    terms = query_terms(table_of([[2, 3]]).words, collect([tables]).words)
    found = scores_of_many([terms] * FEWEST_QUERIES, tables.words)
    assert (len(passes), np.unique(found, axis=0).shape) == (1, (1, 2))
