"""The size of the house: lines, files, parameters and small files with one user. A budget falls with each step.

A budget is raised only in a commit whose body names the capability that the new lines carry.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = ("engine", "indexer", "longmatch")
TESTS_OF_BENCHMARKS = ROOT / "tests" / "benchmarks"
MAX_PARAMETERS = 8
SMALL = 100  # lines; a smaller file with one user belongs beside that user


def files_of(*packages: str) -> list[Path]:
    return [file for package in packages for file in sorted((ROOT / package).rglob("*.py"))]


def n_lines(files: list[Path]) -> int:
    return sum(file.read_text().count("\n") for file in files)


def files_of_tests(*, benchmarks: bool) -> list[Path]:
    return [file for file in files_of("tests") if file.is_relative_to(TESTS_OF_BENCHMARKS) == benchmarks]


def n_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """As ruff's PLR0913 counts: all but self and cls."""
    names = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return len([name for name in names if name.arg not in ("self", "cls")])


def functions_with_many_parameters(files: list[Path]) -> list[str]:
    return [
        f"{file.relative_to(ROOT)}:{node.name}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and n_parameters(node) > MAX_PARAMETERS
    ]


def small_files_with_one_user(package: str) -> list[str]:
    """Files under `SMALL` lines whose names only one other file of the product imports."""
    files = {module_name(file): file for file in files_of(*PRODUCT)}
    users: dict[str, set[str]] = {name: set() for name in files}
    for name, file in files.items():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in users and node.module != name:
                users[node.module].add(name)
    return [
        name
        for name, file in files.items()
        if name.startswith(package) and file.name != "__init__.py"
        if len(users[name]) == 1 and file.read_text().count("\n") < SMALL
    ]


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize(
    ("packages", "max_lines", "max_files"),
    [(PRODUCT, 54_160, 190), (("benchmarks",), 12_000, 73)],
    ids=["product", "benchmarks"],
)
def test_the_code_stays_within_its_budget(packages: tuple[str, ...], max_lines: int, max_files: int) -> None:
    files = files_of(*packages)
    assert (n_lines(files) <= max_lines, len(files) <= max_files) == (True, True), (n_lines(files), len(files))


@pytest.mark.parametrize(("benchmarks", "max_lines"), [(False, 39_820), (True, 6_000)], ids=["product", "benchmarks"])
def test_the_tests_stay_within_their_budget(benchmarks: bool, max_lines: int) -> None:
    assert n_lines(files_of_tests(benchmarks=benchmarks)) <= max_lines


def test_few_functions_have_many_parameters() -> None:
    assert len(functions_with_many_parameters(files_of(*PRODUCT))) <= 5


@pytest.mark.parametrize(("package", "limit"), [("engine", 7), ("indexer", 4), ("longmatch", 4)])
def test_few_small_files_have_one_user(package: str, limit: int) -> None:
    assert len(small_files_with_one_user(package)) <= limit
