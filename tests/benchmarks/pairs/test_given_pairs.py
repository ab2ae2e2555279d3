from __future__ import annotations

import numpy as np
import pytest

from benchmarks.datasets import DatasetError
from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.sources import GivenPairs, split_given
from benchmarks.pairs.splitting import Split, SplitRule, documents_of

TRAIN, VALID, TEST = Split.TRAIN, Split.VALID, Split.TEST
SIX = [
    *(Pair("a", "b", True), Pair("a", "c", False)),
    *(Pair("d", "e", True), Pair("d", "f", False)),
    *(Pair("g", "h", True), Pair("h", "i", False)),
]
GIVEN = GivenPairs("pairs.tsv", SIX, [TRAIN, TRAIN, VALID, VALID, TEST, TEST])


def many() -> GivenPairs:
    rng = np.random.default_rng(0)
    edges = sorted({tuple(sorted(rng.choice(40, 2, replace=False).tolist())) for _ in range(400)})
    pairs = [Pair(f"d{one}", f"d{other}", at % 2 == 1) for at, (one, other) in enumerate(edges)]
    return GivenPairs("many.tsv", pairs, [None] * len(pairs))


def test_splits_are_taken_as_given() -> None:
    splits = split_given(GIVEN, SplitRule.GIVEN, seed=0)
    assert splits == {TRAIN: tuple(SIX[:2]), VALID: tuple(SIX[2:4]), TEST: tuple(SIX[4:])}


def test_splits_are_made_over_documents_or_pairs() -> None:
    by_document, by_pair = (split_given(many(), rule, seed=1) for rule in (SplitRule.DOCUMENT, SplitRule.PAIR))
    named = [documents_of(by_document[split]) for split in Split]
    assert len(set.union(*named)) == sum(map(len, named))
    n_pairs = sum(map(len, by_pair.values()))
    assert [len(by_pair[split]) for split in (TEST, VALID)] == [n_pairs // 10, n_pairs // 10]
    assert documents_of(by_pair[TEST]) <= documents_of(by_pair[TRAIN])


def test_the_first_of_either_kind_are_kept() -> None:
    whole, few = (split_given(many(), SplitRule.PAIR, seed=1, most=most) for most in (None, 2))
    for split in Split:
        assert [pair.is_match for pair in few[split]].count(True) == 2
        matches = [pair for pair in whole[split] if pair.is_match]
        assert [pair for pair in few[split] if pair.is_match] == matches[:2]


def test_a_pair_that_stands_twice_is_in_one_split_unless_it_is_given_so() -> None:
    twice = many()
    turned = [Pair(pair.second, pair.first, pair.is_match) for pair in twice.pairs]
    doubled = GivenPairs("many.tsv", [*twice.pairs, *turned], [None] * (2 * len(turned)))
    assert split_given(doubled, SplitRule.PAIR, seed=1) == split_given(twice, SplitRule.PAIR, seed=1)
    again = GivenPairs("pairs.tsv", [*SIX, SIX[0]], [*GIVEN.splits, TEST])
    assert split_given(again, SplitRule.GIVEN, seed=0)[TEST] == (*SIX[4:], SIX[0])


def test_what_cannot_be_split_is_told() -> None:
    with pytest.raises(DatasetError, match=r"many.tsv has no column split; add it, or take --split document or --spl"):
        split_given(many(), SplitRule.GIVEN, seed=0)
    one_kind = GivenPairs("pairs.tsv", SIX[:5], GIVEN.splits[:5])
    with pytest.raises(DatasetError, match=r"split test of pairs.tsv has 1 matches among 1 pairs by the rule given"):
        split_given(one_kind, SplitRule.GIVEN, seed=0)
