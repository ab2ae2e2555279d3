from __future__ import annotations

import numpy as np
import pytest

from benchmarks.speed.growth.neighbours import (
    QUANTILES,
    CandidateLists,
    distance,
    draw,
    nearest_by_document,
    neighbours,
)
from benchmarks.speed.growth.source import Block, Source


def nearest_by_hand(block: Block, vector: np.ndarray, number: int) -> float:
    owners = np.repeat(np.arange(len(block.n_chunks)), block.n_chunks)
    return max(float(row @ vector) for row, owner in zip(block.chunks, owners, strict=True) if owner != number)


@pytest.fixture
def small(source: Source) -> Source:
    return source.part(np.arange(30))


def test_neighbours_are_those_of_a_loop_over_all_other_documents(small: Source) -> None:
    chosen = np.array([9, 2])
    block = small.read(np.arange(30))
    sample = draw(small.blocks(), chosen, np.random.default_rng(5))
    chunks = [nearest_by_hand(block, row, int(owner)) for row, owner in zip(sample.chunks, sample.owners, strict=True)]
    cosines = block.documents @ block.documents[[2, 9]].T
    cosines[[2, 9], [0, 1]] = -1
    found = neighbours(small.blocks, chosen, seed=5)
    assert found.nearest_chunk == pytest.approx(np.quantile(chunks, QUANTILES).tolist(), abs=1e-4)
    assert found.nearest_document == pytest.approx(np.quantile(cosines.max(0), QUANTILES).tolist(), abs=1e-4)
    assert (found.n_documents, found.n_chunks) == (30, len(block.chunks))


def test_cosines_within_a_document_are_of_pairs_of_its_sampled_chunks(small: Source) -> None:
    sample = draw(small.blocks(), np.array([4]), np.random.default_rng(0))
    pairs = [float(a @ b) for i, a in enumerate(sample.chunks) for b in sample.chunks[i + 1 :]]
    np.testing.assert_allclose(sample.within, pairs, atol=1e-6)


def test_each_document_has_the_median_of_its_chunks(small: Source) -> None:
    sample = draw(small.blocks(), np.arange(30), np.random.default_rng(3))
    block = small.read(np.arange(30))
    of_seven = [nearest_by_hand(block, row, 7) for row in sample.chunks[sample.owners == 7]]
    near = nearest_by_document(small.blocks, 30, seed=3)
    assert len(near) == 30 and near[7] == pytest.approx(np.median(of_seven), abs=1e-5)


def test_distance_is_the_mean_difference_of_the_quantiles() -> None:
    one = CandidateLists(1, 1, [], [0.1, 0.2], [0.5, 0.5])
    other = CandidateLists(9, 9, [], [0.3, 0.2], [0.5, 0.9])
    assert distance(one, one) == 0 and distance(one, other) == pytest.approx(0.15)
