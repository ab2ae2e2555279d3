"""What `longmatch doctor` reports as installed, and the checks of GPUs that `--deep` makes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.doctor import examine, try_search
from engine.encoders.encoder import Vectors
from engine.errors import EngineError
from engine.store.ann import Ids
from tests.stand_in_gpus import CappedIndex, StandInGpus


def test_gpus_that_find_what_the_cpu_finds_are_listed_with_their_free_memory() -> None:
    detail = try_search(StandInGpus(2, free_bytes=5 << 30))
    assert detail.startswith("as on the CPU within ")
    assert detail.endswith("of a similarity; stand-in 0, 5.0 GiB free, stand-in 1, 5.0 GiB free")


class ShiftedIndex(CappedIndex):
    def search(self, queries: Vectors, k: int, *, params: object = None) -> tuple[Vectors, Ids]:
        D, I = super().search(queries, k, params=params)  # noqa: E741
        return D, np.roll(I, 1, axis=0)


class ShiftedGpus(StandInGpus):
    def place(self, index: object, number: int) -> CappedIndex:
        return ShiftedIndex(super().place(index, number)._index, is_half=True)


def test_gpus_that_find_something_else_are_an_error() -> None:
    with pytest.raises(EngineError, match=r"^GPUs found other vectors than the CPU, .* apart; search there"):
        try_search(ShiftedGpus())


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch sees a GPU")
def test_without_a_gpu_the_doctor_reports_that_the_cpu_searches() -> None:
    for check in examine(deep=True):
        if check.name == "gpu search":
            assert (check.is_well, check.detail) == (True, "none, torch sees no GPU; indexes are searched on the CPU")
            return
    pytest.fail("gpu search was not looked at")


def test_what_is_installed_is_reported_without_trying_it() -> None:
    checks = {check.name: check for check in examine()}
    assert all(check.is_well for check in checks.values())
    assert list(checks)[-3:] == ["faiss", "encoder", "gpu"]
    assert checks["encoder"].detail.startswith("longmatch-minilm, checksum as published, with openvino ")


def test_other_parameters_than_the_published_ones_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.encoders.files.BUNDLED_SHA256", "0" * 64)
    (check,) = (check for check in examine() if check.name == "encoder")
    assert not check.is_well
    assert check.detail.startswith("EncoderError: the weights in ")
