"""Concepts: groups of keywords that occur in the same sentences, found by edge betweenness.

Letters in shapes: S sentences, K keywords, V vertices of a graph of keywords."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.edge_betweenness import Matrix, edge_betweenness

Concept: TypeAlias = tuple[int, ...]  # places of its keywords, rising
_DIGITS = 9  # decimals to which a betweenness is rounded before edges are compared


@dataclass(frozen=True, slots=True)
class Grouping:
    """The rule by which a group of keywords is one concept; sizes of the released code."""

    most: int = 6  # keywords; a larger group is always cut
    least: int = 2  # keywords; a group of at most this size is never cut
    overlap: float = 1 / 1.7  # share of a keyword's sentences above which the other end of a cut edge is copied

    def is_concept(self, n_keywords: int, betweenness: float) -> bool:
        """Whether a connected group is not cut; `betweenness` is the largest of its edges, in shortest paths."""
        if n_keywords <= self.least:
            return True
        paths = min(math.comb(n_keywords, 2), math.comb(self.most, 2))
        return n_keywords <= self.most and betweenness <= math.log2(paths) + 1


def group(occurs: NDArray[np.bool_], grouping: Grouping) -> list[Concept]:
    """Group keywords to concepts, which can overlap.

    Liu et al. (2019, ACL, arXiv:1802.07459), section 3, by the algorithm of Sayyadi & Raschid (2013, "A Graph
    Analytical Approach for Topic Detection", ACM TOIT 13(2)): keywords that occur in a
    sentence together are joined by an edge. In each connected group that is no concept yet, the edge with the most
    shortest paths is cut. Where the edge (u, v) is cut and

        p(v | u) = n(u, v) / sum_w n(u, w) > overlap

    with n the number of sentences that two keywords share, u keeps a copy of v: v can belong to several concepts.
    Among edges with equally many paths, the edge with the fewest shared sentences is cut, and among these the first. A
    copy is never copied again, which bounds the number of cuts; the released code uses a mark for this. The released
    code also stops once there is one concept for every six sentences, whatever the sizes; this code does not.

    Args:
        occurs: (S, K) whether a sentence contains a keyword.
        grouping: see `Grouping`.

    Returns:
        Concepts in rising order. Each keyword is in at least one concept; a keyword without edges is a concept.
    """
    shared = occurs.T.astype(np.int64) @ occurs  # (K, K)
    np.fill_diagonal(shared, 0)
    waiting = [_Part(np.arange(len(shared)), np.zeros(len(shared), np.bool_), shared)]
    found: set[Concept] = set()
    while waiting:
        part = waiting.pop()
        if not len(part.keywords):
            continue
        paths, reached = edge_betweenness(part.shared > 0)
        if not reached.all():
            waiting += [part.taken(reached[0]), part.taken(~reached[0])]
        elif not grouping.is_concept(len(part.keywords), float(paths.max())):
            waiting.append(part.cut(*_busiest(paths, part.shared), grouping.overlap))
        elif len(part.keywords) > 1 or not part.is_copy[0]:
            found.add(tuple(sorted(set(part.keywords.tolist()))))
    return sorted(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A graph of keywords, some of them copies."""

    keywords: NDArray[np.int64]  # (V,)
    is_copy: NDArray[np.bool_]  # (V,)
    shared: NDArray[np.int64]  # (V, V) sentences that two keywords share; 0 where there is no edge

    def taken(self, kept: NDArray[np.bool_]) -> Self:
        """The subgraph of the kept vertices."""
        return type(self)(self.keywords[kept], self.is_copy[kept], self.shared[kept][:, kept])

    def cut(self, u: int, v: int, overlap: float) -> Self:
        """The graph without the edge (u, v), and with the copies of the cut; see `group`."""
        weight = self.shared[u, v]
        copied = [
            (kept, other)
            for kept, other in ((u, v), (v, u))
            if not self.is_copy[[u, v]].any() and weight > overlap * self.shared[kept].sum()
        ]
        size = len(self.keywords)
        shared = np.zeros((size + len(copied), size + len(copied)), np.int64)
        shared[:size, :size] = self.shared
        shared[u, v] = shared[v, u] = 0
        for at, (kept, _) in enumerate(copied, start=size):
            shared[kept, at] = shared[at, kept] = weight
        added = [self.keywords[other] for _, other in copied]
        return type(self)(
            np.append(self.keywords, np.array(added, np.int64)),
            np.append(self.is_copy, np.ones(len(copied), np.bool_)),
            shared,
        )


def _busiest(paths: Matrix, shared: NDArray[np.int64]) -> tuple[int, int]:
    """The edge to cut; see `group`."""
    u, v = np.nonzero(np.triu(shared))
    first = np.lexsort((v, u, shared[u, v], -paths[u, v].round(_DIGITS)))[0]
    return int(u[first]), int(v[first])
