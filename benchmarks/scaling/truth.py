"""Exact lists of many queries over a collection that grows block by block, and rankings by them, without an index.

An index has this of its own: `engine.search.Searcher.exact_top_positions`. Here blocks are
seen once and kept nowhere, and the lists may be asked at any size, under any crowd.

Letters in shapes: Q queries, I chunks of all of them, B documents of a block, C their chunks, D width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Vectors
from engine.scoring.evidence import Scoring, chunk_weights, crowd_similarity, list_scores, thresholds
from engine.scoring.lists import RankedLists, empty_lists, merge, without_document
from engine.scoring.similarity import nearest_documents
from engine.store.snapshot import Positions


class ExactLists:
    """Grows with the collection; may be asked at any time."""

    def __init__(self, queries: Sequence[EncodedDocument], own: Positions, crowd: int, document_crowd: int) -> None:
        """Begin with an empty collection.

        Args:
            queries: their vectors.
            own: (Q,) the number that each query has in the collection, and is not found by; -1 for none.
            crowd: the largest M that will be asked with.
            document_crowd: and of the document vectors.
        """
        self._queries = queries
        self._own = own.tolist()
        # One place for the document behind the crowd, and one for the query's own.
        self._length, self._whole_length = crowd + 2, document_crowd + 2
        self._edges = np.concatenate([[0], np.cumsum([len(query.chunks) for query in queries])]).tolist()
        self._chunks: Vectors = np.concatenate([query.chunks for query in queries])
        self._documents: Vectors = np.stack([query.document for query in queries])
        self._lists, self._whole = empty_lists(len(self._chunks)), empty_lists(len(queries))
        self.n_documents = 0

    def add(self, documents: Vectors, chunks: Vectors, starts: NDArray[np.int64]) -> None:
        """Take in the next documents.

        Args:
            documents: (B, D) their vectors.
            chunks: (C, D) those of their chunks, one document after another.
            starts: (B,) first row of each.
        """
        numbers = self.n_documents + np.arange(len(documents))
        found = nearest_documents(self._chunks, chunks, starts, numbers, self._length)
        self._lists = merge(self._lists, found, self._length)
        alone = np.arange(len(documents))
        found = nearest_documents(self._documents, documents, alone, numbers, self._whole_length)
        self._whole = merge(self._whole, found, self._whole_length)
        self.n_documents += len(documents)

    def rankings(self, scoring: Scoring) -> list[Positions]:
        """The numbers of each query's best documents with a score above 0, best first, equal ones by number."""
        return [self._ranking(number, scoring) for number in range(len(self._queries))]

    def _ranking(self, number: int, scoring: Scoring) -> Positions:
        own = self._own[number]
        n_others = self.n_documents - (0 <= own < self.n_documents)
        lists = without_document(_rows(self._lists, slice(self._edges[number], self._edges[number + 1])), own)
        whole = without_document(_rows(self._whole, slice(number, number + 1)), own)
        n_tokens = np.array([chunk.n_tokens for chunk in self._queries[number].chunk_spans])
        limits = thresholds(
            crowd_similarity(lists, scoring.crowd, n_others),
            float(crowd_similarity(whole, scoring.document_crowd, n_others)[0]),
            chunk_weights(n_tokens),
            scoring,
        )
        return list_scores(lists, whole, limits, scoring)[0]


def _rows(lists: RankedLists, rows: slice) -> RankedLists:
    return RankedLists(lists.documents[rows], lists.similarities[rows])
