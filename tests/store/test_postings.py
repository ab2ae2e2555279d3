"""Postings estimate what the counts in the shards say, and come back from their file as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.document import Document
from engine.errors import IndexDamaged
from engine.store.durable import Checksum
from engine.store.postings import Postings
from engine.words.counts import WordTables, count_words
from engine.words.likelihood import query_terms, scores
from engine.words.segmenter import WordSegmenter
from engine.words.statistics import collect


@pytest.fixture
def tables(corpus: list[Document]) -> WordTables:
    return count_words(WordSegmenter("english"), [document.text for document in corpus])


def built(tables: WordTables, step: int = 7) -> Postings:
    parts = [np.arange(first, min(first + step, 60)) for first in range(0, 60, step)]
    return Postings.build(np.arange(60) + 5, lambda: (tables.of(part) for part in parts), collect([tables]))


@pytest.mark.parametrize("kind", ["words", "pairs"])
def test_scores_are_those_of_the_counts_but_for_rounding(tables: WordTables, kind: str) -> None:
    statistics, postings = collect([tables]), built(tables)
    for number in (0, 31, 59):
        mine = tables.of(np.array([number]))
        terms = query_terms(getattr(mine, kind), getattr(statistics, kind))
        exact = scores(terms, getattr(tables, kind))
        found = getattr(postings, kind).scores(terms, 60)
        others = np.arange(60) != number  # a term that the query alone has is not kept
        np.testing.assert_allclose(found[others], exact[others], atol=0.01)


def test_blocks_change_nothing(tables: WordTables) -> None:
    one, other = built(tables, 60), built(tables, 11)
    for kind in ("words", "pairs"):
        for column in ("terms", "starts", "documents", "weights"):
            assert np.array_equal(getattr(getattr(one, kind), column), getattr(getattr(other, kind), column))


def test_a_term_of_one_document_is_not_kept(tables: WordTables) -> None:
    postings = built(tables)
    assert (np.diff(postings.words.starts) >= 2).all()
    assert set(postings.words.terms.tolist()) < set(tables.words.terms.tolist())


def test_postings_come_back_from_their_file(tables: WordTables, tmp_path: Path) -> None:
    postings = built(tables)
    written = postings.write(tmp_path / "p")
    opened = Postings.open(tmp_path / "p", written)
    assert opened.ids.tolist() == postings.ids.tolist()
    assert np.array_equal(opened.pairs.documents, postings.pairs.documents)
    assert abs((tmp_path / "p").stat().st_size - postings.n_bytes) < 2_000
    with pytest.raises(IndexDamaged, match="has checksum"):
        Postings.open(tmp_path / "p", Checksum(written.size_bytes, "0" * 32))


def test_an_empty_query_and_an_empty_corpus_score_nothing(tables: WordTables) -> None:
    statistics = collect([tables])
    nothing = count_words(WordSegmenter("english"), ["", ""])
    assert not built(tables).words.scores(query_terms(nothing.of(np.array([0])).words, statistics.words), 60).any()
    empty = Postings.build(np.arange(2), lambda: [nothing], statistics)
    some = query_terms(tables.of(np.array([0])).words, statistics.words)
    assert empty.words.scores(some, 2).tolist() == [0.0, 0.0]
