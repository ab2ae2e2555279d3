from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.datasets import DatasetError
from benchmarks.pair_scorer import Pair, documents_of
from benchmarks.pairs import building
from benchmarks.pairs.building import PROTOCOLS, Negatives, Pool, Positives, Protocol, build_pairs
from benchmarks.pairs.splitting import Edge, PairSplits, Split, SplitRule, similar_by_links, undirected
from tests.benchmarks.pairs.linked_corpus import DOC_IDS, linked

RELATIONS = linked()
LINKED = {undirected(query, target) for query, targets in RELATIONS.links.items() for target in targets}
TRAIN, VALID, TEST = Split.TRAIN, Split.VALID, Split.TEST


def built(name: str, rule: SplitRule = SplitRule.DOCUMENT, *, seed: int = 0, most: int | None = None) -> PairSplits:
    protocol = replace(PROTOCOLS[name], above=0.3)  # documents with three links seldom share more of them
    ranked = (lambda doc_id, k: DOC_IDS[:60][:k]) if protocol.negatives is Negatives.LEXICAL else None
    return build_pairs(RELATIONS, protocol, rule, seed=seed, most=most, ranked=ranked).splits


def every(splits: PairSplits) -> list[Pair]:
    return [pair for split in Split for pair in splits[split]]


@pytest.mark.parametrize("rule", [SplitRule.DOCUMENT, SplitRule.PAIR])
@pytest.mark.parametrize("name", ["aan", "aan-hard", "wikipedia", "graded"])
def test_pairs_are_balanced_and_none_stands_twice(name: str, rule: SplitRule) -> None:
    splits = built(name, rule)
    for pairs in splits.values():
        assert [pair.is_match for pair in pairs] == [True, False] * (len(pairs) // 2)
        assert [pair.first for pair in pairs[::2]] == [pair.first for pair in pairs[1::2]]
    edges = Counter(undirected(pair.first, pair.second) for pair in every(splits))
    assert set(edges.values()) == {1}
    assert all(one != other for one, other in edges)


@pytest.mark.parametrize("name", ["aan", "aan-hard", "wikipedia", "graded"])
def test_splits_by_document_share_no_document(name: str) -> None:
    splits = built(name)
    named = [documents_of(splits[split]) for split in Split]
    assert all(named)
    assert len(set.union(*named)) == sum(map(len, named))
    assert all(RELATIONS.held.get(doc_id, split) is split for split in Split for doc_id in documents_of(splits[split]))


def test_training_pairs_are_those_that_may_be_learned_from() -> None:
    relations = replace(RELATIONS, trainable=frozenset(sorted(RELATIONS.trainable)[::2]))
    splits = build_pairs(relations, PROTOCOLS["aan"], SplitRule.DOCUMENT, seed=0).splits
    matches = {undirected(pair.first, pair.second) for pair in splits[TRAIN] if pair.is_match}
    assert matches < relations.trainable
    assert len(matches) > 5


def test_random_negatives_are_not_linked_and_are_documents_of_matches() -> None:
    splits = built("aan")
    for split in Split:
        matches, others = splits[split][::2], splits[split][1::2]
        assert not LINKED & {undirected(pair.first, pair.second) for pair in others}
        assert documents_of(others) <= documents_of(matches)
    assert {undirected(pair.first, pair.second) for pair in every(splits) if pair.is_match} <= LINKED


def test_lexical_negatives_are_near_and_not_linked() -> None:
    others = [pair for pair in every(built("aan-hard")) if not pair.is_match]
    assert {pair.second for pair in others} <= set(DOC_IDS[:60])
    assert not LINKED & {undirected(pair.first, pair.second) for pair in others}


def test_wikipedia_draws_its_mismatches_from_the_links_of_the_smaller_document() -> None:
    alike = similar_by_links(RELATIONS.links, above=0.3, fewest=3)
    for pair in every(built("wikipedia", SplitRule.PAIR)):
        if pair.is_match:
            assert (pair.first, pair.second) in alike
        else:
            assert pair.second in RELATIONS.links[pair.first]
            assert undirected(pair.first, pair.second) not in alike


def test_graded_matches_are_strong_links_and_mismatches_weaker_ones() -> None:
    for pair in every(built("graded")):
        assert RELATIONS.links[pair.first][pair.second] == (2 if pair.is_match else 1)


def test_a_split_over_pairs_is_eight_to_one_to_one() -> None:
    splits = built("aan", SplitRule.PAIR)
    n_edges = len(LINKED)
    assert [len(splits[split]) // 2 for split in (TEST, VALID)] == [n_edges // 10, n_edges // 10]
    assert n_edges - 10 <= sum(map(len, splits.values())) // 2 <= n_edges
    assert documents_of(splits[TEST]) & documents_of(splits[TRAIN])


def test_the_seed_decides_what_is_drawn() -> None:
    assert built("aan", seed=1) == built("aan", seed=1) != built("aan", seed=2)
    few = built("aan", most=5)
    assert [len(few[split]) for split in Split] == [10, 10, 10]


def test_matches_without_a_mismatch_are_counted() -> None:
    protocol = PROTOCOLS["aan-hard"]
    few = build_pairs(RELATIONS, protocol, SplitRule.PAIR, seed=0, ranked=lambda doc_id, k: DOC_IDS[:5][:k])
    whole = build_pairs(RELATIONS, protocol, SplitRule.PAIR, seed=0, ranked=lambda doc_id, k: DOC_IDS[:k])
    n_made = {split: len(whole.splits[split]) // 2 for split in Split}
    assert whole.n_lost == dict.fromkeys(Split, 0)
    assert {split: len(few.splits[split]) // 2 + few.n_lost[split] for split in Split} == n_made
    assert few.n_lost[TRAIN] > 0


def test_a_split_without_a_pair_is_refused() -> None:
    protocol = Protocol(Positives.ALIKE, Negatives.LINKED, above=0.99)
    with pytest.raises(DatasetError, match="no pair of test and valid is left by the protocol of positives alike, neg"):
        build_pairs(RELATIONS, protocol, SplitRule.DOCUMENT, seed=0)


N = 400
RANKED = {f"d{number}": np.random.default_rng(number).permutation(N).tolist() for number in range(N)}
EDGES = [(f"d{number}", f"d{number + 2}") for number in range(0, 380, 2)]  # even numbers are members
TAKEN = {undirected(query, f"d{number}") for query in ("d0", "d2") for number in range(0, 300, 2)}


class Ranking:
    """A ranking that records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def __call__(self, doc_id: str, k: int) -> list[str]:
        self.calls.append((doc_id, k))
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
def test_hard_negatives_are_the_nearest_members_that_are_not_taken(monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
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
    assert ranked.calls == [("d0", 200)]
    for _ in range(3):
        made.targets("d0", TAKEN)
    assert ranked.calls == [("d0", 200), ("d0", 800)]


def test_other_negatives_are_members_or_links_within_the_split() -> None:
    assert len(pool(Negatives.RANDOM).targets("d0", set())) == 191
    assert pool(Negatives.LINKED).targets("d0", set()) == ["d2"]
    assert pool(Negatives.LINKED).targets("d1", set()) == []
