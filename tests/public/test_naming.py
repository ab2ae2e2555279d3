"""Which strings are texts, and which are names of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from longmatch.sources import named_path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers").mkdir()
    for name in ("draft.md", "my draft.md", "notes.log", "LICENSE", "papers/LICENSE"):
        (tmp_path / name).write_text("words")
    return tmp_path


@pytest.mark.parametrize("name", ["draft.md", "my draft.md", "notes.log", "papers/LICENSE", "./LICENSE"])
def test_an_existing_file_with_a_suffix_or_a_slash_is_a_file(name: str) -> None:
    assert named_path(name) == Path(name)


@pytest.mark.parametrize("name", ["no.pdf", "no.txt.gz", "papers/no.tex", "/no/such", "./no", "../no", "~/no"])
def test_a_string_that_can_only_be_a_file_name_is_one_even_without_a_file(name: str) -> None:
    assert named_path(name) == Path(name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "LICENSE",
        "papers",
        "fox",
        "and/or",
        "how to convert a .docx to .pdf",
        "see no.pdf",
        "draft.md\n",
        "no.\u2028pdf",
        "version 3.11",
        "a\0.pdf",
        "A line that is too long for a name. " * 9,
        "x" * 100_000 + ".pdf",
    ],
)
def test_anything_else_is_a_text(text: str) -> None:
    assert named_path(text) is None


def test_a_folder_is_a_path_only_where_folders_are_accepted() -> None:
    assert named_path("papers", is_folder_named=True) == Path("papers")
    assert named_path("papers") is None
