"""Imports point one way: benchmarks -> longmatch -> indexer -> engine; inside a package there is no cycle."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
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
IS_TYPE_CHECKING = ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def modules(package: str) -> dict[str, Path]:
    files = sorted((ROOT / package).rglob("*.py"))
    names = (file.relative_to(ROOT).with_suffix("").parts for file in files)
    return {
        ".".join(part for part in name if part != "__init__"): file for name, file in zip(names, files, strict=True)
    }


def imports(tree: ast.AST, *, module: str, is_package: bool) -> Iterator[str]:
    """Every name that a module imports, inside functions too, types for checking left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in IS_TYPE_CHECKING:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        else:
            yield from imports(node, module=module, is_package=is_package)


def imported_modules(package: str, *, at_top_only: bool = False) -> dict[str, set[str]]:
    """For each module of a package the modules of this project that it imports."""
    known = {name for other in BELOW for name in modules(other)}
    graph = {}
    for module, file in modules(package).items():
        tree = ast.parse(file.read_text())
        if at_top_only:
            tree.body = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
        found = imports(tree, module=module, is_package=file.name == "__init__.py")
        graph[module] = {_longest(name, known) for name in found} - {"", module}
    return graph


def _longest(name: str, known: set[str]) -> str:
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


@pytest.mark.slow
@pytest.mark.parametrize("package", BELOW)
def test_a_package_imports_only_itself_and_packages_below_it(package: str) -> None:
    allowed = BELOW[package] | {package}
    wrong = [
        f"{module} imports {name}"
        for module, file in modules(package).items()
        for name in imports(ast.parse(file.read_text()), module=module, is_package=file.name == "__init__.py")
        if name.split(".")[0] in FOLDERS and name.split(".")[0] not in allowed
    ]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("package", BELOW)
def test_no_package_imports_in_a_circle(package: str) -> None:
    graph = imported_modules(package, at_top_only=package in ("engine", "benchmarks"))
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


@pytest.mark.slow
def test_no_module_of_engine_outside_training_imports_training() -> None:
    users = {
        module
        for module, found in imported_modules("engine").items()
        if not module.startswith("engine.training") and any(name.startswith("engine.training") for name in found)
    }
    assert users == set()


def test_importing_a_package_loads_neither_torch_nor_faiss() -> None:
    heavy = "{'torch', 'faiss', 'transformers', 'sqlalchemy'}"
    code = f"import sys, engine, indexer, longmatch; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
