from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.pairs.comparing import Comparer, Comparison, mean_best_match
from engine.encoders.encoder import unit
from engine.encoders.mean import MeanEncoder
from engine.errors import EncoderError
from tests.benchmarks.pairs.pair_cases import texts
from tests.encoders.tiny import tiny_tde


def test_mean_best_match_equals_the_equation() -> None:
    rng = np.random.default_rng(0)
    first, second = (unit(rng.standard_normal((n, 6)).astype(np.float32)) for n in (4, 5))
    weights = rng.random(4) + 0.5
    best = [max(float(one @ other) for other in second) for one in first]
    expected = sum(weight * value for weight, value in zip(weights, best, strict=True)) / weights.sum()
    assert mean_best_match(first, weights, second) == pytest.approx(expected, abs=1e-6)


def test_a_pair_head_is_asked_for_its_probability(bert_folder: Path) -> None:
    encoder, documents = tiny_tde(bert_folder), list(texts().values())[:2]
    comparer = Comparer(encoder, Comparison.HEAD)
    one, other = encoder.encode(documents)
    expected = encoder.match_probability(one.document, other.document)
    assert comparer.score(comparer.side(one), comparer.side(other)) == pytest.approx(float(expected))


def test_an_encoder_without_a_pair_head_is_refused(mean_encoder: MeanEncoder) -> None:
    with pytest.raises(EncoderError, match="has no pair head, a TDE has; compare by cosine or by maxsim"):
        Comparer(mean_encoder, Comparison.HEAD)
