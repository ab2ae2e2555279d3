"""Diversified hits: the order is the greedy one, and nothing but the order changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import engine.search.diversity as diversity_module
from engine.index import Index
from engine.search.diversity import diverse_order, section_contributions
from engine.search.request import Request
from engine.text.document import Document
from tests.strict_schema import check


def order_by_hand(contributions: NDArray[np.float64]) -> list[int]:
    """The greedy choice, by loops over hits and sections."""
    n_hits, n_sections = contributions.shape
    order: list[int] = []
    while len(order) < n_hits:
        best, of_best = -1.0, -1
        for hit in range(n_hits):
            if hit in order:
                continue
            gain = 0.0
            for section in range(n_sections):
                there = max((contributions[one, section] for one in order), default=0.0)
                gain += max(0.0, contributions[hit, section] - there)
            if gain > best + 1e-9:
                best, of_best = gain, hit
        order.append(of_best)
    return order


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 6))
def test_the_order_is_the_greedy_one(seed: int, n_hits: int, n_sections: int) -> None:
    contributions = np.random.default_rng(seed).integers(0, 4, (n_hits, n_sections)) / 8
    assert diverse_order(contributions) == order_by_hand(contributions)


def test_a_hit_of_another_section_comes_before_a_repeated_one() -> None:
    assert diverse_order(np.array([[0.5, 0.0], [0.45, 0.0], [0.0, 0.2]])) == [0, 2, 1]


@pytest.mark.slow
def test_scores_and_parts_stay(index: Index, corpus: list[Document]) -> None:
    plain, diverse = (index.search("doc003", Request(k=50, diversify=is_so)) for is_so in (False, True))
    assert {hit.doc_id: hit.score for hit in diverse} == {hit.doc_id: hit.score for hit in plain}
    assert [hit.rank for hit in diverse] == list(range(1, 51))
    contributions = section_contributions(plain.hits, len(corpus[3].sections))
    assert [hit.doc_id for hit in diverse] == [plain.hits[place].doc_id for place in order_by_hand(contributions)]
    assert [hit.doc_id for hit in diverse] != [hit.doc_id for hit in plain]
    check(diverse.to_dict())


def test_pages_join_across_the_last_diverse_rank(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diversity_module, "DIVERSIFIED", 12)
    every = [(hit.rank, hit.doc_id) for hit in index.search("doc003", Request(k=25, diversify=True))]
    pages = [index.search("doc003", Request(k=5, offset=offset, diversify=True)) for offset in range(0, 25, 5)]
    assert [(hit.rank, hit.doc_id) for page in pages for hit in page] == every
    plain = [hit.doc_id for hit in index.search("doc003", Request(k=25))]
    assert {name for _, name in every[:12]} == set(plain[:12])
    assert [name for _, name in every[12:]] == plain[12:]
