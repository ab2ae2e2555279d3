"""All chunks on a device score as on the CPU, to the error that is promised."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors, unit
from engine.errors import BudgetExceeded
from engine.gpu import Acceleration
from engine.index import Index
from engine.scan import DeviceScan
from engine.scoring.evidence import (
    CONTAINMENT,
    Scoring,
    Thresholds,
    best_chunks,
    chunk_component,
    most_difference,
    thresholds,
)
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from tests.gpu_index import WIDTH, drawn_rows, write_index

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NEEDS_GPU])]


def halves(n: int, seed: int) -> Vectors:
    return drawn_rows(n, seed).astype(np.float16).astype(np.float32)


def scan_of(rows: Vectors, n_chunks: NDArray[np.int64], devices: list[str], at_once: int = 500) -> DeviceScan:
    ends = np.cumsum(n_chunks)

    def read(positions: NDArray[np.int64]) -> NDArray[np.float16]:
        return np.concatenate([rows[ends[one] - n_chunks[one] : ends[one]] for one in positions]).astype(np.float16)

    return DeviceScan(n_chunks, read, WIDTH, devices, products_at_once=at_once)


def side(chunks: Vectors, seed: int, scoring: Scoring) -> tuple[Vectors, Thresholds]:
    rng = np.random.default_rng(seed)
    theta = rng.uniform(0, 0.95, len(chunks)).astype(np.float32)
    own = rng.uniform(0.9, 1, len(chunks)).astype(np.float32)
    opening = (scoring.opening * rng.uniform(0, 1, len(chunks)).round(1)).astype(np.float32)
    return chunks, thresholds(theta, theta / 2, own, opening, rng.uniform(1, 12, len(chunks)), scoring)


@pytest.mark.parametrize("device", DEVICES)
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=40).filter(any),
    queries=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    n_devices=st.integers(1, 4),
    at_once=st.sampled_from([1, 70, 10_000]),
    scoring=st.sampled_from([Scoring(), CONTAINMENT]),
    is_stored=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_components_are_those_of_the_cpu(
    device: str, sizes: list[int], queries: list[int], n_devices: int, at_once: int, scoring: Scoring, is_stored: bool
) -> None:
    n_chunks = np.array(sizes)
    rows = halves(int(n_chunks.sum()), 1)
    scan = scan_of(rows, n_chunks, [device] * n_devices, at_once)
    sides = [side((halves if is_stored else drawn_rows)(n, 7 + n), n, scoring) for n in queries]
    has_chunks = n_chunks > 0
    starts = (np.cumsum(n_chunks) - n_chunks)[has_chunks]
    there = scan.components(sides, scoring)
    assert there.shape == (len(queries), np.count_nonzero(has_chunks)) and not (scan.places[~has_chunks] + 1).any()
    for row, (chunks, limits) in enumerate(sides):
        here = chunk_component(*best_chunks(chunks, rows, starts), limits, scoring)
        np.testing.assert_allclose(there[row, scan.places[has_chunks]], here, atol=1e-6)
        off = np.abs(there[row] ** scoring.root - here**scoring.root).max()
        assert off <= most_difference(scan.error, limits, scoring)


@pytest.mark.parametrize("device", DEVICES)
def test_a_query_of_very_many_chunks_is_scored_in_blocks(device: str) -> None:
    rows, n_chunks = halves(900, 1), np.full(30, 30)
    chunks, limits = side(halves(4096, 2), 3, Scoring())
    there = scan_of(rows, n_chunks, [device], 1 << 14).components([(chunks, limits)], Scoring())
    here = chunk_component(*best_chunks(chunks, rows, np.arange(0, 900, 30)), limits, Scoring())
    np.testing.assert_allclose(there[0], here, atol=1e-6)


@given(
    p=st.sampled_from([0.5, 1.0, 2.0, 3.0]),
    r=st.sampled_from([0.3, 0.5, 1.0, 2.0]),
    error=st.sampled_from([1e-6, 1e-4, 1e-2]),
    seed=st.integers(0, 100),
)
def test_no_error_of_similarities_moves_a_score_by_more_than_is_promised(
    p: float, r: float, error: float, seed: int
) -> None:
    scoring, rng = Scoring(power=p, root=r), np.random.default_rng(seed)
    _, limits = side(np.zeros((6, 1), np.float32), seed, scoring)
    similarities = np.minimum(limits.chunks[:, None] + rng.choice([0.0, 1e-6, 0.02, 0.5], (6, 50)), 1.0)
    exact = similarities, rng.uniform(0, 1, similarities.shape)
    moved = [table + rng.choice([-1, 1], table.shape) * error for table in exact]
    one, other = (chunk_component(*tables, limits, scoring) ** r for tables in (exact, moved))
    assert np.abs(one - other).max() <= most_difference(error, limits, scoring) * (1 + 1e-9)


class Rounded(DeviceScan):
    """As wrong as products of half precision are, and open about it."""

    def components(
        self, queries: Sequence[tuple[Vectors, Thresholds]], scoring: Scoring, skip: int = 0
    ) -> NDArray[np.float64]:
        exact = super().components(queries, scoring, skip)
        return exact * np.where(np.arange(exact.shape[1]) % 2, 1.001, 0.999)


@pytest.mark.parametrize("of", [DeviceScan, Rounded])
@pytest.mark.parametrize("where", [None, "third = 1", "number < 30"])
def test_the_border_is_scored_again_so_hits_and_parts_are_those_of_the_cpu(
    of: type[DeviceScan], where: str | None, tmp_path: Path
) -> None:
    folder = write_index(tmp_path / "x.lm", [1 + number % 7 for number in range(90)], factory=None)
    with IndexSnapshot(folder) as snapshot:
        scan = of(snapshot.locations.n_chunks, lambda some: snapshot.chunk_rows(some)[0], WIDTH, ["cpu", "cpu"])
        scan.error = max(scan.error, 5e-4)
        there, here = (
            Index(snapshot, acceleration=acceleration).search("doc0017", Request(k=4, where=where))
            for acceleration in (Acceleration(scan, None, ""), None)
        )
    assert len(there.hits) == 4 and there.hits == here.hits
    for name in ("status", "n_found", "n_evident"):
        assert getattr(there, name) == getattr(here, name)


def test_a_device_without_room_is_an_error_with_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = scan_of(halves(9, 1), np.full(3, 3), ["cpu"])

    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("engine.scan._products", fail)
    with pytest.raises(BudgetExceeded, match=r"out of memory.*or open the index on the CPU: --device cpu"):
        scan.components([side(unit(halves(2, 2)), 1, Scoring())], Scoring())
