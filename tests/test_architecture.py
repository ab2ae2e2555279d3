"""The two ways of the page on architecture name few files, which import each other; files that pages name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_layers import imported_modules

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
MOST_FILES = 8


def files_after(title: str) -> list[str]:
    """The files of the indented block below a line."""
    block = PAGE.split(f"{title}\n\n", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"(?:engine|indexer)/[\w/]+\.py", block)


@pytest.mark.parametrize("title", ["A file into the index:", "A query to its hits:"])
def test_a_way_is_short_and_its_files_belong_together(title: str) -> None:
    files = files_after(title)
    assert 0 < len(files) <= MOST_FILES and all((ROOT / file).is_file() for file in files)
    names = {file.removesuffix(".py").replace("/", ".") for file in files}
    imports = {name: imported_modules(name.split(".")[0])[name] & names for name in names}
    imported = set().union(*imports.values())
    assert [name for name in names if not imports[name] and name not in imported] == []


def test_files_that_pages_and_workflows_name_exist() -> None:
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / ".github").rglob("*.yml"),
    ]
    named = re.compile(r"\b(?:engine|indexer|longmatch|benchmarks|tests)/[\w/]+\.py\b")
    gone = {
        f"{page.relative_to(ROOT)}: {file}"
        for page in pages
        for file in named.findall(page.read_text())
        if "NAME" not in file and not (ROOT / file).is_file()
    }
    assert gone == set()
