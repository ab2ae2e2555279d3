"""Pairs of a summary and a paper to learn from, of the topics that a task of CL-SciSumm does not ask about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

import numpy as np

from benchmarks.datasets import DatasetError
from benchmarks.pairs.scorer import Pair
from benchmarks.scisumm.collection import Scisumm

Drawn = Callable[[Scisumm, np.random.Generator], list[Pair]]


def of_reference(data: Scisumm, rng: np.random.Generator) -> list[Pair]:
    """Each summary with its own paper, and with one of the papers that cite it: what `reference-topic` tells apart.

    Summaries whose paper nobody cites are left out.
    """
    pairs = []
    for query_id, own in data.reference.items():
        citing = sorted(doc_id for doc_id in data.citing[query_id] if doc_id not in own)
        if citing:
            pairs.append(Pair(query_id, next(iter(own)), True))
            pairs.append(Pair(query_id, citing[int(rng.integers(len(citing)))], False))
    return pairs


def of_citing(data: Scisumm, rng: np.random.Generator) -> list[Pair]:
    """Each summary with each paper that cites its own, and as often with one that cites others: as `citing-drawn`."""
    everyone = sorted({doc_id for papers in data.citing.values() for doc_id in papers})
    pairs = []
    for query_id, citing in data.citing.items():
        others = [doc_id for doc_id in everyone if doc_id not in citing and doc_id not in data.reference[query_id]]
        for doc_id in sorted(citing) if others else []:
            pairs.append(Pair(query_id, doc_id, True))
            pairs.append(Pair(query_id, others[int(rng.integers(len(others)))], False))
    return pairs


PAIRS: Mapping[str, Drawn] = MappingProxyType({"reference-topic": of_reference, "citing-drawn": of_citing})


def learnable(pairs: list[Pair], forbidden: Collection[str], most: int) -> list[Pair]:
    """Pairs that name no document that is asked about, at most `most` of either kind, in their order.

    A pair that matches goes together with the mismatch that follows it.

    Raises:
        DatasetError: none is left.
    """
    kept = [
        (match, other)
        for match, other in zip(pairs[::2], pairs[1::2], strict=True)
        if not {match.first, match.second, other.second} & set(forbidden)
    ]
    if not kept:
        raise DatasetError(
            f"none of {len(pairs)} pairs of summaries and papers is of a topic that is not asked about; "
            "take a split with other topics"
        )
    return [pair for both in kept[:most] for pair in both]
