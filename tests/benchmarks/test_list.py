from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from benchmarks.list import main, program_of
from benchmarks.runs import write_run
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run

COMMANDS = ("python -m benchmarks study recall a.lm", "python -m benchmarks run retrieval rfc", "longmatch index out")


def test_the_program_of_a_record_is_read_off_its_command() -> None:
    named = [program_of({"task": "scale", "origin": {"command": command}}) for command in COMMANDS]
    assert named == ["search", "retrieval", "scale"]


def test_the_list_fits_a_screen(origin: Origin, tmp_path: Path) -> None:
    for task in ("rfc", "proposals"):
        write_run(made_run("bm25", [1.0], origin, task), tmp_path / "results")
    (tmp_path / "rfc").mkdir()
    (tmp_path / "rfc" / "corpus.jsonl.gz").touch()
    done = CliRunner().invoke(main, ["--results", str(tmp_path / "results"), "--data", str(tmp_path)])
    lines = done.output.splitlines()
    assert (done.exit_code, lines[0]) == (0, "Corpora")
    assert "  rfc                                    here" in lines
    assert next(line for line in lines if line.startswith("  retrieval")).split()[:2] == ["retrieval", "2"]
    assert next(line for line in lines if line.startswith("  growth")).split() == ["growth"]
    assert len(lines) < 40 and max(map(len, lines)) < 110
