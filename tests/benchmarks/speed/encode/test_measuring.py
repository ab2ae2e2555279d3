from __future__ import annotations

import numpy as np
import pytest

from benchmarks.speed.encode.measuring import Fidelity, cosines, measure_fidelity
from benchmarks.speed.encode.ways import Job, Sample


def test_cosines_are_those_of_a_loop() -> None:
    one, other = np.random.default_rng(0).standard_normal((2, 5, 8)).astype(np.float32)
    by_hand = [float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))) for a, b in zip(one, other, strict=True)]
    np.testing.assert_allclose(cosines(one, other), by_hand, rtol=1e-5)


def test_stored_vectors_are_near_those_of_float32_and_the_rival_has_the_same(job: Job, sample: Sample) -> None:
    pytest.importorskip("sentence_transformers")
    fidelity = Fidelity(**measure_fidelity(job, 10_000))
    assert fidelity.n_chunks == fidelity.rival_chunks == sample.n_chunks
    assert 0.99 < fidelity.lowest <= fidelity.mean < 1.0001
    assert fidelity.rival_lowest > 0.9999
