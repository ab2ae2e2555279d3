from __future__ import annotations

import numpy as np
import pytest

from benchmarks.pairs import building
from benchmarks.pairs.building import Negatives, Pool
from benchmarks.pairs.splitting import Edge, undirected

N = 400
RANKED = {f"d{number}": np.random.default_rng(number).permutation(N).tolist() for number in range(N)}
EDGES = [(f"d{number}", f"d{number + 2}") for number in range(0, 380, 2)]  # even numbers are members
TAKEN = {undirected(query, f"d{number}") for query in ("d0", "d2") for number in range(0, 300, 2)}


class Ranking:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def __call__(self, doc_id: str, k: int) -> list[str]:
        self.asked.append((doc_id, k))
        return [f"d{number}" for number in RANKED[doc_id]][:k]


def pool(kind: Negatives, ranked: Ranking | None = None) -> Pool:
    links = {"d0": {"d1": 1, "d2": 1}}
    return Pool(kind, EDGES, links=links, at_home={"d0", "d2"}, ranked=ranked)


def free_and_near_by_hand(query: str, taken: set[Edge], depth: int) -> list[str]:
    members = {doc_id for edge in EDGES for doc_id in edge}
    found = []
    for number in RANKED[query]:
        doc_id = f"d{number}"
        if doc_id in members and doc_id != query and undirected(query, doc_id) not in taken:
            found.append(doc_id)
    return found[:depth]


@pytest.mark.parametrize("depth", [5, 50, 90, 300])
def test_hard_ones_are_the_nearest_members_that_are_free(monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
    monkeypatch.setattr(building, "LEXICAL_DEPTH", depth)
    made = pool(Negatives.LEXICAL, Ranking())
    for taken in (set(), TAKEN):
        assert made.targets("d0", taken) == free_and_near_by_hand("d0", taken, depth)
    assert made.targets("d2", TAKEN) == free_and_near_by_hand("d2", TAKEN, depth)


def test_a_document_is_ranked_once_until_more_are_needed() -> None:
    ranked = Ranking()
    made = pool(Negatives.LEXICAL, ranked)
    for _ in range(3):
        made.targets("d0", set())
    assert ranked.asked == [("d0", 200)]
    for _ in range(3):
        made.targets("d0", TAKEN)
    assert ranked.asked == [("d0", 200), ("d0", 800)]


def test_others_are_members_or_links_at_home() -> None:
    assert len(pool(Negatives.RANDOM).targets("d0", set())) == 191
    assert pool(Negatives.LINKED).targets("d0", set()) == ["d2"]
    assert pool(Negatives.LINKED).targets("d1", set()) == []
