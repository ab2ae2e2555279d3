from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.encoding.flops import LayerSizes, chunk_flops
from benchmarks.gpus.encoding import (
    ALONE,
    FROM_TEXT,
    WHOLE,
    chunk_texts,
    drawn_sequences,
    measure_layers,
    measure_sequences,
    measure_texts,
    mixed_lengths,
    operations_per_token,
)
from benchmarks.gpus.machine import measure_peak, seconds_of
from benchmarks.gpus.record import Peak
from engine.encoders.mean import MeanEncoder
from tests.fakes import make_document

PEAK = Peak(8, bfloat16=0.5, float16=0.5, float32=2.0)


@pytest.fixture(autouse=True)
def measurements_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.gpus.machine.LEAST_SECONDS", 0.01)


def test_operations_of_a_token_are_its_share_of_those_of_a_chunk(mean_encoder: MeanEncoder) -> None:
    config = mean_encoder.backbone.model.config
    sizes = LayerSizes(config.num_hidden_layers, config.hidden_size, config.intermediate_size)
    assert operations_per_token(config, 20) == chunk_flops(sizes, [20, 20, 20]) / 60


def test_a_model_of_other_words_has_no_known_cost() -> None:
    assert operations_per_token(SimpleNamespace(d_model=8), 20) is None


def test_every_way_is_measured_under_every_budget(mean_encoder: MeanEncoder) -> None:
    backbone = mean_encoder.backbone
    sequences = drawn_sequences(backbone, [6, 3, 9, 9], 0)
    assert [len(one) for one in sequences] == [6, 3, 9, 9]
    points = [
        *measure_sequences(backbone, "mixed lengths", sequences, (16, 64), PEAK),
        *measure_layers(backbone, 10, (40,), PEAK),
        *measure_texts(mean_encoder, ["the quick fox", "a house"], 64, None),
    ]
    assert [(point.system, point.token_budget) for point in points] == [
        (WHOLE, 16),
        (WHOLE, 64),
        (ALONE, 40),
        (FROM_TEXT, 64),
    ]
    assert [point.n_sequences for point in points] == [4, 4, 4, 2]
    cost = operations_per_token(backbone.model.config, 10)
    assert cost is not None and points[2].share_of_peak == pytest.approx(
        points[2].tokens_per_second * cost / 2e12, abs=1e-4
    )
    assert points[3].share_of_peak is None


def test_chunk_texts_are_those_that_are_encoded(mean_encoder: MeanEncoder) -> None:
    document = make_document("x", [("one", "the quick brown fox. " * 5), ("two", "a house by the river.")])
    texts = chunk_texts(mean_encoder, [document])
    assert texts == [document.text[chunk.start : chunk.stop] for chunk in mean_encoder.segment(document).chunks]
    assert len(texts) > 2


def test_mixed_lengths_stay_inside_what_can_be_read() -> None:
    lengths = mixed_lengths(4000, 510, 0)
    assert lengths == mixed_lengths(4000, 510, 0)
    assert min(lengths) >= 1 and max(lengths) <= 510
    assert np.median(lengths) == pytest.approx(102, rel=0.05) and np.mean(lengths) == pytest.approx(120, rel=0.05)


def test_work_is_repeated_until_its_time_is_filled() -> None:
    runs: list[int] = []
    seconds = seconds_of(lambda: runs.append(1), "cpu")
    assert len(runs) > 2 and 0 < seconds < 0.01


def test_a_peak_is_a_number_of_each_precision() -> None:
    peak = measure_peak("cpu", 64)
    assert peak.size == 64 and min(peak.bfloat16, peak.float16, peak.float32) >= 0
