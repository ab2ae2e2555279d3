from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sections.following import ENCODED, METHODS, STORED, RemovalPlan, follow_hits
from benchmarks.sections.parts import OrderKind, Side, Unit
from engine.index import Index

QUERIES = ["doc007", "doc011", "doc020", "doc033", "doc045", "doc058"]


def test_parts_that_the_breakdown_names_carry_the_score(index: Index) -> None:
    courses = follow_hits(index, QUERIES, RemovalPlan(hits=2, random=4, encoded=2), seed=0)
    arms = {(arm.method, arm.side, arm.order): arm for arm in courses.arms()}
    assert (courses.n_hits, len(arms)) == (12, 12)
    for side in Side:
        named, random = (arms[STORED, side, kind].per_query for kind in (OrderKind.BREAKDOWN, OrderKind.RANDOM))
        assert np.mean(named["deletion_area"]) < np.mean(random["deletion_area"])
        assert np.mean(named["insertion_area"]) > np.mean(random["insertion_area"])
    assert arms[STORED, Side.QUERY, OrderKind.COSINE].query_ids == QUERIES
    assert arms[ENCODED, Side.QUERY, OrderKind.COSINE].query_ids == QUERIES[:2]


def test_curves_begin_with_the_whole_and_end_with_nothing(index: Index) -> None:
    for arm in follow_hits(index, QUERIES[:2], RemovalPlan(unit=Unit.SECTION, encoded=1), seed=0).arms():
        assert len(arm.curves["deletion"]) == len(METHODS[arm.method])
        assert (arm.curves["deletion"][0], arm.curves["deletion"][-1]) == (1, 0)
        assert (arm.curves["insertion"][0], arm.curves["insertion"][-1]) == (0, 1)
        assert arm.curves["deletion_rank"][0] == arm.curves["insertion_rank"][-1] == pytest.approx(1)


def test_the_same_seed_gives_the_same_arms(index: Index) -> None:
    first, again, other = (follow_hits(index, QUERIES[:2], RemovalPlan(encoded=0), seed).arms() for seed in (1, 1, 2))
    assert first == again != other
