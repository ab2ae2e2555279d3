"""Hits that do not repeat each other: one hit for each group, and a diverse order. Keeps all scores.

A group is the documents with one value of a metadata field, as the members of a family of patents. Its best one is
the hit, as if the others were left out.

A diverse order has hits that match new sections of the query before those that repeat them.

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

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.result import Hit, Result
from engine.scoring.parts import pair_columns
from engine.search.query import Query
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.work import step

DIVERSIFIED = 50  # ranks that are reordered
_SAME = 1e-9  # smaller differences of gains come from the order of a sum


_ID_BYTES = 100  # of a document in its group
_RANKED = 10  # documents that are looked at for each hit that is wanted, to find the groups


def ranked(searcher: Searcher, query: Query, request: Request) -> Result:
    """Search with one hit for each group and in a diverse order, as far as these are requested.

    Raises:
        QueryError: the filter does not parse.
    """
    if request.one_per is None:
        return _diversified(searcher, query, request)
    groups = _groups(searcher, query, request, request.one_per)
    found = _diversified(searcher, query, request.leaving_out(*(name for group in groups for name in group[1:])))
    others = {group[0]: tuple(group[1:]) for group in groups}
    return replace(found, hits=tuple(replace(hit, others=others.get(hit.doc_id, ())) for hit in found.hits))


def _groups(searcher: Searcher, query: Query, request: Request, field: str) -> list[list[str]]:
    """The best documents by the value of a field, each group and all of them best first; no value, no group."""
    n_hits = max(request.offset + request.k, DIVERSIFIED if request.diversify else 0)
    n_most = _RANKED * n_hits
    while True:
        positions, _ = searcher.rank(query, replace(request, k=n_most, offset=0))
        groups: dict[str, list[str]] = {}
        for document, _ in searcher.snapshot.documents(positions):
            step(_ID_BYTES)
            value = document.metadata.get(field)
            key = f"document {document.doc_id}" if value is None else json.dumps(value)
            groups.setdefault(key, []).append(document.doc_id)
        if len(groups) >= n_hits or len(positions) < n_most:
            return list(groups.values())
        n_most *= _RANKED


def _diversified(searcher: Searcher, query: Query, request: Request) -> Result:
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
