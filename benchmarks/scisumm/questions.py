"""What is asked of a summary on CL-SciSumm, by the protocol of TDE and over whole collections, and how candidates rank.

TDE (2024, section 3; after Zhang et al. 2021) ranks few candidates a summary:

    reference-topic   2017: the summary's own paper, among the papers that cite it
    citing-drawn      2018: 5 papers that cite it, among 15 that cite papers of other topics; drawn anew 20 times

The others rank whole collections: the paper (`reference`), the papers that cite it
(`citing`), the sentences that cite it (`citances`; `citances-split`: among those of the
split's topics alone).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from benchmarks.datasets import DatasetError
from benchmarks.scisumm.collection import Collection, Scisumm, citing_ids, read_collection
from benchmarks.systems import System
from engine.document import Document

N_POSITIVES = 5
N_NEGATIVES = 15


@dataclass(frozen=True)
class Question:
    """Which candidates are to be ranked for a summary."""

    query_id: str
    candidates: tuple[str, ...]  # in random order where they are few
    relevant: frozenset[str]  # some of the candidates


Pool = Callable[[Scisumm], list[str]]
Ask = Callable[[Scisumm, Sequence[str], np.random.Generator], list[Question]]


@dataclass(frozen=True)
class SummaryTask:
    """One way to ask."""

    collection: Collection
    pool: Pool  # the documents among which is searched; lexical systems know no others
    ask: Ask
    split: str  # by default
    measures: tuple[str, ...]  # the first is the one that tests compare
    n_draws: int = 1


def of_topic(data: Scisumm, _pool: Sequence[str], draw: np.random.Generator) -> list[Question]:
    """The summary's own paper among the papers that cite it; summaries whose paper nobody cites are left out."""
    return [
        Question(query_id, _shuffled([*paper, *data.citing[query_id]], draw), frozenset(paper))
        for query_id, paper in data.reference.items()
        if data.citing[query_id]
    ]


def drawn(data: Scisumm, _pool: Sequence[str], draw: np.random.Generator) -> list[Question]:
    """Some papers that cite the summary's own paper, among papers that cite those of other summaries of the split.

    Summaries with fewer than `N_POSITIVES` such papers are left out.

    Raises:
        DatasetError: there are fewer than `N_NEGATIVES` papers of other topics.
    """
    everyone = sorted({doc_id for papers in data.citing.values() for doc_id in papers})
    questions = []
    for query_id, own in data.citing.items():
        if len(own) < N_POSITIVES:
            continue
        others = [doc_id for doc_id in everyone if doc_id not in own and doc_id not in data.reference[query_id]]
        if len(others) < N_NEGATIVES:
            raise DatasetError(
                f"split {data.split!r} has {len(others)} papers that cite other topics than that of {query_id!r}, "
                f"{N_NEGATIVES} are drawn; take a split with more summaries: --split"
            )
        positives = draw.choice(sorted(own), N_POSITIVES, replace=False).tolist()
        negatives = draw.choice(others, N_NEGATIVES, replace=False).tolist()
        questions.append(Question(query_id, _shuffled([*positives, *negatives], draw), frozenset(positives)))
    return questions


def of_pool(kind: str, data: Scisumm, pool: Sequence[str], _draw: np.random.Generator) -> list[Question]:
    """All that belongs to a summary among the whole pool; its own paper is left out where it is not what is sought.

    Summaries with nothing to find are left out.
    """
    judged: Mapping[str, Mapping[str, int]] = getattr(data, kind)
    known = frozenset(pool)
    questions = []
    for query_id, relevant in judged.items():
        left_out = () if kind == "reference" else data.reference[query_id]
        candidates = tuple(doc_id for doc_id in pool if doc_id not in left_out)
        if found := known.intersection(relevant).difference(left_out):
            questions.append(Question(query_id, candidates, found))
    return questions


def _papers(data: Scisumm) -> list[str]:
    return [paper.doc_id for paper in read_collection(data, Collection.PAPERS)]


def _citances(data: Scisumm) -> list[str]:
    return [citance.doc_id for citance in read_collection(data, Collection.CITANCES)]


def _citances_of_split(data: Scisumm) -> list[str]:
    wanted = {doc_id for citances in data.citances.values() for doc_id in citances}
    return [doc_id for doc_id in _citances(data) if doc_id in wanted]


def _shuffled(doc_ids: Sequence[str], draw: np.random.Generator) -> tuple[str, ...]:
    return tuple(doc_ids[place] for place in draw.permutation(len(doc_ids)))


_WHOLE = ("nDCG@10", "Recall@10", "Recall@100", "MRR@10", "P@1", "P@5")

TASKS: Mapping[str, SummaryTask] = {
    "reference-topic": SummaryTask(Collection.PAPERS, _papers, of_topic, "cl2017train", ("MRR", "P@1", "nDCG")),
    "citing-drawn": SummaryTask(
        Collection.PAPERS, citing_ids, drawn, "cl2018train", ("P@5", "P@1", "P@2", "P@3", "P@4"), n_draws=20
    ),
    "reference": SummaryTask(Collection.PAPERS, _papers, partial(of_pool, "reference"), "test", _WHOLE),
    "citing": SummaryTask(Collection.PAPERS, citing_ids, partial(of_pool, "citing"), "cl2018test", _WHOLE),
    "citances": SummaryTask(Collection.CITANCES, _citances, partial(of_pool, "citances"), "cl2018test", _WHOLE),
    "citances-split": SummaryTask(
        Collection.CITANCES, _citances_of_split, partial(of_pool, "citances"), "cl2018test", _WHOLE
    ),
}


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
