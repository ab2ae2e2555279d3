"""What `longmatch doctor` reports as installed, and the checks of GPUs that `--deep` makes."""

import pytest
import torch

import engine.scan as scan_module
from engine.errors import EngineError
from engine.machine import examine, try_search


def test_devices_that_compute_as_the_cpu_are_well_and_others_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert try_search(["cpu", "cpu"]).startswith("as on the CPU within ")
    monkeypatch.setattr(scan_module, "_products", lambda rows, halves: 0.99 * (rows.float() @ halves.float()))
    with pytest.raises(EngineError, match=r"^GPUs are up to 1e-02 of a similarity off the CPU; search there"):
        try_search(["cpu"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch sees a GPU")
def test_without_a_gpu_the_doctor_reports_that_the_cpu_searches() -> None:
    for check in examine(deep=True):
        if check.name == "gpu search":
            assert (check.is_well, check.detail) == (True, "none, torch sees no GPU; indexes are searched on the CPU")
            return
    pytest.fail("gpu search was not looked at")


def test_what_is_installed_is_reported_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {check.name: check for check in examine()}
    assert all(check.is_well for check in checks.values())
    assert list(checks)[-3:] == ["faiss", "encoder", "gpu"]
    assert checks["encoder"].detail.startswith("longmatch-minilm, checksum as published, with openvino ")
    monkeypatch.setattr("engine.encoders.files.BUNDLED_SHA256", "0" * 64)
    (check,) = (check for check in examine() if check.name == "encoder")
    assert not check.is_well
    assert check.detail.startswith("EncoderError: the weights in ")
