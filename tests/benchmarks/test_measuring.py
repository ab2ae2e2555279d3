from __future__ import annotations

import os
from pathlib import Path

import faiss
import pytest
import torch
from click.testing import CliRunner
from threadpoolctl import threadpool_info

from benchmarks.isolation import Percentiles, ProcessFailed, limited_threads, percentiles, run_fresh
from benchmarks.program import Measurement, measurement, program
from benchmarks.runs import Case, Run, read_runs
from engine.encoders import hardware
from engine.errors import EngineError
from tests.benchmarks.fresh import die, hold, refuse

MIB = 2**20
pytestmark = pytest.mark.usefixtures("restored_settings")


@pytest.mark.slow
def test_a_fresh_process_returns_its_result_and_its_memory() -> None:
    answer, memory = run_fresh(hold, 200)
    assert answer == {"process": answer["process"], "sum": 200 * MIB} and answer["process"] != os.getpid()
    assert 190 < memory.peak_anonymous < memory.peak


def test_a_cap_is_kept() -> None:
    with pytest.raises(ProcessFailed, match="hold ended with not enough memory under a cap of 700 MiB; allow more"):
        run_fresh(hold, 800, cap_bytes=700 * MIB)


def test_a_refusal_and_a_crash_are_raised_again() -> None:
    with pytest.raises(EngineError, match="k is 0; it must be at least 1"):
        run_fresh(refuse)
    with pytest.raises(ProcessFailed, match=r"die ended with exit code 7$"):
        run_fresh(die)


def test_every_library_gets_the_given_number_of_threads() -> None:
    with limited_threads(1, width=16):
        assert (torch.get_num_threads(), faiss.omp_get_max_threads()) == (1, 1)
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    with limited_threads(2, width=16):
        assert (torch.get_num_threads(), faiss.omp_get_max_threads()) == (2, 2)
        assert os.environ["LANCE_CPU_THREADS"] == os.environ["RAYON_NUM_THREADS"] == "2"


def test_every_library_multiplies_matrices_as_our_own_search_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_stays_float32", lambda: True)
    faiss.cvar.distance_compute_blas_threshold = 128_000
    torch.set_float32_matmul_precision("highest")
    with limited_threads(1, width=16):
        assert faiss.cvar.distance_compute_blas_threshold == 3 * 16
        assert torch.get_float32_matmul_precision() == "medium"


def test_percentiles_lie_between_neighbours() -> None:
    assert percentiles([float(number) for number in range(101)]) == Percentiles(50.0, 95.0, 99.0)
    assert percentiles([2.0, 1.0]) == Percentiles(1.5, 1.95, 1.99)
    assert percentiles([3.0]) == Percentiles(3.0, 3.0, 3.0)


@program
@measurement(quick="Nothing", work="Folder.")
def main(run: Measurement) -> None:
    """Record the seed, and whether a folder was given."""
    with run.folder() as folder:
        (folder / "kept").touch()
    case = Case(id="seed", values={"seed": run.seed})
    run.keep(Run(task="made", dataset="pets", system="made", origin=run.origin, cases=[case]))


@pytest.mark.parametrize("given", [["--seed", "3"], ["--seed", "3", "--quick"]])
def test_a_run_holds_seed_and_command(given: list[str], tmp_path: Path) -> None:
    assert CliRunner().invoke(main, [*given, "--out", str(tmp_path)]).exit_code == 0
    (run,) = read_runs(tmp_path)
    assert (run.values("seed"), run.origin.seed) == ([3], 3)
    assert run.origin.command == " ".join(["python -m benchmarks study test_measuring", *given])


def test_a_quick_run_records_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("benchmarks.program.RESULTS", tmp_path)
    assert CliRunner().invoke(main, ["--quick"]).exit_code == 0
    assert list(tmp_path.iterdir()) == []
