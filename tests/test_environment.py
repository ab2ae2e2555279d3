"""What `longmatch doctor` reports, and the one FAISS that must be installed."""

import pytest
import torch

import engine.scan as scan_module
from engine import environment
from engine.environment import installed_faiss, refuse_windows, require_one_faiss
from engine.errors import EngineError, MissingExtra
from engine.machine import examine, try_search


def _installed(monkeypatch: pytest.MonkeyPatch, found: dict[str, str]) -> None:
    monkeypatch.setattr(environment, "installed_faiss", lambda: found)


@pytest.mark.parametrize("name", ["faiss-cpu", "faiss-gpu", "faiss-gpu-cuvs"])
def test_any_single_distribution_is_accepted(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _installed(monkeypatch, {name: "1.0"})
    require_one_faiss()


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ({"faiss-cpu": "1.1", "faiss-gpu": "1.2"}, "faiss-gpu"),
        ({"faiss-cpu": "1.1", "faiss-gpu-cu12": "1.2"}, "faiss-cpu"),
        ({"faiss-gpu-cu12": "1.2"}, "faiss-cpu"),
    ],
)
def test_two_distributions_or_the_slow_one_are_named_with_the_repairing_command(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, str], kept: str
) -> None:
    _installed(monkeypatch, found)
    with pytest.raises(EngineError) as raised:
        require_one_faiss()
    names = " and ".join(f"{name} {number}" for name, number in found.items())
    assert str(raised.value) == (
        f"{names} is installed, but exactly one of faiss-cpu, faiss-gpu, faiss-gpu-cuvs must be; reinstall it: "
        f"pip uninstall -y {' '.join(found)} && pip install --force-reinstall --no-deps {kept}"
    )


def test_this_environment_has_one_faiss_and_without_it_the_error_has_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(installed_faiss()) == 1
    _installed(monkeypatch, {})
    with pytest.raises(MissingExtra) as raised:
        require_one_faiss()
    assert str(raised.value) == "The index needs FAISS; install it: pip install 'faiss-cpu<1.16,>=1.15'"


def test_windows_is_refused_with_advice_to_use_linux() -> None:
    with pytest.raises(EngineError, match=r"does not run on Windows: .* use Linux, for example in WSL"):
        refuse_windows("win32")


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_other_systems_are_not_refused(system: str) -> None:
    refuse_windows(system)


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
