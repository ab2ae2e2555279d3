"""BM25 as a `PairScorer`: that of the retrieval baseline, made comparable between queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.bm25 import BM25
from benchmarks.pairs.scorer import Fit, Pair
from benchmarks.systems import Settings
from engine.document import Document


class BM25Pairs:
    """How much of what the first document scores against itself the second one scores.

        s(a, b) = BM25(a, b) / BM25(a, a)

    The first document is the query, whole. BM25 adds up over the words of a query, so
    that scores of queries of several lengths have no threshold in common until they are
    divided; ours, as no paper judges pairs by BM25. Document frequencies are those of
    all documents that `fit` is given, test's included: texts are no labels.
    """

    name = "bm25"
    encoder = ""
    is_trained = False
    course = None

    def __init__(self) -> None:
        """Start without documents; `fit` reads them.

        Raises:
            MissingExtra: bm25s or PyStemmer is not installed.
        """
        self._bm25 = BM25()
        self.settings: Settings = dict(self._bm25.settings)
        self._documents: Mapping[str, Document] = {}
        self._row: dict[str, int] = {}

    def fit(self, given: Fit) -> None:
        """As `PairScorer.fit`; nothing is learned from pairs."""
        self._bm25.fit(given.documents.values())
        self._documents = given.documents
        self._row = {doc_id: row for row, doc_id in enumerate(self._bm25.doc_ids)}

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """As `PairScorer.score`; at least 0, and 0 where no word is shared."""
        asked: dict[str, list[int]] = defaultdict(list)
        for at, pair in enumerate(pairs):
            asked[pair.first].append(at)
        found = np.zeros(len(pairs))
        for first, positions in asked.items():
            scores = self._bm25.scores(self._documents[first])
            own = scores[self._row[first]]
            rows = [self._row[pairs[at].second] for at in positions]
            found[positions] = scores[rows] / own if own > 0 else 0.0
        return found
