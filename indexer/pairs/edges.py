"""Searches an index with many of its own documents: best targets, and scores of given targets. Keeps no state.

Letters in shapes: N documents of the index, E directed edges from a query to a target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.search.partition import Selection
from engine.search.query import Query
from engine.search.searcher import Searcher
from engine.store.snapshot import Positions

MakeQueries = Callable[[Positions], Sequence[Query]]


@dataclass(frozen=True, slots=True)
class Edges:
    """Scores of targets for queries, all documents of one index."""

    queries: Positions  # (E,)
    targets: Positions  # (E,)
    scores: NDArray[np.float64]  # (E,)


def best_edges(
    searcher: Searcher, make: MakeQueries, sources: Positions, selection: Selection, *, top: int, least: float
) -> Edges:
    """The best targets of each of some documents, without the document itself; queries share passes over the index.

    Args:
        searcher: of the index.
        make: returns the queries of documents.
        sources: the documents to search with.
        selection: the documents that may be found.
        top: most targets of each document.
        least: lowest score of a target.
    """
    queries = list(zip(sources.tolist(), make(sources), strict=True))
    found = []
    for source, (targets, scores) in zip(sources.tolist(), searcher.tops(queries, selection, k=top), strict=True):
        kept = scores >= least
        found.append(Edges(np.full(int(kept.sum()), source), targets[kept], scores[kept]))
    return join_edges(found)


def given_edges(searcher: Searcher, make: MakeQueries, wanted: Sequence[tuple[int, Positions]]) -> Edges:
    """The scores of given targets.

    Args:
        searcher: of the index.
        make: returns the queries of documents.
        wanted: documents to search with, each with its targets.
    """
    queries = make(np.array([source for source, _ in wanted], np.int64))
    return join_edges(
        [
            Edges(np.full(len(targets), source), targets, searcher.scores_of(query, targets))
            for (source, targets), query in zip(wanted, queries, strict=True)
        ]
    )


def join_edges(parts: Sequence[Edges]) -> Edges:
    """Concatenate edges."""
    return Edges(
        np.concatenate([np.empty(0, np.int64), *(part.queries for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.targets for part in parts)]),
        np.concatenate([np.empty(0), *(part.scores for part in parts)]),
    )


def missing_reverse(edges: Edges, n_documents: int) -> list[tuple[int, Positions]]:
    """The missing reverses of edges: documents to search with, each with its targets.

    Args:
        edges: the edges that were found.
        n_documents: N.
    """
    there = edges.queries * n_documents + edges.targets
    turned = edges.targets * n_documents + edges.queries
    left = np.setdiff1d(turned, there)
    sources, counts = np.unique(left // n_documents, return_counts=True)
    ends = np.cumsum(counts)
    targets = left % n_documents
    return [
        (source, targets[start:end]) for source, start, end in zip(sources.tolist(), ends - counts, ends, strict=True)
    ]
