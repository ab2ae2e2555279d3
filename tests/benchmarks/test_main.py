"""The command line of the benchmarks: tasks and studies, the list of them, and missing packages."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import STUDIES, TASKS, Programs
from benchmarks.list import changes, code_of, main, program_of
from benchmarks.packages import optional, require
from benchmarks.program import Task
from benchmarks.runs import CHECKOUT, write_run
from engine.errors import MissingExtra
from engine.machine import Origin
from tests.benchmarks.made_runs import made_run


@pytest.mark.parametrize("group", [TASKS, STUDIES])
def test_every_module_with_a_command_is_a_program(group: Programs) -> None:
    for name in group.modules:
        command = group.get_command(click.Context(group), name)
        assert isinstance(command, Task) == (group is TASKS), name
        assert command is not None and command.help is not None
        assert command.help.splitlines()[0] == group.modules[name][1]
        assert f"python -m benchmarks {group.name} {name}" in command.help


def test_tasks_and_studies_have_no_name_in_common() -> None:
    assert {"retrieval"} <= set(TASKS.modules) and {"growth", "peers"} <= set(STUDIES.modules)
    assert set(TASKS.modules).isdisjoint(STUDIES.modules)


def test_help_has_a_line_for_each_program_and_imports_none() -> None:
    code = (
        "import sys; from benchmarks.__main__ import main; main(['study', '--help'], standalone_mode=False); "
        "assert 'torch' not in sys.modules and 'benchmarks.speed.serve' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(STUDIES.modules) <= {line.split()[0] for line in done.stdout.splitlines() if line.strip()}


def test_records_are_written_and_drawn_without_the_store() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('faiss', 'openvino', 'sqlalchemy'))); "
        "import benchmarks.program, benchmarks.tables.pivot"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_quick_part_of_every_program_is_run_by_its_tests() -> None:
    texts = [path.read_text() for path in Path(__file__).parent.rglob("test_*.py")]
    for group in (TASKS, STUDIES):
        for name, (module, _) in group.modules.items():
            if re.search(r'"--quick"|\bquick=f?"', Path(f"{module.replace('.', '/')}.py").read_text()):
                imports = f"from {module} import "
                assert any(imports in text and '"--quick"' in text for text in texts), name


def test_require_names_the_missing_package_and_its_extra() -> None:
    with pytest.raises(MissingExtra, match=r"a sum needs no-such; install it: pip install "):
        require("a sum", {"numpy": "numpy", "no_such_module": "no-such"}, "peers")


def test_optional_names_the_missing_package_and_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(MissingExtra, match=r"^BM25 needs bm25s; install it: pip install 'bm25s"):
        optional("bm25s", "BM25", "bm25s")


def test_a_fault_inside_a_package_is_not_taken_for_its_absence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "halfbroken.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        optional("halfbroken", "something", "halfbroken")


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
