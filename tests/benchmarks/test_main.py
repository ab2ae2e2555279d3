"""The command line of the benchmarks: tasks and studies, and missing packages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from benchmarks.__main__ import STUDIES, TASKS, Programs
from benchmarks.packages import optional, require
from benchmarks.program import Task
from engine.errors import MissingExtra


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
