"""The limit of GPU memory, as far as it can be tested without a GPU."""

from __future__ import annotations

import pytest

from engine.encoders.mean import MeanEncoder
from engine.errors import BudgetExceeded
from indexer.building.accelerator import is_on_gpu, limited_vram, weights_bytes
from tests.fakes import FakeEncoder


def test_the_bytes_of_all_parameters_of_the_model_are_counted(mean_encoder: MeanEncoder) -> None:
    assert weights_bytes(mean_encoder) >= 4 * sum(one.numel() for one in mean_encoder.module.parameters())
    assert weights_bytes(FakeEncoder()) == 0


def test_on_the_cpu_a_limit_of_gpu_memory_has_no_effect(mean_encoder: MeanEncoder) -> None:
    assert not is_on_gpu(mean_encoder)
    with limited_vram(mean_encoder, 1):
        pass


def test_parameters_that_do_not_fit_are_refused_with_the_limit_and_the_next_step(
    mean_encoder: MeanEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mean_encoder, "device", "cuda:1")
    assert is_on_gpu(mean_encoder)
    with pytest.raises(BudgetExceeded) as raised, limited_vram(mean_encoder, 1000):
        pytest.fail("it was begun")
    assert str(raised.value).endswith(
        "MB, --vram allows 0 MB; allow more than 1M, take a smaller --encoder, or use --device cpu"
    )
