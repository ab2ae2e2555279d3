"""Which pairs are learned from, chosen by and judged by: splits that share no document, or no pair. Nothing is drawn.

An edge is a pair of documents without a label.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from benchmarks.pairs.scorer import Pair

Edge: TypeAlias = tuple[str, str]  # doc_ids


class Split(StrEnum):
    """What the pairs of a split are for; the order is that in which splits take a pair that several name."""

    TEST = "test"
    VALID = "valid"
    TRAIN = "train"


class SplitRule(StrEnum):
    """What two splits may share."""

    DOCUMENT = "document"  # nothing: a document stands in the pairs of one split alone
    PAIR = "pair"  # documents: 8:1:1 over pairs, as published
    GIVEN = "given"  # whatever they share in the file of pairs


PairSplits: TypeAlias = Mapping[Split, tuple[Pair, ...]]


def undirected(one: str, other: str) -> Edge:
    """The same edge for both orders of two documents."""
    return (one, other) if one < other else (other, one)


def split_of(edge: Edge, held: Mapping[str, Split]) -> Split:
    """That of test or valid which holds one of the documents, test before valid; else train."""
    holders = {held.get(doc_id) for doc_id in edge}
    return next((split for split in (Split.TEST, Split.VALID) if split in holders), Split.TRAIN)


def assign_documents(claims: Mapping[Split, Sequence[Edge]], held: Mapping[str, Split]) -> dict[str, Split]:
    """Give each document to one split, so that all of them keep pairs.

    A document that is held out goes where it is held. Any other goes to the split that
    would lose the largest share of its edges without it, as most targets are named by
    queries of all splits: with n_s(d) the edges of split s at document d, n_s all of them,

        split(d) = argmax_s n_s(d) / n_s

    and test before valid before train where they are equal.

    Args:
        claims: the edges that each split would have if documents could be shared.
        held: documents of test and valid whose split is known.

    Returns:
        The split of every document of `claims`; an edge between two splits belongs to none.
    """
    counts = {split: Counter(doc_id for edge in claims[split] for doc_id in edge) for split in Split}
    every = dict.fromkeys(doc_id for split in Split for edge in claims[split] for doc_id in edge)
    return {
        doc_id: held.get(doc_id) or max(Split, key=lambda split: counts[split][doc_id] / max(len(claims[split]), 1))
        for doc_id in every
    }


def hold_out_tenths(doc_ids: Sequence[str], seed: int) -> dict[str, Split]:
    """Hold a tenth of some documents out for test and another for valid, at random; at least one each."""
    order = np.random.default_rng(seed).permutation(len(doc_ids))
    tenth = max(1, len(doc_ids) // 10)
    named = ((Split.TEST, order[:tenth]), (Split.VALID, order[tenth : 2 * tenth]))
    return {doc_ids[int(at)]: split for split, positions in named for at in positions}


def cut_tenths(n: int, seed: int) -> list[Split]:
    """A split for each of n things: a tenth at random for test, another for valid, the rest for train."""
    order = np.random.default_rng(seed).permutation(n)
    tenth = max(1, n // 10)
    splits = [Split.TRAIN] * n
    for split, positions in ((Split.TEST, order[:tenth]), (Split.VALID, order[tenth : 2 * tenth])):
        for at in positions:
            splits[int(at)] = split
    return splits


def documents_of(pairs: Sequence[Pair]) -> set[str]:
    """The documents that pairs name."""
    return {doc_id for pair in pairs for doc_id in (pair.first, pair.second)}


def pairs_checksum(splits: PairSplits) -> str:
    """First 12 hex digits of the SHA-256 over all pairs in their order; records of equal ones can be compared."""
    digest = hashlib.sha256()
    for split in Split:
        for pair in splits[split]:
            digest.update(f"{split}\t{pair.first}\t{pair.second}\t{pair.is_match:d}\n".encode())
    return digest.hexdigest()[:12]
