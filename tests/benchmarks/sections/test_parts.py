from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.sections.parts import ChunkTerms, OrderKind, Parts, Side, parts_of, removal_orders
from engine.index import Index
from engine.scoring.parts import Breakdown, TermPart
from engine.search.query import Query, pool_long
from engine.search.request import Request
from engine.text.segmentation import Chunk
from engine.views import Hit
from engine.words.counts import count_words
from engine.words.places import PAIR
from engine.words.segmenter import segmenter_of
from tests.benchmarks.sections.corpora import explanation
from tests.fakes import make_document


@pytest.fixture
def query(index: Index) -> Query:
    return index.stored_query("doc007")


@pytest.fixture
def hit(index: Index) -> Hit:
    return index.search("doc007", Request(k=1, exact=True)).hits[0]


@pytest.fixture
def target(index: Index, hit: Hit) -> Query:
    return index.stored_query(hit.doc_id)


@pytest.mark.parametrize("side", Side)
def test_contributions_are_of_pairs_and_weights_of_the_model(query: Query, hit: Hit, target: Query, side: Side) -> None:
    model = explanation(query.document, query.vectors, target.document, target.vectors)
    parts = parts_of(hit.breakdown, side, query, target, "english", model)
    own = query if side is Side.QUERY else target
    assert len(parts) == len(own.vectors.chunks)
    assert parts.n_tokens.sum() == sum(chunk.n_tokens for chunk in own.vectors.chunk_spans)
    by_section = np.zeros(len(own.document.sections))
    for pair in hit.breakdown.pairs:
        by_section[pair.query_section if side is Side.QUERY else pair.target_section] += pair.contribution
    section_of = [chunk.section for chunk in own.vectors.chunk_spans]
    np.testing.assert_allclose(np.bincount(section_of, parts.contribution), by_section, atol=1e-9)
    weights = model.query_weights if side is Side.QUERY else model.target_weights
    np.testing.assert_allclose(parts.model, weights, rtol=1e-6)


def test_the_cosine_of_a_chunk_is_that_of_its_nearest_one(query: Query, hit: Hit, target: Query) -> None:
    parts = parts_of(hit.breakdown, Side.TARGET, query, target, "english")
    assert parts.model is None
    cosines = query.vectors.chunks @ target.vectors.chunks.T
    np.testing.assert_allclose(parts.cosine, cosines.max(axis=0))


def test_a_pooled_chunk_has_the_weights_of_all_that_it_stands_for(query: Query, target: Query) -> None:
    model = explanation(query.document, query.vectors, target.document, target.vectors)
    pooled = replace(query, vectors=pool_long(query.vectors, 4))
    assert len(pooled.vectors.chunks) < len(query.vectors.chunks)
    parts = parts_of(Breakdown((), (), {}), Side.QUERY, pooled, target, "english", model)
    assert parts.model is not None
    for weight, run in zip(parts.model, pooled.vectors.chunk_spans, strict=True):
        inside = [run.start <= chunk.start < run.stop for chunk in model.query_chunks]
        assert weight == pytest.approx(model.query_weights[inside].sum(), rel=1e-6)


def test_orders_begin_with_what_is_largest_and_a_model_adds_one() -> None:
    given = np.array([5, 9, 5, 5]), np.array([0.1, 0, 0.3, 0]), np.array([4, 3, 2, 1])
    parts = Parts(*given)
    orders = removal_orders(parts, 3, np.random.default_rng(0))
    assert orders[OrderKind.BREAKDOWN][0][:2].tolist() == [2, 0]
    assert orders[OrderKind.COSINE][0].tolist() == [0, 1, 2, 3]
    assert [sorted(order.tolist()) for kind in orders for order in orders[kind]] == [[0, 1, 2, 3]] * 5
    assert parts.chunks_of(np.array([1, 3])).tolist() == [False, True, False, True]
    named = removal_orders(Parts(*given, np.array([0.2, -0.1, 0.0, 0.4])), 3, np.random.default_rng(0))
    assert [order.tolist() for order in named.pop(OrderKind.MODEL)] == [[3, 0, 2, 1]]
    np.testing.assert_equal(named, orders)


def test_parts_without_a_contribution_come_last_in_random_order() -> None:
    parts = Parts(np.ones(6, np.int64), np.array([0, 0, 1.0, 0, 0, 0]), np.zeros(6))
    draws = [removal_orders(parts, 1, np.random.default_rng(seed))[OrderKind.BREAKDOWN][0] for seed in range(20)]
    assert {int(draw[0]) for draw in draws} == {2}
    assert {int(draw[1]) for draw in draws} == {0, 1, 3, 4, 5}


def test_a_term_is_spread_over_its_occurrences_and_counts_where_it_is_kept() -> None:
    document = make_document("a", "fox runs fox jumps fox")
    chunks = [Chunk(0, 0, 8, 2), Chunk(0, 9, 22, 3)]
    assert [document.text[chunk.start : chunk.stop] for chunk in chunks] == ["fox runs", "fox jumps fox"]
    segmenter = segmenter_of("english")
    terms = ChunkTerms(document, chunks, segmenter)
    found = terms.terms
    fox, runs = found.words[:2].tolist()
    _, runs_fox, fox_jumps, _ = (found.pairs.astype(np.int64) + PAIR).tolist()
    values = {"Fox": (0.3, fox), "runs": (0.1, runs), "fox jumps": (0.2, fox_jumps), "runs fox": (0.4, runs_fox)}
    parts = [TermPart(name, *value) for name, value in values.items()]
    np.testing.assert_allclose(terms.spread(parts), [0.1 + 0.1 + 0.4, 0.2 + 0.2])
    expected = count_words(segmenter, ["fox jumps fox"])
    counts = terms.counts(np.array([False, True]))
    assert counts.words.terms.tolist() == expected.words.terms.tolist()
    assert counts.words.counts.tolist() == expected.words.counts.tolist()
    assert counts.pairs.terms.tolist() == expected.pairs.terms.tolist(), "none across the end of what is kept"
