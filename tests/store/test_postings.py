"""Postings estimate the scores of the counts in shards, and are read back from their file unchanged."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from engine.errors import IndexDamaged
from engine.store.durable import Checksum
from engine.store.postings import BLOCK_DOCUMENTS, LEFT_OUT, MOST_LEFT_OUT, Postings
from engine.text.document import Document
from engine.words.counts import TermTable, WordTables, count_words
from engine.words.likelihood import ALPHA, QueryTerms, TermStatistics, collect, query_terms, scores
from engine.words.segmenter import WordSegmenter


@pytest.fixture
def tables(corpus: list[Document]) -> WordTables:
    return count_words(WordSegmenter("english"), [document.text for document in corpus])


def built(tables: WordTables, step: int = 7, block_documents: int = BLOCK_DOCUMENTS) -> Postings:
    parts = [np.arange(first, min(first + step, 60)) for first in range(0, 60, step)]
    blocks = [tables.of(part) for part in parts]
    return Postings.build(np.arange(60) + 5, lambda: blocks, collect([tables]), block_documents)


def by_hand(query: QueryTerms, table: TermTable, statistics: TermStatistics, blocks: list[int]) -> list[float]:
    """The sum of the weights that are kept, one term at a time; a block is that of each document."""
    lengths, kept = table.lengths(), []
    for row, term, count in zip(table.rows().tolist(), table.terms.tolist(), table.counts.tolist(), strict=True):
        p = float(statistics.probabilities(np.array([term], np.uint32))[0])
        kept.append((row, term, round(255 * (math.log(1 + ALPHA * count / (lengths[row] * p)) / 16) ** 0.5) ** 2))
    least, left_out = 0, 0
    for size in sorted({weight for _, _, weight in kept}):
        left_out += sum(weight for _, _, weight in kept if weight == size)
        if left_out > LEFT_OUT * sum(weight for _, _, weight in kept):
            break
        least = size
    assert least > 0
    most = round(255 * (MOST_LEFT_OUT / 16) ** 0.5) ** 2
    kept = [one for one in kept if one[2] > least or one[2] >= most]
    in_documents = Counter((blocks[row], term) for row, term, _ in kept)
    weights = dict(zip(query.terms.tolist(), query.weights.tolist(), strict=True))
    sums = [0.0] * table.n_documents
    for row, term, weight in kept:
        sums[row] += weights.get(term, 0.0) * weight * 16 / 255**2 * (in_documents[blocks[row], term] > 1)
    return sums


@pytest.mark.parametrize("kind", ["words", "pairs"])
@pytest.mark.parametrize("number", [0, 31, 59])
def test_estimates_are_the_sums_of_kept_weights(tables: WordTables, kind: str, number: int) -> None:
    statistics, mine = collect([tables]), tables.of(np.array([number]))
    words, pairs = query_terms(mine.words, statistics.words), query_terms(mine.pairs, statistics.pairs)
    found = dict(zip(("words", "pairs"), built(tables).scores(words, pairs), strict=True))[kind]
    query = words if kind == "words" else pairs
    expected = by_hand(query, getattr(tables, kind), getattr(statistics, kind), [0] * 60)
    assert np.count_nonzero(expected) > 1
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_estimates_are_never_above_exact_scores_but_for_rounding(tables: WordTables) -> None:
    statistics, mine = collect([tables]), tables.of(np.array([7]))
    query = query_terms(mine.words, statistics.words)
    found, _ = built(tables).scores(query, query_terms(mine.pairs, statistics.pairs))
    assert (found <= scores(query, tables.words) + 0.01).all()


def test_the_division_of_counts_into_parts_changes_nothing(tables: WordTables) -> None:
    one, other = built(tables, 60), built(tables, 11)
    for kind in ("words", "pairs"):
        for column in ("terms", "starts", "documents", "weights"):
            mine, theirs = (getattr(getattr(postings, kind)[0], column) for postings in (one, other))
            assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("size", [59, 30, 16])
def test_blocks_give_the_same_estimates_for_terms_that_two_of_their_documents_have(
    tables: WordTables, size: int
) -> None:
    statistics = collect([tables])
    postings = built(tables, 7, size)
    assert len(postings.words) == -(-60 // size)
    mine = tables.of(np.array([3]))
    query = query_terms(mine.words, statistics.words), query_terms(mine.pairs, statistics.pairs)
    for found, kind, terms in zip(postings.scores(*query), ("words", "pairs"), query, strict=True):
        blocks = [number // size for number in range(60)]
        expected = by_hand(terms, getattr(tables, kind), getattr(statistics, kind), blocks)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_term_of_one_document_is_not_kept(tables: WordTables) -> None:
    words = built(tables).words[0]
    assert (np.diff(words.starts.astype(np.int64)) >= 2).all()
    assert set(words.terms.tolist()) < set(tables.words.terms.tolist())


def test_postings_come_back_from_their_file(tables: WordTables, tmp_path: Path) -> None:
    postings = built(tables, 7, 25)
    written = postings.write(tmp_path / "p")
    opened = Postings.open(tmp_path / "p", written)
    assert opened.ids.tolist() == postings.ids.tolist()
    assert opened.block_documents == 25
    for mine, theirs in zip((*opened.words, *opened.pairs), (*postings.words, *postings.pairs), strict=True):
        assert np.array_equal(mine.documents, theirs.documents)
        assert np.array_equal(mine.weights, theirs.weights)
    assert abs((tmp_path / "p").stat().st_size - postings.n_bytes) < 4_000
    with pytest.raises(IndexDamaged, match="has checksum"):
        Postings.open(tmp_path / "p", Checksum(written.size_bytes, "0" * 32))


def test_an_empty_query_and_an_empty_corpus_score_nothing(tables: WordTables) -> None:
    statistics = collect([tables])
    nothing = count_words(WordSegmenter("english"), ["", ""])
    of_nothing = nothing.of(np.array([0]))
    empty_query = query_terms(of_nothing.words, statistics.words), query_terms(of_nothing.pairs, statistics.pairs)
    assert not any(found.any() for found in built(tables).scores(*empty_query))
    empty = Postings.build(np.arange(2), lambda: [nothing], statistics)
    mine = tables.of(np.array([0]))
    some = query_terms(mine.words, statistics.words), query_terms(mine.pairs, statistics.pairs)
    assert [found.tolist() for found in empty.scores(*some)] == [[0.0, 0.0], [0.0, 0.0]]
