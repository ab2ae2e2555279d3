"""The type of index follows from the available memory, and the options show why."""

from __future__ import annotations

import numpy as np
import pytest

from engine.encoders.encoder import unit
from engine.errors import BudgetExceeded
from engine.store.ann import TRAINING_POINTS_PER_LIST, AnnIndex
from indexer.generation.resources import (
    SCAN,
    SMALL,
    BuildSizes,
    Footprint,
    IndexOption,
    Size,
    Watch,
    describe_options,
    factory_options,
    index_options,
    training_size,
)

FEW, MANY, HUGE = Size(1_000, 40_000, 384), Size(25_000, 1_000_000, 384), Size(2_500_000, 100_000_000, 384)


def chosen(size: Size, left: int | None) -> str:
    return index_options("auto", size, left)[-1].factory


def test_without_a_limit_the_best_type_is_chosen() -> None:
    assert [option.factory for option in index_options("auto", FEW, None)] == ["Flat"]
    assert chosen(MANY, None) == "IVF4096,PQ192x4fs"


def test_less_memory_never_chooses_a_better_type() -> None:
    for size, most in ((FEW, 600_000_000), (HUGE, 15_000_000_000)):
        order = [*factory_options(size.n_chunks, size.width), SCAN]
        places = [order.index(chosen(size, left)) for left in range(most, -1, -most // 600)]
        assert places == sorted(places)
        assert set(places) > {0, len(order) - 1}


def test_where_training_takes_more_than_the_index_coarser_codes_would_not_help() -> None:
    training = 4 * MANY.width * SMALL.points_per_list * 4096
    assert {chosen(MANY, left) for left in range(0, 600_000_000, 1_000_000)} == {"IVF4096,PQ192x4fs", SCAN}
    assert chosen(MANY, training) == SCAN
    assert chosen(MANY, training + 20_000_000) == "IVF4096,PQ192x4fs"


def test_the_chosen_type_fits_and_the_rejected_ones_do_not() -> None:
    for left in range(0, 200_000_000, 7_000_000):
        *rejected, last = index_options("auto", FEW, left)
        assert last.fits and last.needed_bytes <= left
        assert all(option.needed_bytes > left and not option.fits for option in rejected)


def test_small_blocks_come_before_another_type() -> None:
    (usual,) = index_options("Flat", FEW, None)
    (small,) = index_options("Flat", FEW, usual.needed_bytes - 1)
    assert (usual.sizes, small.sizes) == (BuildSizes(), SMALL)
    assert small.needed_bytes < usual.needed_bytes


def test_a_named_type_that_does_not_fit_is_refused_with_both_numbers_and_a_smaller_one() -> None:
    with pytest.raises(BudgetExceeded) as raised:
        index_options("Flat", MANY, 100_000_000)
    needed = 1_000_000 * (4 * 384 + 8) + 10 * 384 * 2_048 + 256 * 25_000
    assert str(raised.value) == (
        f"a Flat index over 1,000,000 vectors 384 wide takes {needed / 1e6:,.1f} MB while it is built, --memory "
        f"leaves 100.0 MB for it; allow {-(-(needed - 100_000_000) // 1_000_000):,} MB more, or use --factory auto, "
        "or a smaller one, for example IVF4096,PQ96x4fs"
    )


def test_scanning_takes_no_memory_however_little_is_left() -> None:
    (option,) = index_options(SCAN, MANY, 0)
    assert (option.factory, option.needed_bytes, option.fits) == (SCAN, 0, True)


def test_the_ladder_marks_the_choice_and_explains_the_rejections() -> None:
    options = (
        IndexOption("Flat", 60_000_000, 5_000_000, SMALL, fits=False),
        IndexOption("SQfp16", 30_000_000, 5_000_000, SMALL, fits=True),
    )
    assert describe_options(options, 40_000_000) == [
        "  Flat (exact) takes 65.0 MB to build, 40.0 MB are left",
        "> SQfp16 (exact) takes 35.0 MB to build, in small blocks",
    ]
    assert describe_options(index_options("auto", MANY, -5), -5)[-1] == (
        "> no FAISS index: queries scan the mapped shards, exactly and slowly"
    )
    (best,) = describe_options(index_options("auto", MANY, None), None)
    assert best.startswith("> IVF4096,PQ192x4fs (codes in lists, rescored exactly from the shards) takes ")


def test_as_many_training_vectors_are_drawn_as_faiss_uses() -> None:
    assert BuildSizes().points_per_list == TRAINING_POINTS_PER_LIST


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["Flat", "SQfp16", "SQ8", "IVF2048,PQ32x4fs"])
def test_building_takes_no_more_memory_than_estimated(factory: str) -> None:
    """The index itself is not moved as it grows; a fifth is allowed for the interpreter."""
    n_chunks, width, block = 120_000, 64, 16_384
    (option,) = index_options(factory, Size(0, n_chunks, width), None)
    rng = np.random.default_rng(0)
    rows = unit(rng.standard_normal((block, width), np.float32))
    n_training = min(training_size(factory), n_chunks)
    blocks = (
        (np.arange(first, min(first + block, n_chunks)), rows[: n_chunks - first].copy())
        for first in range(0, n_chunks, block)
    )
    footprint = Footprint()
    before = footprint.own_bytes()
    with Watch(footprint) as watch:
        AnnIndex.build(factory, width, lambda: rng.standard_normal((n_training, width), np.float32), blocks, n_chunks)
    assert watch.peak_bytes - before < 1.2 * option.needed_bytes
