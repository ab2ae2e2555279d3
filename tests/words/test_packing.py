"""Packed term counts equal the counts that were packed: of all documents, of some, and in scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.words.counts import MOST_COUNT, TermTable, WordTables, gather, join, pack, unpacked
from engine.words.likelihood import QueryTerms, scores


def table_of(*documents: dict[int, int]) -> TermTable:
    rows = [sorted(one.items()) for one in documents]
    return TermTable(
        np.array([term for row in rows for term, _ in row], np.uint32),
        np.array([count for row in rows for _, count in row], np.uint16),
        np.cumsum([0, *map(len, rows)]).astype(np.int64),
        np.array([sum(count for _, count in row) for row in rows], np.uint32),
    )


def drawn(rng: np.random.Generator, n_documents: int) -> TermTable:
    sizes = rng.integers(0, 40, n_documents)
    return table_of(
        *(dict(zip(rng.integers(0, 1 << 32, n).tolist(), rng.geometric(0.4, n).tolist(), strict=True)) for n in sizes)
    )


def assert_equal(one: TermTable, other: TermTable) -> None:
    for column in ("terms", "counts", "starts"):
        mine, theirs = getattr(one, column), getattr(other, column)
        assert mine.tolist() == theirs.tolist(), column
        assert mine.dtype == theirs.dtype


HARD = table_of(
    {},
    {0: 1},
    {(1 << 32) - 1: MOST_COUNT, 1 << 24: 1, (1 << 24) - 1: 8, 0: 2},
    {},
    {(255 << 24) + low: 1 + low for low in range(20)},
    {},
)


@pytest.mark.parametrize("table", [HARD, drawn(np.random.default_rng(0), 50), table_of(), table_of({})])
def test_unpacking_restores_the_packed_table(table: TermTable) -> None:
    packed = pack(WordTables(table, table))
    back = unpacked(packed)
    assert_equal(back.words, table)
    assert_equal(back.pairs, table)
    assert packed.words.lengths().tolist() == table.lengths().tolist()


def test_the_lengths_of_documents_whose_titles_count_more_are_packed_too() -> None:
    plain = table_of({1: 3, 2: 1}, {}, {7: 2})
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
    one = table_of(*({int(term): 1 for term in rng.integers(0, 1 << 32, 800)} for _ in range(20)))
    table = join([WordTables(one, one)]).words
    packed = pack(WordTables(table, table)).words
    columns = ("lows", "middles", "highs", "counts", "starts", "count_starts")
    assert sum(getattr(packed, column).nbytes for column in columns) < 3.4 * len(table.terms)
