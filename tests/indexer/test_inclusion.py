"""LaTeX files that another file of the folder includes are part of that document."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.text.document import Document
from indexer.building.corpus import corpus_files, read_corpus
from indexer.building.inclusion import without_included


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.tex"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def names(folder: Path) -> list[str]:
    return [doc_id for _, doc_id in corpus_files([str(folder)])]


def test_an_included_file_is_no_document_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, main=r"one \input{parts/a}", parts__a=r"two \input{parts/b}", parts__b="three", other="four")
    (tmp_path / "notes.txt").write_text("five")
    assert names(tmp_path) == ["main.tex", "notes.txt", "other.tex"]
    texts = [one.text.split() for one in read_corpus([str(tmp_path)]) if isinstance(one, Document)]
    assert texts == [["one", "two", "three"], ["five"], ["four"]]


def test_an_included_file_that_is_named_is_read(tmp_path: Path) -> None:
    write(tmp_path, main=r"one \input{a}", a="two")
    assert [doc_id for _, doc_id in corpus_files([str(tmp_path / "a.tex")])] == ["a.tex"]


def test_a_file_included_in_a_comment_or_from_another_folder_is_a_document(tmp_path: Path) -> None:
    write(tmp_path, main="one %\\input{a}\n\\input{../up}", a="two", sub__main=r"three \input{../a}")
    assert names(tmp_path) == ["a.tex", "main.tex", "sub/main.tex"]


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_files_that_include_each_other_one_stays(tmp_path: Path, first: str) -> None:
    write(tmp_path, a=r"one \input{b}", b=r"two \input{a}", self=r"three \input{self}")
    files = sorted(tmp_path.glob("*.tex"), reverse=first == "b")
    assert sorted(file.name for file in without_included(files)) == ["a.tex", "self.tex"]


def test_other_formats_are_left_as_they_are(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("b.txt", "a.pdf", "c.md")]
    assert without_included(files) == files
