import sys
from pathlib import Path

import pytest

from benchmarks.isolation import ProcessFailed
from benchmarks.runs import read_runs
from benchmarks.speed.timed import CPU, PEAK, READ, WALL, Command, main, run, time_commands
from tests.benchmarks.made_runs import run_program


def test_a_command_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    measured = run(Command("a", "sum", ["-c", "sum(range(10**6)); bytearray(64 << 20)"]), tmp_path)
    assert list(measured) == [WALL, CPU, PEAK, READ]
    assert 0 < measured[CPU] <= 2 * measured[WALL] and measured[PEAK] > 64
    held = bytearray(128 << 20)  # by this process, of which the measured one must know nothing
    assert run(Command("a", "nothing", ["-c", "pass"]), tmp_path)[PEAK] < 64 < len(held) >> 20


def test_the_smallest_of_all_rounds_is_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rounds = iter([{WALL: 3.0, CPU: 1.0}, {WALL: 2.0, CPU: 4.0}])
    monkeypatch.setattr("benchmarks.speed.timed.run", lambda *_: next(rounds))
    (case,) = time_commands([Command("start", "nothing", ())], tmp_path, 2)["start"]
    assert (case.id, case.values) == ("nothing", {WALL: 2.0, CPU: 1.0})


def test_a_command_that_fails_is_named_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"the end ended with 3 \(no more\); mend that first"):
        run(Command("a", "the end", ["-c", "import sys; print('no more'); sys.exit(3)"]), tmp_path)


@pytest.mark.slow
def test_the_quick_part_runs_each_group(real_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_here(command: Command, folder: Path) -> dict[str, float]:
        """As `run`, in this process."""
        monkeypatch.chdir(folder)
        kind, code, *words = command.arguments
        monkeypatch.setattr(sys, "argv", [kind, *words])
        try:
            exec("from indexer.cli import main; main()" if kind == "-m" else code, {})
        except SystemExit as ended:
            assert not ended.code, command
        return dict.fromkeys((WALL, CPU, PEAK, READ), 1.0)

    monkeypatch.setattr("benchmarks.speed.timed.run", run_here)
    done = run_program(main, real_folder, "--quick", "--out", tmp_path)
    runs = {one.system: one for one in read_runs(tmp_path)}
    assert set(runs) == {"start-up", "indexing", "planning", "first answer"}
    assert "| papers, 240 documents, " in done.output
