"""What programs have in common: options, command lines, errors, fresh processes, threads, and records."""

import os
from pathlib import Path

import click
import faiss
import pytest
import torch
from click.testing import CliRunner
from threadpoolctl import threadpool_info

from benchmarks.isolation import Percentiles, ProcessFailed, limited_threads, percentiles, run_fresh
from benchmarks.program import Measurement, command_line, log, measurement, names_of, origin_of, program, read_numbers
from benchmarks.runs import Case, Run, read_runs
from engine.encoders import hardware
from engine.errors import EngineError, QueryError
from tests.benchmarks.fresh import die, hold, refuse


@program
@click.option("--depth", default=10)
@click.option("--data", default="data")
@click.pass_context
def main(context: click.Context, depth: int, data: str) -> None:
    """Print where a record would come from."""
    if depth < 1:
        raise QueryError("depth is 0; it must be at least 1")
    click.echo(origin_of(context, depth).command)


def test_an_error_of_the_engine_is_one_line() -> None:
    done = CliRunner().invoke(main, ["--depth", "0"])
    assert (done.exit_code, done.stderr) == (1, "Error: depth is 0; it must be at least 1\n")


@pytest.mark.parametrize("given", [["--depth", "5"], ["--depth", "5", "--data", "elsewhere"]])
def test_a_command_has_the_name_of_its_file_and_no_folders(given: list[str]) -> None:
    assert CliRunner().invoke(main, given).output == "python -m benchmarks study test_program --depth 5\n"


def read_sizes(_context: click.Context, _option: click.Parameter, given: str) -> dict[str, str]:
    return dict(one.split("=") for one in given.split(",") if one)


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("-k", "--top", "k", default=10)
@click.option("--exact", is_flag=True)
@click.option("--encoder", default="")
@click.option("--vectors", type=click.Path(path_type=Path))
@click.option("--sizes", callback=read_sizes, default="")
@click.option("--out", default="here")
@click.pass_context
def sized(context: click.Context, out: str, **_: object) -> None:
    click.echo(command_line("study program", context, leave_out=("out",)))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["/some/where/a b.lm", "-k", "5", "--exact", "--out", "/tmp/x"], "'a b.lm' --top 5 --exact"),
        (["one", "a b"], "one 'a b'"),
        (["--sizes", "one=1,two=2"], "--sizes one=1,two=2"),
        (["--vectors", "somewhere/glove.txt"], "--vectors glove.txt"),
        (["--vectors", "."], "--vectors ."),
        (["--encoder", "https://me@host/papers"], "--encoder https://..."),
        (["--encoder", "/some/where/mine"], "--encoder mine"),
        (["--encoder", "/some/where/mine:contriever-first"], "--encoder mine:contriever-first"),
        (["--encoder", "facebook/contriever:first"], "--encoder facebook/contriever:first"),
    ],
)
def test_the_command_names_values_as_typed_and_no_folder_of_this_machine(given: list[str], shown: str) -> None:
    assert CliRunner().invoke(sized, given).output == f"python -m benchmarks study program {shown}\n"


@click.command()
@click.option("--systems", default="b", callback=names_of(["a", "b"]))
@click.option("--shots", default="5", callback=read_numbers)
@click.option("--sizes", callback=read_numbers)
def listed(systems: tuple[str, ...], shots: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    log("working")
    click.echo(f"{systems} {shots} {sizes}")


def test_names_and_numbers_are_read_each_once() -> None:
    done = CliRunner().invoke(listed, ["--systems", "b, a,b", "--shots", "10,5,10"])
    assert (done.stdout, done.stderr) == ("('b', 'a') (10, 5) ()\n", "working\n")
    assert CliRunner().invoke(listed).stdout == "('b',) (5,) ()\n"


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--systems", "a,c", "'c' is not one of a, b"), ("--shots", "5,x", "'5,x' must be whole numbers from 1 on")],
)
def test_unknown_names_and_values_that_are_not_numbers_are_refused(option: str, value: str, said: str) -> None:
    assert said in CliRunner().invoke(listed, [option, value]).stderr


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
def seeded(run: Measurement) -> None:
    """Record the seed, and whether a folder was given."""
    with run.folder() as folder:
        (folder / "kept").touch()
    case = Case(id="seed", values={"seed": run.seed})
    run.keep(Run(task="made", dataset="pets", system="made", origin=run.origin, cases=[case]))


@pytest.mark.parametrize("given", [["--seed", "3"], ["--seed", "3", "--quick"]])
def test_a_run_holds_seed_and_command(given: list[str], tmp_path: Path) -> None:
    assert CliRunner().invoke(seeded, [*given, "--out", str(tmp_path)]).exit_code == 0
    (run,) = read_runs(tmp_path)
    assert (run.values("seed"), run.origin.seed) == ([3], 3)
    assert run.origin.command == " ".join(["python -m benchmarks study test_program", *given])


def test_a_quick_run_records_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("benchmarks.program.RESULTS", tmp_path)
    assert CliRunner().invoke(seeded, ["--quick"]).exit_code == 0
    assert list(tmp_path.iterdir()) == []
