"""Rankings of several partitions as one. Pure functions of values.

All partitions use one reference, so their scores are comparable. Partitions hold different documents, and
their rankings do not depend on the number of documents requested; neither does the merged ranking.

Letters in shapes: R documents of the merged ranking.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from engine.search.partition import Ranked, Ranks
from engine.search.scorer import Exact, join_exact


def merged(parts: Sequence[Ranked], bases: NDArray[np.int64], n_most: int) -> Exact:
    """The best documents of all partitions: by falling score, equal ones by doc_id.

    Args:
        parts: the ranking of each partition.
        bases: the position of the first document of each partition among those of all.
        n_most: most documents to return.

    Returns:
        R documents, at most `n_most`, at their positions among those of all.
    """
    moved = [
        replace(part.exact, positions=part.exact.positions + base)
        for part, base in zip(parts, bases.tolist(), strict=True)
    ]
    if len(moved) == 1:
        return moved[0].of(slice(n_most))
    starts = np.cumsum([0, *(len(one.positions) for one in moved)]).tolist()
    lists = (
        zip((-part.exact.scores).tolist(), part.doc_ids, range(start, stop), strict=True)
        for part, start, stop in zip(parts, starts, starts[1:], strict=False)
    )
    order = [row for _, _, row in islice(heapq.merge(*lists), n_most)]
    return reduce(join_exact, moved).of(np.array(order, np.int64))


def merged_ranked(parts: Sequence[Ranked], bases: NDArray[np.int64], n_most: int) -> Ranked:
    """The ranking of `merged` with its doc_ids; the arguments are those of `merged`."""
    best = merged(parts, bases, n_most)
    if len(parts) == 1:
        return Ranked(best, parts[0].doc_ids[:n_most])
    names = {
        base + position: doc_id
        for one, base in zip(parts, bases.tolist(), strict=True)
        for position, doc_id in zip(one.exact.positions.tolist(), one.doc_ids, strict=True)
    }
    return Ranked(best, tuple(names[position] for position in best.positions.tolist()))


def merged_ranks(parts: Sequence[Ranks], bases: NDArray[np.int64], n_most: int) -> Ranks:
    """The rankings of all partitions as that of one partition; the arguments are those of `merged`."""
    return Ranks(
        merged_ranked([one.best for one in parts], bases, n_most),
        n_found=sum(one.n_found for one in parts),
        n_evident=sum(one.n_evident for one in parts),
        n_searched=sum(one.n_searched for one in parts),
        is_exact=all(one.is_exact for one in parts),
        is_complete=all(one.is_complete for one in parts),
    )
