"""Diverse order of hits: those that match new sections of the query before those that repeat them. Keeps all scores.

The first `DIVERSIFIED` ranks by score are reordered, whatever page is requested, so that pages join to one list.
Let c_i(t) be the contribution of section i of the query to the score of hit t, over all sections of t. After the hits
T, the next is the hit t with the largest gain

    sum_i max(0, c_i(t) - max_{u in T} c_i(u))

which is the greedy choice for the sum over sections of the best contribution of any shown hit (Nemhauser, Wolsey &
Fisher 1978: at least 1 - 1/e of the largest possible sum). Section pairs below a minimum (`min_pair`) do
not count. Equal gains are ordered by score, then by doc_id. The
first hit is the one with the largest sum over sections. Ranks beyond `DIVERSIFIED` keep the order of scores.

Letters in shapes: R hits, A sections of the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.result import Hit, Result
from engine.scoring.breakdown import pair_columns
from engine.search.query import Query
from engine.search.request import Request
from engine.search.searcher import Searcher

DIVERSIFIED = 50  # ranks that are reordered
_SAME = 1e-9  # smaller differences of gains come from the order of a sum


def ranked(searcher: Searcher, query: Query, request: Request) -> Result:
    """Search, and diversify the hits if that is requested.

    Raises:
        QueryError: the filter does not parse.
    """
    if not request.diversify or request.offset >= DIVERSIFIED:
        return searcher.search(query, request)
    stop = request.offset + request.k
    found = searcher.search(query, replace(request, k=max(stop, DIVERSIFIED), offset=0))
    hits = found.hits
    order = diverse_order(section_contributions(hits[:DIVERSIFIED], len(query.document.sections)))
    chosen = [*(hits[place] for place in order), *hits[DIVERSIFIED:]][request.offset : stop]
    return replace(found, hits=tuple(replace(hit, rank=rank) for rank, hit in enumerate(chosen, request.offset + 1)))


def section_contributions(hits: Sequence[Hit], n_sections: int) -> NDArray[np.float64]:
    """The contribution of each section of the query to each hit."""
    found = np.zeros((len(hits), n_sections))
    for row, hit in enumerate(hits):
        pairs = pair_columns(hit.breakdown.pairs)
        found[row] = np.bincount(pairs.query_sections, pairs.contributions, minlength=n_sections)
    return found


def diverse_order(contributions: NDArray[np.float64]) -> list[int]:
    """The greedy order of hits; see the docstring of the module.

    Args:
        contributions: (R, A) of hits that are ordered by score, then by doc_id.

    Returns:
        R places of hits.
    """
    left = list(range(len(contributions)))
    best = np.zeros(contributions.shape[1])
    order: list[int] = []
    while left:
        gains = np.maximum(contributions[left] - best, 0).sum(axis=1)
        place = left[int(np.argmax(gains >= gains.max() - _SAME))]
        order.append(place)
        best = np.maximum(best, contributions[place])
        left.remove(place)
    return order
