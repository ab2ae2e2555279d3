"""Imports point one way: benchmarks -> longmatch -> indexer -> engine; no file and no room imports in a circle.

A room is a folder of a package, or a file at its top. Imports count wherever they stand: at the top of a file, inside a
function, or for types alone.
"""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BELOW = {
    "engine": set[str](),
    "indexer": {"engine"},
    "longmatch": {"engine", "indexer"},
    "benchmarks": {"engine", "indexer", "longmatch"},
}
FOLDERS = [*BELOW, "tests", "demo"]


@cache
def modules(package: str) -> dict[str, Path]:
    files = sorted((ROOT / package).rglob("*.py"))
    names = (file.relative_to(ROOT).with_suffix("").parts for file in files)
    return {
        ".".join(part for part in name if part != "__init__"): file for name, file in zip(names, files, strict=True)
    }


def imports(tree: ast.AST, *, module: str, is_package: bool) -> Iterator[str]:
    """Every name that a module imports, inside functions and for types too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def names_imported(module: str, file: Path) -> set[str]:
    return set(imports(ast.parse(file.read_text()), module=module, is_package=file.name == "__init__.py"))


@cache
def imported_modules(package: str) -> dict[str, set[str]]:
    """For each module of a package the modules of this project that it imports."""
    known = {name for other in BELOW for name in modules(other)}
    return {
        module: {longest(name, known) for name in names_imported(module, file)} - {"", module}
        for module, file in modules(package).items()
    }


def imported_rooms(package: str) -> dict[str, set[str]]:
    """For each room of a package the other rooms of the package that it imports."""
    rooms: dict[str, set[str]] = {}
    for module, targets in imported_modules(package).items():
        inside = {room(target) for target in targets if target.split(".")[0] == package}
        rooms.setdefault(room(module), set()).update(inside - {room(module)})
    return rooms


def room(module: str) -> str:
    return ".".join(module.split(".")[:2])


def longest(name: str, known: set[str]) -> str:
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


def members_of_circles(graph: Mapping[str, Iterable[str]]) -> set[str]:
    """The nodes of a graph that reach themselves."""
    members: set[str] = set()
    rest = {node: set(targets) & set(graph) for node, targets in graph.items()}
    while True:
        try:
            tuple(TopologicalSorter(rest).static_order())
        except CycleError as error:
            circle = set(error.args[1])
            members |= circle
            merged = min(circle)
            joined = set().union(*(rest.pop(node, set()) for node in circle)) - circle
            rest = {node: {merged if t in circle else t for t in targets} for node, targets in rest.items()}
            rest[merged] = joined
        else:
            return members


@pytest.mark.parametrize("package", BELOW)
def test_a_package_imports_only_itself_and_packages_below_it(package: str) -> None:
    allowed = BELOW[package] | {package}
    wrong = [
        f"{module} imports {name}"
        for module, file in modules(package).items()
        for name in names_imported(module, file)
        if name.split(".")[0] in FOLDERS and name.split(".")[0] not in allowed
    ]
    assert wrong == []


@pytest.mark.parametrize("package", BELOW)
def test_no_files_import_in_a_circle(package: str) -> None:
    assert members_of_circles(imported_modules(package)) == set()


@pytest.mark.parametrize("package", BELOW)
def test_no_rooms_import_in_a_circle(package: str) -> None:
    assert members_of_circles(imported_rooms(package)) == set()


def test_members_of_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert members_of_circles(graph) == {"b", "c", "d", "e"}


def test_no_module_of_engine_outside_training_imports_training() -> None:
    users = {
        module
        for module, targets in imported_modules("engine").items()
        if not module.startswith("engine.training") and any(name.startswith("engine.training") for name in targets)
    }
    assert users == set()


def test_importing_a_package_loads_neither_torch_nor_faiss() -> None:
    heavy = "{'torch', 'faiss', 'transformers', 'sqlalchemy'}"
    code = f"import sys, engine, indexer, longmatch; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
