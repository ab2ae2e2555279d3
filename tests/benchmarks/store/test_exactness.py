"""The checker itself: it agrees with the search on a sound index, and counts rankings that differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.store.exactness import DoubleLoop, Tally, _compare, examine
from engine import Index, Scoring


@pytest.fixture
def index(built_folder: Path) -> Iterator[Index]:
    with Index.open(built_folder) as opened:
        yield opened


def test_certified_rankings_of_a_small_index_are_the_true_ones(index: Index) -> None:
    tally = examine(index, index.snapshot.doc_ids()[:10], n_truth=8)
    assert (tally.n_queries, tally.n_certified, tally.n_ranked_otherwise) == (10, 8, 0)
    assert tally.largest_score_error < 1e-6 and tally.largest_sum_error < 1e-6


def test_another_constant_of_the_score_gives_another_truth(index: Index) -> None:
    doc_id = index.snapshot.doc_ids()[0]
    top = index.search_id(doc_id, k=1).hits[0]
    assert DoubleLoop(index, Scoring()).scores(doc_id)[top.doc_id] == pytest.approx(top.score, abs=1e-6)
    assert DoubleLoop(index, Scoring(exceeding=2)).scores(doc_id)[top.doc_id] != pytest.approx(top.score, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scoring",
    [Scoring(document_weight=0.5), Scoring(0, 0, 1, 0), Scoring(0, 0, 0, 1), Scoring(exceeding=20, power=1, root=1)],
    ids=["document", "words", "pairs", "few documents"],
)
def test_each_component_is_that_of_the_search(index: Index, scoring: Scoring) -> None:
    truth = DoubleLoop(index, scoring)
    for doc_id in index.snapshot.doc_ids()[:5]:
        expected = truth.scores(doc_id)
        for hit in index.search_id(doc_id, k=59, scoring=scoring).hits:
            assert expected[hit.doc_id] == pytest.approx(hit.score, abs=1e-6)


def test_missing_and_swapped_hits_are_counted() -> None:
    truth = {"a": 0.5, "b": 0.3, "c": 0.0}
    tally = Tally()
    _compare(tally, [("a", 0.5), ("b", 0.3)], truth)
    assert tally.n_ranked_otherwise == 0
    _compare(tally, [("b", 0.3), ("a", 0.5)], truth)
    _compare(tally, [("a", 0.5)], truth)
    assert (tally.n_certified, tally.n_ranked_otherwise) == (3, 2)
