"""Hard negatives: targets that look like matches but are none, found by searching an index or by BM25."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from engine.errors import MissingExtra
from engine.index import Index
from engine.text.document import Document
from engine.training.corpus import TrainingCorpus

DEPTH = 60  # targets of a ranking that are considered
MARGIN = 0.95


class Miner(Protocol):
    """Names hard negatives of a training query."""

    def negatives(self, query_id: str) -> Sequence[str]:
        """Negatives, hardest first: without the query, targets related to it, and held-out documents."""


def hard_negatives(
    ranking: Iterable[tuple[str, float]], related: Mapping[str, int], held_out: frozenset[str], margin: float
) -> list[str]:
    """Targets of a ranking that are safe to use as negatives.

    Judgments have gaps: a target that ranks above a known positive is often a positive
    without a judgment. So a target counts as negative only if its score is at most
    `margin` times that of the best related one in the ranking (the positive-aware
    mining of NV-Retriever, Moreira et al. 2024, arXiv:2407.15831, its "TopK-PercPos",
    with the best in place of the one positive). If no related target is in the
    ranking, all its targets count.

    Args:
        ranking: targets and scores, best first, without the query itself; scores at least 0.
        related: targets that belong to the query.
        held_out: targets that are never drawn.
        margin: above 0; 1 keeps all that rank below the best related one.

    Returns:
        The targets that are left, in the order of the ranking.
    """
    scored = list(ranking)
    best = max((score for target, score in scored if target in related), default=float("inf"))
    return [
        target
        for target, score in scored
        if target not in related and target not in held_out and score <= margin * best
    ]


class IndexMiner:
    """Negatives by the model itself: the hits of a search in an index of the corpus."""

    def __init__(self, index: Index, corpus: TrainingCorpus, *, depth: int = DEPTH, margin: float = MARGIN) -> None:
        """Search `index`, which holds the documents of `corpus`; each query is searched once, at its first use."""
        self._index = index
        self._corpus = corpus
        self._depth = depth
        self._margin = margin
        self._found: dict[str, list[str]] = {}

    def negatives(self, query_id: str) -> Sequence[str]:
        """As `Miner.negatives`.

        Raises:
            QueryError: the index does not hold the query.
        """
        if query_id not in self._found:
            found = self._index.rank_id(query_id, k=self._depth)
            ranking = [(doc_id, score) for doc_id, score in found if doc_id in self._corpus.documents]
            self._found[query_id] = hard_negatives(
                ranking, self._corpus.related.get(query_id, {}), self._corpus.held_out, self._margin
            )
        return self._found[query_id]


class LexicalMiner:
    """Negatives by BM25 over whole texts: they share words with the query, whatever their score by the model."""

    def __init__(self, corpus: TrainingCorpus, *, depth: int = DEPTH, margin: float = MARGIN) -> None:
        """Index the texts of `corpus`.

        Raises:
            MissingExtra: bm25s is not installed.
        """
        try:
            import bm25s
        except ModuleNotFoundError as error:
            raise MissingExtra("mining with BM25", "bm25s", "training") from error
        self._corpus = corpus
        self._depth = depth
        self._margin = margin
        self._doc_ids = list(corpus.documents)
        self._tokenize: Any = partial(bm25s.tokenize, stopwords="en", show_progress=False, return_ids=False)
        self._retriever = bm25s.BM25(method="lucene")
        words = self._tokenize([document.text for document in corpus.documents.values()])
        if any(words):  # bm25s divides by the mean length
            self._retriever.index(words, show_progress=False)
        self._found: dict[str, list[str]] = {}

    def negatives(self, query_id: str) -> Sequence[str]:
        """As `Miner.negatives`."""
        if query_id not in self._found:
            self._found[query_id] = hard_negatives(
                self._ranking(self._corpus.documents[query_id]),
                self._corpus.related.get(query_id, {}),
                self._corpus.held_out,
                self._margin,
            )
        return self._found[query_id]

    def _ranking(self, query: Document) -> list[tuple[str, float]]:
        words = self._tokenize([query.text])[0]
        if not words:
            return []
        scores = self._retriever.get_scores(words)
        order = np.argsort(-scores, kind="stable")[: self._depth + 1]
        ranked = [(self._doc_ids[row], float(scores[row])) for row in order if scores[row] > 0]
        return [(doc_id, score) for doc_id, score in ranked if doc_id != query.doc_id]
