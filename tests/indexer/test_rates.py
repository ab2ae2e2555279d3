"""The estimated time of a generation follows its equation."""

from __future__ import annotations

import pytest

from indexer.generation.index_choice import SCAN, SMALL, BuildSizes, Rung, Size
from indexer.plan.rates import Rates, extension_seconds, generation_seconds, measure_rates

RATES = Rates(comparisons_per_second=1e9, bytes_per_second=1e8)
SIZE = Size(n_documents=2_000, n_chunks=100_000, width=64)


def rung(factory: str, sizes: BuildSizes | None = None) -> Rung:
    return Rung(factory, 1_000_000, 0, sizes or BuildSizes(), fits=True)


def test_an_exact_index_takes_time_to_read_and_write() -> None:
    assert generation_seconds(rung("Flat"), SIZE, RATES) == pytest.approx((100_000 * 128 + 2_000_000) / 1e8)


def test_lists_take_time_to_train_fill_and_measure() -> None:
    n_compared = 512 * (10 * 65_536 + 100_000) + 16 * 100_000 + 128 * 50 * 100_000
    n_bytes = 3 * 100_000 * 128 + 2_000_000  # read to be added, and twice for 6,400 query chunks
    assert generation_seconds(rung("IVF512,PQ32x4fs"), SIZE, RATES) == pytest.approx(n_compared / 1e9 + n_bytes / 1e8)


def test_fewer_training_vectors_take_less_time() -> None:
    usual, small = (generation_seconds(rung("IVF2048,Flat", sizes), SIZE, RATES) for sizes in (None, SMALL))
    assert small < usual


def test_an_index_that_is_not_built_takes_no_time() -> None:
    assert generation_seconds(rung(SCAN), SIZE, RATES) == 0
    assert generation_seconds(rung("Flat"), Size(0, 0, 64), RATES) == 0


def test_rates_of_this_machine_are_measured() -> None:
    rates = measure_rates(32)
    assert rates.comparisons_per_second > 1e5
    assert rates.bytes_per_second > 1e5


def test_many_long_queries_take_several_passes() -> None:
    size = Size(n_documents=1_000, n_chunks=200_000, width=64)  # 128 queries of 200 chunks
    n_compared = 512 * (10 * 65_536 + 200_000) + 16 * 200_000 + 25_600 * 200_000
    n_bytes = (1 + 7) * 200_000 * 128 + 2_000_000
    assert generation_seconds(rung("IVF512,PQ32x4fs"), size, RATES) == pytest.approx(n_compared / 1e9 + n_bytes / 1e8)


def test_an_extension_takes_time_to_add_and_measure_but_not_to_train() -> None:
    n_compared = 512 * 4_000 + 16 * 4_000 + 48 * 50 * 100_000
    n_bytes = (4_000 + 100_000) * 128 + 3_000_000
    found = extension_seconds(rung("IVF512,PQ32x4fs"), SIZE, 4_000, RATES)
    assert found == pytest.approx(n_compared / 1e9 + n_bytes / 1e8)
    assert extension_seconds(rung("Flat"), SIZE, 4_000, RATES) == pytest.approx((4_000 * 128 + 3_000_000) / 1e8)
