from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from benchmarks.sections.matches import Corpus, Matches, TargetTerms, place
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.query import Prepared, Query
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.snapshot import Positions
from engine.words.counts import TermTable, count_words
from engine.words.likelihood import TermStatistics, query_terms
from engine.words.segmenter import segmenter_of

QUERY = "doc007"


@pytest.fixture(params=[Scoring(), Scoring(chunk_weight=0.5, exceeding=2)], ids=["usual", "other"])
def corpus_of_index(index: Index, request: pytest.FixtureRequest) -> Corpus:
    return Corpus(index, request.param)


@pytest.fixture
def targets(index: Index) -> Positions:
    return np.delete(np.arange(index.n_documents), index.snapshot.doc_ids().index(QUERY))


@pytest.fixture
def prepared(index: Index, corpus_of_index: Corpus) -> Prepared:
    return corpus_of_index.prepare(index.stored_query(QUERY))


@pytest.fixture
def found(corpus_of_index: Corpus, prepared: Prepared, targets: Positions) -> Matches:
    return corpus_of_index.find_matches(prepared, targets)


def test_scores_are_those_of_the_search(
    index: Index, corpus_of_index: Corpus, found: Matches, targets: Positions
) -> None:
    scores = corpus_of_index.score_all(found)
    column = {name: number for number, name in enumerate(index.snapshot.doc_ids_of(targets))}
    hits = index.search(QUERY, Request(k=60, exact=True, scoring=corpus_of_index.scoring)).hits
    assert len(hits) == np.count_nonzero(scores)
    for hit in hits:
        assert scores[column[hit.doc_id]] == pytest.approx(hit.score, abs=1e-6)
        assert place(scores, column[hit.doc_id]).rank == hit.rank


def test_matches_without_some_chunks_and_terms_score_like_the_shorter_query(
    index: Index, corpus_of_index: Corpus, prepared: Prepared, found: Matches, targets: Positions
) -> None:
    query = index.stored_query(QUERY)
    kept = np.arange(len(query.vectors.chunks)) % 2 == 0
    spans = tuple(chunk for chunk, is_kept in zip(query.vectors.chunk_spans, kept, strict=True) if is_kept)
    part = replace(query.vectors, chunks=query.vectors.chunks[kept], chunk_spans=spans)
    text = query.document.text[: query.vectors.chunk_spans[1].stop]
    words = count_words(segmenter_of(corpus_of_index.language), [text])
    searcher = Searcher(index.snapshot, corpus_of_index.scoring)
    hits = searcher.search(Query(query.document, part, words), Request(k=60, without=QUERY, exact=True)).hits
    terms = corpus_of_index.target_terms(prepared, targets)
    assert terms is not None
    fewer = found.of_chunks(kept, terms[0].scores(words.words), terms[1].scores(words.pairs))
    scores = dict(zip(index.snapshot.doc_ids_of(targets), corpus_of_index.score_all(fewer), strict=True))
    assert len(hits) == sum(score > 0 for score in scores.values()) > 3
    assert all(scores[hit.doc_id] == pytest.approx(hit.score, abs=1e-6) for hit in hits)


def test_a_document_scores_the_same_outside_of_the_index(
    index: Index, corpus_of_index: Corpus, prepared: Prepared, found: Matches, targets: Positions
) -> None:
    scores = corpus_of_index.score_all(found)
    for column in (0, 20, 40):
        target = index.stored_query(index.snapshot.doc_ids_of(targets[[column]])[0])
        vectors = target.vectors
        score = corpus_of_index.score_target(prepared, vectors.chunks, target.words)
        assert score == pytest.approx(scores[column], abs=1e-6)


def test_equal_scores_share_the_middle_of_their_places() -> None:
    scores = np.array([0.5, 0.0, 0.9, 0.0, 0.0])
    assert [place(scores, column).rank for column in range(5)] == [2, 4, 1, 4, 4]


def test_a_query_without_chunks_scores_nothing(corpus_of_index: Corpus, found: Matches) -> None:
    nothing = found.of_chunks(np.zeros(len(found.best), bool), found.words, found.pairs)
    assert not corpus_of_index.score_all(nothing).any()


def test_a_term_that_the_whole_query_does_not_weigh_counts_nothing_in_a_part() -> None:
    statistics = TermStatistics(np.array([3, 5, 9], np.uint32), np.array([1, 1, 1], np.uint32), 100)
    whole = TermTable(
        np.array([3, 5], np.uint32), np.array([2, 1], np.uint16), np.array([0, 2]), np.array([3], np.uint32)
    )
    part = TermTable(
        np.array([3, 9], np.uint32), np.array([2, 1], np.uint16), np.array([0, 2]), np.array([3], np.uint32)
    )
    query = query_terms(whole, statistics)
    of_terms = TargetTerms(query, csr_array(np.array([[0.5, 0.25]])), statistics)
    weight = query_terms(part, statistics).weights[0]
    np.testing.assert_allclose(of_terms.scores(part), [0.5 * weight])
