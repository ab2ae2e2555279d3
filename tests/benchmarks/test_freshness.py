from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.list import changes, code_of
from benchmarks.runs import CHECKOUT


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
