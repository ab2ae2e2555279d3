"""Follows the hits of many queries as parts of either document go: every side, order and method of rescoring.

Deletion and insertion are those of RISE (Petsiuk et al. 2018, arXiv:1806.07421), over the tokens of a document instead
of the pixels of an image; comprehensiveness and sufficiency are ERASER's (DeYoung et al. 2020, arXiv:1911.03429)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np

from benchmarks.sections.matches import Corpus
from benchmarks.sections.parts import Order, OrderKind, Parts, Side, Unit, parts_of, removal_orders
from benchmarks.sections.records import Arm
from benchmarks.sections.removal import (
    COARSE_SHARES,
    SHARES,
    Course,
    Pairing,
    Rescore,
    encoded_rescore,
    follow,
    mean_course,
    remembered,
    stored_rescore,
    summaries,
)
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.long_query import pool_long

STORED, ENCODED = "stored", "re-encoded"
METHODS: Mapping[str, Sequence[float]] = {STORED: SHARES, ENCODED: COARSE_SHARES}
_Key: TypeAlias = tuple[str, Side, OrderKind]


@dataclass(frozen=True)
class RemovalPlan:
    """What is asked, and how much of it is followed."""

    queries: int = 100
    hits: int = 1  # of each query
    unit: Unit = Unit.CHUNK
    random: int = 5  # random orders of a hit; one of them where parts are encoded anew
    encoded: int = 20  # queries whose documents are encoded anew, beside rescoring from stored vectors


class Courses:
    """All courses that were followed, by method, side and order."""

    def __init__(self) -> None:
        """Start without one."""
        self.n_hits = 0
        self._by_query: dict[_Key, dict[str, list[Course]]] = defaultdict(lambda: defaultdict(list))

    def add(self, method: str, side: Side, query: str, courses: Mapping[OrderKind, Course]) -> None:
        """Take in what was followed of one hit."""
        for kind, course in courses.items():
            self._by_query[method, side, kind][query].append(course)

    def arms(self) -> list[Arm]:
        """Means over the hits of each query, which are no independent cases, and over queries."""
        return [_arm(key, by_query) for key, by_query in self._by_query.items()]


def follow_hits(
    index: Index, queries: Sequence[str], plan: RemovalPlan, seed: int, log: Callable[[str], None] = lambda _: None
) -> Courses:
    """Follow the best hits of every query.

    Args:
        index: holds the queries; search is exact, whatever generation it has.
        queries: doc_ids; the first `plan.encoded` of them are encoded anew too.
        plan: how much.
        seed: of random orders.
        log: gets a line a query.
    """
    courses = Courses()
    corpus = Corpus(index, Scoring())
    row = {name: number for number, name in enumerate(index.snapshot.doc_ids())}
    for number, doc_id in enumerate(queries):
        rng = np.random.default_rng([seed, number])
        stored = index.stored_query(doc_id)
        query = replace(stored, vectors=pool_long(stored.vectors))
        targets = np.delete(np.arange(index.n_documents), row[doc_id])
        prepared = corpus.prepare(query)
        matches = corpus.find_matches(prepared, targets)
        for hit in index.search_id(doc_id, k=plan.hits, exact=True).hits:
            column = int(np.searchsorted(targets, row[hit.doc_id]))
            target = index.stored_query(hit.doc_id)
            pairing = Pairing(corpus, query, prepared, target, targets, matches, column)
            courses.n_hits += 1
            for side in Side:
                parts = parts_of(hit.breakdown, side, query, target, plan.unit, corpus.language)
                orders = removal_orders(parts, plan.random, rng)
                for method, rescore in _rescores(pairing, side, index, is_encoded=number < plan.encoded):
                    courses.add(method, side, doc_id, _follow_orders(parts, orders, rescore, method))
        log(f"{number + 1} of {len(queries)} queries")
    return courses


def _rescores(pairing: Pairing, side: Side, index: Index, *, is_encoded: bool) -> Iterator[tuple[str, Rescore]]:
    yield STORED, stored_rescore(pairing, side)
    if is_encoded:
        yield ENCODED, encoded_rescore(pairing, side, index.encoder)


def _follow_orders(
    parts: Parts, orders: Mapping[OrderKind, Sequence[Order]], rescore: Rescore, method: str
) -> dict[OrderKind, Course]:
    """A course for each kind of order; none where there is one part, where nothing contributes, or no score is."""
    ask = remembered(rescore)
    everything = np.ones(len(parts.of_chunk), bool)
    if len(parts) < 2 or not parts.contribution.any() or ask(everything).score <= 0:
        return {}
    n = 1 if method == ENCODED else None
    return {
        kind: mean_course([follow(parts, order, ask, METHODS[method]) for order in some[:n]])
        for kind, some in orders.items()
    }


def _arm(key: _Key, by_query: Mapping[str, Sequence[Course]]) -> Arm:
    method, side, kind = key
    means = [mean_course(courses) for courses in by_query.values()]
    values = [summaries(mean, METHODS[method]) for mean in means]
    over_queries = mean_course(means)
    return Arm(
        method=method,
        side=side.value,
        order=kind.value,
        query_ids=list(by_query),
        curves={f.name: np.round(getattr(over_queries, f.name), 4).tolist() for f in fields(Course)},
        per_query={name: [round(value[name], 4) for value in values] for name in values[0]},
    )
