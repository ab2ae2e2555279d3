from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from benchmarks.__main__ import STUDIES, TASKS
from benchmarks.list import NEEDS, main, program_of, seconds_of, system_minutes
from benchmarks.runs import write_run
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run


def test_needs_are_those_of_programs_that_exist() -> None:
    assert set(NEEDS) <= {*TASKS.modules, *STUDIES.modules}


def test_the_program_of_a_record_is_read_off_its_command() -> None:
    def named(command: str) -> str:
        return program_of({"kind": "scale", "origin": {"command": command}})

    assert named("python -m benchmarks.kill --kills 3") == "kill"
    assert named("python -m benchmarks.additions a.lm --documents 3") == "growth"
    assert named("python -m benchmarks run retrieval rfc") == "retrieval"
    assert named("longmatch index out") == "scale"


def test_seconds_are_those_of_fitting_and_of_all_cases() -> None:
    assert seconds_of({"kind": "a", "seconds": 5}) == 5
    assert seconds_of({"fit_seconds": 2.0, "seconds": 3.0}) == 5
    assert seconds_of({"kind": "a"}) is None


def test_encoding_stands_apart_from_the_systems_that_share_it() -> None:
    header = {"task": "retrieval", "dataset": "rfc@0", "system": "evidence", "split": "test", "variant": ""}
    kept = {**header, "n_tokens": 0, "fit_seconds": 1.0, "seconds": 30.0}
    encoded = {**header, "n_tokens": 9, "fit_seconds": 120.0, "seconds": 60.0}
    valid = {**kept, "split": "valid", "seconds": 900.0}
    assert system_minutes([encoded, kept, valid]) == {("evidence", "rfc"): 1.0, ("encoding first", "rfc"): 2.0}


def test_the_list_fits_a_screen(origin: Origin, tmp_path: Path) -> None:
    write_run(made_run("bm25", [1.0], origin, "rfc", fit_seconds=60, seconds=30), tmp_path / "results")
    write_run(made_run("bm25", [1.0], origin, "proposals", fit_seconds=1), tmp_path / "results")
    (tmp_path / "rfc").mkdir()
    (tmp_path / "rfc" / "corpus.jsonl.gz").touch()
    done = CliRunner().invoke(main, ["--results", str(tmp_path / "results"), "--data", str(tmp_path)])
    lines = done.output.splitlines()
    assert (done.exit_code, lines[0]) == (0, "Systems of retrieval, minutes of a recorded run on 2 cores")
    assert (lines[2].split()[-1], lines[2].split()[:3]) == ("here", ["corpus", "to", "fetch"])
    assert next(line for line in lines if line.startswith("  bm25")).split() == ["bm25", "<0.1", "1.5"]
    assert next(line for line in lines if line.startswith("  growth")).split() == ["growth", "an", "index"]
    assert len(lines) < 60 and max(map(len, lines)) < 110
