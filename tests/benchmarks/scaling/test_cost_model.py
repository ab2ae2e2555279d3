from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.scaling.cost_model import COSTS, check, fit, larger, nonnegative, size_of
from benchmarks.scaling.record import ScaleRecord
from engine.origin import Origin
from tests.benchmarks.scaling.made import scale_record

LISTS_COST = COSTS[1]


@pytest.fixture
def records(origin: Origin) -> list[ScaleRecord]:
    sizes = ((1_000_000, 1024), (250_000, 512), (500_000, 1024), (4_000_000, 4096))
    return [scale_record(origin, n_chunks, n_lists=n_lists) for n_chunks, n_lists in sizes]


def test_a_law_that_the_measured_costs_follow_is_found(records: list[ScaleRecord]) -> None:
    coefficients = fit(LISTS_COST, records).coefficients
    assert coefficients == pytest.approx({"once": 2.0, "code scanned": 1e-4, "document": 0.0, "list": 0.0}, abs=1e-8)


def test_the_largest_index_is_told_by_the_smaller_ones(records: list[ScaleRecord]) -> None:
    checked = check(records)
    assert {one.n_chunks for one in checked} == {4_000_000} and len(checked) == len(COSTS)
    for one in checked:
        assert one.predicted == pytest.approx(one.measured, rel=0.02)


def test_a_cost_outside_the_law_shows_as_a_wrong_prediction(records: list[ScaleRecord]) -> None:
    stages = {**records[-1].asked["synthetic"].stages_ms, "scores": 30.0}
    slow = replace(records[-1], asked={"synthetic": replace(records[-1].asked["synthetic"], stages_ms=stages)})
    (scores,) = [one for one in check([*records[:-1], slow]) if one.cost.name == "search: scores"]
    assert (scores.measured, scores.predicted) == (30.0, pytest.approx(3.0))


def test_two_sizes_predict_nothing_that_could_be_checked(records: list[ScaleRecord]) -> None:
    assert check(records[:2]) == []


def test_bytes_are_told_by_chunks_where_lists_grow_alike(origin: Origin) -> None:
    (ann,) = [cost for cost in COSTS if cost.name == "disk: ann"]
    sizes = ((250_000, 1024), (500_000, 2048), (1_000_000, 4096))
    measured = [scale_record(origin, n_chunks, n_lists=n_lists) for n_chunks, n_lists in sizes]
    noisy = [
        replace(record, disk={**record.disk, "ann": round(record.disk["ann"] * wrong)})
        for record, wrong in zip(measured, (1.002, 1.0, 0.999), strict=True)
    ]
    coefficients = fit(ann, noisy).coefficients
    assert coefficients["chunk"] == pytest.approx(104 / 2**20, rel=0.01) and coefficients["list"] == 0


def test_a_step_that_was_not_measured_is_left_out(records: list[ScaleRecord]) -> None:
    (publishing,) = [cost for cost in COSTS if cost.name == "publishing"]
    there = [replace(record, growth=replace(record.growth, publish_seconds=0.0)) for record in records]
    assert fit(publishing, there).at(size_of(records[0])) == 0.0


def test_coefficients_are_the_best_of_those_that_are_not_negative() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        design = rng.random((6, 3))
        tried = rng.random((20_000, 3)) * 3 * (rng.random((20_000, 3)) < 0.7)
        least = ((tried @ design.T - 1) ** 2).sum(1).min()
        found = nonnegative(design)
        assert (found >= 0).all() and ((design @ found - 1) ** 2).sum() <= least + 1e-9


def test_terms_that_measured_sizes_cannot_tell_apart_are_one() -> None:
    assert nonnegative(np.array([[1.0, 2.0], [1.0, 2.0]])) == pytest.approx([1.0, 0.0])


def test_a_larger_index_has_the_lists_of_auto_and_the_same_nprobe(records: list[ScaleRecord]) -> None:
    size = larger(records, 100_000_000)
    assert (size.n_documents, size.n_lists, size.nprobe) == (2_500_000, 32768, 32)
    assert size.codes == 100_000_000 * 32 / 32768
