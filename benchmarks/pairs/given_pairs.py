"""Labelled pairs that somebody else made, shared out to splits: as given, over documents, or over pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.datasets import DatasetError
from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.splitting import (
    Edge,
    PairSplits,
    Split,
    SplitRule,
    assign_documents,
    cut_tenths,
    hold_out_tenths,
    split_of,
    undirected,
)


@dataclass(frozen=True)
class GivenPairs:
    """Pairs, and to which split each belongs."""

    place: str  # file or folder, for messages
    pairs: Sequence[Pair]
    splits: Sequence[Split | None]  # of each; None where nothing is said


def split_given(given: GivenPairs, rule: SplitRule, *, seed: int, most: int | None = None) -> PairSplits:
    """Share pairs out.

    By the rule DOCUMENT a tenth of the first documents is held out for test and another for
    valid, and the others are shared out by `assign_documents`: pairs of two splits go. By either rule but
    GIVEN a pair that stands there again, in this or the other order, is left out.

    Args:
        given: of any splits.
        rule: GIVEN asks for the splits that are given, the other rules leave them aside.
        seed: of the splits.
        most: matches of a split, and mismatches of it: the first ones; all by default.

    Raises:
        DatasetError: splits are asked for that are not given, or one is left without matches or without mismatches.
    """
    if rule is SplitRule.GIVEN and not all(given.splits):
        raise DatasetError(f"{given.place} has no column split; add it, or take --split document or --split pair")
    pairs = given.pairs if rule is SplitRule.GIVEN else _each_once(given.pairs)
    chosen = given.splits if rule is SplitRule.GIVEN else _splits(pairs, rule, seed)
    splits: dict[Split, list[Pair]] = {split: [] for split in Split}
    for pair, split in zip(pairs, chosen, strict=True):
        if split is not None:
            splits[split].append(pair)
    for split, own in splits.items():
        n_matches = sum(pair.is_match for pair in own)
        if n_matches in (0, len(own)):
            raise DatasetError(
                f"split {split} of {given.place} has {n_matches} matches among {len(own)} pairs by the rule {rule}; "
                "both kinds are needed: take another rule (--split), or more pairs"
            )
    return {split: _first(own, most) for split, own in splits.items()}


def _each_once(pairs: Sequence[Pair]) -> list[Pair]:
    first: dict[Edge, Pair] = {}
    for pair in pairs:
        first.setdefault(undirected(pair.first, pair.second), pair)
    return list(first.values())


def _first(pairs: Sequence[Pair], most: int | None) -> tuple[Pair, ...]:
    if most is None:
        return tuple(pairs)
    of_kind = {kind: [at for at, pair in enumerate(pairs) if pair.is_match is kind][:most] for kind in (True, False)}
    return tuple(pairs[at] for at in sorted(of_kind[True] + of_kind[False]))


def _splits(pairs: Sequence[Pair], rule: SplitRule, seed: int) -> list[Split | None]:
    """A split for each pair; None where its documents are of two."""
    if rule is SplitRule.PAIR:
        return [*cut_tenths(len(pairs), seed)]
    held = hold_out_tenths(list(dict.fromkeys(pair.first for pair in pairs)), seed)
    claims: dict[Split, list[Edge]] = defaultdict(list)
    for pair in pairs:
        claims[split_of((pair.first, pair.second), held)].append((pair.first, pair.second))
    homes = assign_documents({split: claims[split] for split in Split}, held)
    return [homes[pair.first] if homes[pair.first] is homes[pair.second] else None for pair in pairs]
