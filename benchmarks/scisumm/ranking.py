"""Ranks the candidates of a question by any system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from benchmarks.scisumm.tasks import Question
from benchmarks.systems import System
from engine.document import Document

FEW = 100  # candidates that are scored one by one by a system that can


@runtime_checkable
class Scorer(Protocol):
    """What can score any two documents that it was fitted on."""

    def score(self, first: str, second: str) -> float:
        """Higher is closer."""


class CandidateRanker:
    """Asks a system once for each summary, and each pair of a summary and a candidate once, however often they come."""

    def __init__(self, system: System, summaries: Mapping[str, Document], depth: int) -> None:
        """Take a system and its queries; `depth` is that of a search, as many as there are documents."""
        self._system = system
        self._summaries = summaries
        self._depth = depth
        self._found: dict[str, list[str]] = {}  # by summary
        self._scores: dict[tuple[str, str], float] = {}

    def rank(self, question: Question) -> list[str]:
        """The candidates, best first; what the system does not find is not among them.

        Few candidates are scored pair by pair where the system has `score`, and equal
        ones stay in the order of the question. Otherwise they come as in its ranking of
        everything.
        """
        if isinstance(self._system, Scorer) and len(question.candidates) <= FEW:
            scores = {doc_id: self._score(self._system, question.query_id, doc_id) for doc_id in question.candidates}
            return sorted(scores, key=lambda doc_id: -scores[doc_id])
        wanted = frozenset(question.candidates)
        return [doc_id for doc_id in self._search(question.query_id) if doc_id in wanted]

    def _search(self, query_id: str) -> list[str]:
        if query_id not in self._found:
            ranking = self._system.search(self._summaries[query_id], self._depth)
            self._found[query_id] = [doc_id for doc_id, _ in ranking]
        return self._found[query_id]

    def _score(self, system: Scorer, query_id: str, doc_id: str) -> float:
        pair = query_id, doc_id
        if pair not in self._scores:
            self._scores[pair] = system.score(query_id, doc_id)
        return self._scores[pair]
