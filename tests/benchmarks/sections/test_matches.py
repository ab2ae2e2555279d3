from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.exactness import read_vectors, true_scores
from benchmarks.sections.matches import Matches, find_matches, place, score_all
from engine.encoders.encoder import EncodedDocument
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search import Query, Searcher

QUERY = "doc007"
SCORING = Scoring()


@pytest.fixture
def names(index: Index) -> list[str]:
    return [name for name in index.snapshot.doc_ids() if name != QUERY]


def matches_of(index: Index, vectors: EncodedDocument) -> Matches:
    row = index.snapshot.doc_ids().index(QUERY)
    return find_matches(index.snapshot, vectors, np.delete(np.arange(index.n_documents), row))


def test_scores_are_those_of_the_search(index: Index, names: list[str]) -> None:
    scores = dict(zip(names, score_all(matches_of(index, index.stored_query(QUERY).vectors), SCORING), strict=True))
    hits = index.search_id(QUERY, k=60, exact=True).hits
    assert {hit.doc_id for hit in hits} == {name for name, score in scores.items() if score > 0}
    assert all(scores[hit.doc_id] == pytest.approx(hit.score, abs=1e-6) for hit in hits)
    ranks = [place(np.array(list(scores.values())), names.index(hit.doc_id)).rank for hit in hits]
    assert ranks == list(range(1, len(hits) + 1))


def test_a_query_without_some_chunks_is_that_query_asked(index: Index, names: list[str]) -> None:
    query = index.stored_query(QUERY)
    kept = np.arange(len(query.vectors.chunks)) % 2 == 0
    spans = tuple(chunk for chunk, is_kept in zip(query.vectors.chunk_spans, kept, strict=True) if is_kept)
    part = replace(query.vectors, chunks=query.vectors.chunks[kept], chunk_spans=spans)
    found = Searcher(index.snapshot).search(Query(query.document, part), k=60, without=QUERY, exact=True)
    scores = dict(zip(names, score_all(matches_of(index, query.vectors).of_chunks(kept), SCORING), strict=True))
    assert len(found.hits) == sum(score > 0 for score in scores.values())
    assert all(scores[hit.doc_id] == pytest.approx(hit.score, abs=1e-6) for hit in found.hits)


def test_a_changed_target_moves_the_crowd_as_in_an_index_that_holds_it(index: Index, names: list[str]) -> None:
    vectors = read_vectors(index)
    changed = replace(vectors[names[3]], chunks=vectors[names[3]].chunks[:1])
    best = (vectors[QUERY].chunks @ changed.chunks.T).max(axis=1)
    whole = float(changed.document @ vectors[QUERY].document)
    scores = score_all(matches_of(index, vectors[QUERY]).with_target(3, best, whole), SCORING)
    expected = true_scores({**vectors, names[3]: changed}, QUERY, SCORING)
    np.testing.assert_allclose(scores, [expected[name] for name in names], atol=1e-6)


def test_equal_scores_share_the_middle_of_their_places() -> None:
    scores = np.array([0.5, 0.0, 0.9, 0.0, 0.0])
    assert [place(scores, column).rank for column in range(5)] == [2, 4, 1, 4, 4]


def test_a_query_without_chunks_scores_nothing(index: Index) -> None:
    matches = matches_of(index, index.stored_query(QUERY).vectors)
    assert not score_all(matches.of_chunks(np.zeros(len(matches.best), bool)), SCORING).any()
