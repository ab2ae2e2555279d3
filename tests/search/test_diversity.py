"""Hits that do not repeat each other: the greedy order, in which only the order changes, and one hit for each group."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import engine.search.searcher as diversity_module
from engine.errors import QueryError
from engine.index import Index
from engine.search.request import Request
from engine.search.searcher import diverse_order, section_contributions
from engine.text.document import Document
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document
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


@pytest.mark.slow
def test_another_section_comes_first_and_scores_stay(index: Index, corpus: list[Document]) -> None:
    plain, diverse = (index.search("doc011", Request(k=50, diversify=is_so)) for is_so in (False, True))
    assert {hit.doc_id: hit.score for hit in diverse} == {hit.doc_id: hit.score for hit in plain}
    assert [hit.rank for hit in diverse] == list(range(1, 51))
    contributions = section_contributions(plain.hits, len(corpus[11].sections))
    assert [hit.doc_id for hit in diverse] == [plain.hits[place].doc_id for place in order_by_hand(contributions)]
    assert [hit.doc_id for hit in diverse] != [hit.doc_id for hit in plain]
    check(diverse.to_dict())
    assert diverse_order(np.array([[0.5, 0.0], [0.45, 0.0], [0.0, 0.2]])) == [0, 2, 1]


def test_pages_join_across_the_last_diverse_rank(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diversity_module, "DIVERSIFIED", 12)
    every = [(hit.rank, hit.doc_id) for hit in index.search("doc003", Request(k=25, diversify=True))]
    pages = [index.search("doc003", Request(k=5, offset=offset, diversify=True)) for offset in range(0, 25, 5)]
    assert [(hit.rank, hit.doc_id) for page in pages for hit in page] == every
    plain = [hit.doc_id for hit in index.search("doc003", Request(k=25))]
    assert {name for _, name in every[:12]} == set(plain[:12])
    assert [name for _, name in every[12:]] == plain[12:]


@pytest.mark.parametrize("n_ranked", [1, 10])
def test_the_best_of_each_group_is_a_hit_with_its_own_score(
    index: Index, n_ranked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diversity_module, "_RANKED", max(2, n_ranked))
    plain = index.search("doc003", Request(k=100))
    best: dict[object, list[str]] = {}
    for hit in plain:
        best.setdefault(hit.metadata["topic"], []).append(hit.doc_id)
    grouped = index.search("doc003", Request(k=4, one_per="topic"))
    names = [hit.doc_id for hit in grouped]
    assert len(best) > 4 and names == [group[0] for group in best.values()][:4]
    scores = {hit.doc_id: hit.score for hit in plain}
    assert [(hit.rank, hit.score) for hit in grouped] == [(at, scores[name]) for at, name in enumerate(names, 1)]
    if n_ranked > 1:
        assert all(hit.others == tuple(best[hit.metadata["topic"]][1 : len(hit.others) + 1]) for hit in grouped)
        listed = check(grouped.to_dict())["hits"][0]["others"]
        assert listed == list(grouped[0].others) and f"of the same group: {listed[0]}" in str(grouped)
    pages = [index.search("doc003", Request(k=2, offset=offset, one_per="topic")) for offset in (0, 2)]
    assert [hit.doc_id for page in pages for hit in page] == names


def test_a_document_without_the_field_is_a_hit_and_an_unknown_field_is_refused(tmp_path: Path) -> None:
    documents = [
        replace(
            make_document(f"p{number}", f"rotor pump seal{number}"),
            metadata={} if family is None else {"family": family},
        )
        for number, family in enumerate(["f1", None, "f1", None, "f2", "f1"])
    ]
    build(tmp_path / "x.lm", documents, encoder=FakeEncoder(), encode="none")
    with Index.open(tmp_path / "x.lm") as index:
        query = make_document("q", "rotor pump")
        grouped = {hit.doc_id: hit.others for hit in index.search(query, Request(one_per="family"))}
        assert grouped == {"p0": ("p2", "p5"), "p1": (), "p3": (), "p4": ()}
        with pytest.raises(QueryError, match=r"^no document has the field 'famly'; did you mean 'family'\?"):
            index.search(query, Request(one_per="famly"))
        with pytest.raises(QueryError, match="one_per family is for one document"):
            index.search_together([query], request=Request(one_per="family"))
