"""Rankings of several partitions as one. Pure functions of values.

Scores of all partitions come from one reference, so they are compared as they are. Partitions hold different
documents, and their rankings do not change with the number of documents wanted; nor does the merged one.

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

from engine.search.partition import Ranked
from engine.search.scorer import Exact, join_exact


def merged(parts: Sequence[Ranked], bases: NDArray[np.int64], n_most: int) -> Exact:
    """The best documents of all partitions: by falling score, equal ones by doc_id.

    Args:
        parts: the ranking of each partition.
        bases: for each, the position of its first document among those of all.
        n_most: documents wanted.

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
