from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.vectors.asking import RESCORED, Asked, answer, asks_documents, nearest, ranked
from benchmarks.vectors.collection import Collection
from benchmarks.vectors.truth import exact
from engine.search.candidates import FIRST_DEPTH
from tests.benchmarks.vectors.scan import Scan


def built(index: Scan, collection: Collection) -> Scan:
    index.build(collection.rows)
    return index


def test_rescored_similarities_are_exact_and_best_first(collection: Collection) -> None:
    mended = built(Scan(digits=1, is_rescored=True), collection)
    rows, similarities = nearest(mended, collection, collection.queries, 10)
    by_hand = np.einsum("qd,qkd->qk", collection.queries, collection.rows[rows].astype(np.float32))
    np.testing.assert_allclose(similarities, by_hand, atol=1e-6)
    assert (np.diff(similarities) <= 0).all()


def test_where_all_is_rescored_rounded_similarities_rank_exactly(collection: Collection) -> None:
    """The thresholds too are those of exact similarities then."""
    asked = Asked(built(Scan(digits=1, is_rescored=True), collection), collection)
    found = [ranked(asked, queries, 10).tolist() for queries in collection.query_documents()]
    assert collection.n_documents <= RESCORED
    assert found == exact(collection, 10).documents


def crowded(collection: Collection) -> Collection:
    """A document of 300 chunks that are all nearest to the first query chunk, before the others."""
    crowd = np.repeat(collection.queries[:1], 300, axis=0).astype(np.float16)
    rows, owners = np.concatenate([crowd, collection.rows]), np.concatenate([np.zeros(300, int), collection.owners + 1])
    return replace(
        collection, rows=rows, owners=owners, queries=collection.queries[:1], query_starts=np.zeros(1, np.int64)
    )


def test_lists_are_asked_for_again_where_one_document_fills_them(collection: Collection) -> None:
    one = crowded(collection)
    expected = exact(one, 5).documents[0]
    assert ranked(Asked(built(Scan(), one), one), one.queries, 5).tolist() == expected


def test_answers_tell_how_deep_documents_asked(collection: Collection) -> None:
    assert answer(built(Scan(), collection), collection, 5).deepest == FIRST_DEPTH == 128
    one = crowded(collection)
    assert answer(built(Scan(), one), one, 5).deepest == 512


def test_a_graph_that_is_set_to_a_narrow_search_is_not_asked_with_documents(collection: Collection) -> None:
    narrow, wide = built(Scan(search_width=64), collection), built(Scan(search_width=128), collection)
    assert not asks_documents(narrow) and asks_documents(wide) and asks_documents(Scan())
    answers = answer(narrow, collection, 5)
    assert (answers.documents, answers.deepest, answers.chunks.shape) == (None, 0, (24, 5))


def test_lists_that_could_not_be_filled_end_in_nothing(collection: Collection) -> None:
    few = built(Scan(slice(0, 357)), collection)  # of 360
    assert (answer(few, collection, 5).chunks == -1).sum(axis=1).tolist() == [2] * 24
