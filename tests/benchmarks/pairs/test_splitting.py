from __future__ import annotations

from collections import Counter

import numpy as np

from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.splitting import (
    Edge,
    Split,
    assign_documents,
    cut_tenths,
    documents_of,
    hold_out_tenths,
    pairs_checksum,
    split_of,
    undirected,
)

TRAIN, VALID, TEST = Split.TRAIN, Split.VALID, Split.TEST


def home_by_hand(doc_id: str, claims: dict[Split, list[Edge]]) -> Split:
    """The share of each split's edges that stand at the document, one edge at a time."""
    best, largest = TEST, -1.0
    for split in (TEST, VALID, TRAIN):
        share = sum((one == doc_id) + (other == doc_id) for one, other in claims[split]) / len(claims[split])
        if share > largest:
            best, largest = split, share
    return best


def test_documents_go_where_the_largest_share_of_edges_would_be_lost() -> None:
    rng = np.random.default_rng(0)
    names = [f"d{number}" for number in range(12)]
    sizes = {TRAIN: 40, VALID: 9, TEST: 7}
    drawn = {split: [rng.choice(names, 2, replace=False) for _ in range(n)] for split, n in sizes.items()}
    claims = {split: [(str(one), str(other)) for one, other in edges] for split, edges in drawn.items()}
    homes = assign_documents(claims, {"d3": VALID})
    assert homes == {name: VALID if name == "d3" else home_by_hand(name, claims) for name in homes}
    assert set(homes.values()) == set(Split)


def test_test_takes_what_others_want_as_much() -> None:
    claims: dict[Split, list[Edge]] = {TRAIN: [("a", "b")], VALID: [("a", "c")], TEST: [("a", "d")]}
    assert assign_documents(claims, {}) == {"a": TEST, "d": TEST, "c": VALID, "b": TRAIN}
    assert [split_of(edge, {"v": VALID, "t": TEST}) for edge in (("v", "t"), ("x", "v"), ("x", "y"))] == [
        TEST,
        VALID,
        TRAIN,
    ]


def test_a_tenth_is_held_out_twice() -> None:
    assert Counter(cut_tenths(57, seed=1)) == {TEST: 5, VALID: 5, TRAIN: 47}
    assert cut_tenths(57, seed=1) == cut_tenths(57, seed=1) != cut_tenths(57, seed=2)
    assert Counter(hold_out_tenths([f"d{n}" for n in range(7)], seed=0).values()) == {TEST: 1, VALID: 1}


def test_a_checksum_tells_pairs_apart() -> None:
    pair = Pair("a", "b", True)
    made = [
        {TRAIN: (pair,), VALID: (), TEST: ()},
        {TRAIN: (), VALID: (pair,), TEST: ()},
        {TRAIN: (Pair("a", "b", False),), VALID: (), TEST: ()},
        {TRAIN: (Pair("b", "a", True),), VALID: (), TEST: ()},
    ]
    assert len({pairs_checksum(splits) for splits in made}) == 4
    assert pairs_checksum(made[0]) == pairs_checksum({TEST: (), VALID: (), TRAIN: (pair,)})


def test_edges_have_no_direction() -> None:
    assert undirected("b", "a") == undirected("a", "b") == ("a", "b")
    assert documents_of([Pair("a", "b", True), Pair("b", "c", False)]) == {"a", "b", "c"}
