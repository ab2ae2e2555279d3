from __future__ import annotations

import subprocess
from pathlib import Path

from click.testing import CliRunner

from benchmarks.list import changes, code_of, main, program_of
from benchmarks.runs import CHECKOUT, write_run
from engine.machine import Origin
from tests.benchmarks.made_runs import made_run

COMMANDS = ("python -m benchmarks study growth a.lm", "python -m benchmarks run retrieval rfc", "longmatch index out")


def test_the_program_of_a_record_is_read_off_its_command() -> None:
    named = [program_of({"task": "scale", "origin": {"command": command}}) for command in COMMANDS]
    assert named == ["growth", "retrieval", "scale"]


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


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_code_of_a_program_is_what_it_imports() -> None:
    paths = code_of("benchmarks.tasks.retrieval")
    assert {"benchmarks/tasks/retrieval.py", "benchmarks/systems.py", "engine/scoring"} <= set(paths)
    assert not {"engine/report", "benchmarks/tasks/pairs.py"} & set(paths)
    assert [path for path in paths if not (CHECKOUT / path).exists()] == []


def test_changes_since_a_commit_are_those_of_the_paths(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for name in ("words", "scoring"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "score.py").write_text("A = 1\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "Score")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "scoring" / "score.py").write_text("A = 2\n")
    assert changes(commit, ("words",), tmp_path) == []
    assert changes(commit, ("words", "scoring"), tmp_path) == [
        " scoring/score.py | 2 +-",
        " 1 file changed, 1 insertion(+), 1 deletion(-)",
    ]
    assert changes("0" * 40, ("words",), tmp_path) is None
