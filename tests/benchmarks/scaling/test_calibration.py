from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.scaling.calibration import TURNS, calibrate
from benchmarks.scaling.growth import learn_growth
from benchmarks.scaling.neighbours import neighbours
from benchmarks.scaling.source import Source
from engine.errors import IndexMismatch


def test_a_quarter_grown_fourfold_is_as_crowded_as_the_whole(source: Source) -> None:
    found = calibrate(source, seed=0)
    assert found.error == found.errors[str(found.turn)] == min(found.errors.values()) < 0.05
    assert found.errors[str(TURNS[0])] > 3 * found.error  # copies that hardly turn are too near each other
    assert found.grown.n_chunks == pytest.approx(found.real.n_chunks, abs=8)
    np.testing.assert_allclose(found.grown.within[1:], found.real.within[1:], atol=0.05)  # a turn leaves them alone


def test_neighbours_come_nearer_as_the_corpus_grows_but_not_at_once(source: Source) -> None:
    growth = learn_growth(source, turn=calibrate(source, seed=0).turn)
    n_chunks, chosen = int(source.n_chunks.sum()), np.arange(0, len(source), 4)
    medians = [
        neighbours(lambda size=size: growth.blocks(growth.order(size * n_chunks)), chosen, 0).nearest_chunk[2]  # type: ignore[misc]
        for size in (1, 2, 4)
    ]
    still = neighbours(lambda: replace(growth, turn=0.0).blocks(growth.order(2 * n_chunks)), chosen, 0).nearest_chunk
    assert medians[0] < medians[1] < medians[2] < 0.99
    assert still[2] > 0.999  # copies that do not turn stand on their originals


def test_the_same_seed_chooses_the_same_turn(source: Source) -> None:
    assert calibrate(source.part(np.arange(60)), 3) == calibrate(source.part(np.arange(60)), 3)


def test_too_few_documents_are_refused(source: Source) -> None:
    with pytest.raises(IndexMismatch, match="the index holds 15 documents, at least 16 are needed"):
        calibrate(source.part(np.arange(15)), 0)
