"""Paths, patterns and standard input become a stream of documents."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.errors import DocumentError
from engine.readers import Unreadable
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.corpus import BROKEN_LINK, NO_SUFFIX, corpus_files, read_corpus, unsupported_files
from tests.fakes import FakeEncoder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.md", "sub/c.txt", "sub/.hidden.txt", ".git/d.txt", "picture.png", "notes.tar"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"This is {name}.")
    return tmp_path


def names(paths: list[str]) -> list[str]:
    return [doc_id for _, doc_id in corpus_files(paths)]


def test_a_folder_gives_its_readable_files_in_order_without_hidden_ones(folder: Path) -> None:
    assert names([str(folder)]) == ["a.md", "b.txt", "sub/c.txt"]


def test_files_of_no_supported_format_are_counted_by_suffix(folder: Path) -> None:
    for name in ("sub/two.PNG", "Makefile", ".git/hidden.png"):
        (folder / name).touch()
    (folder / "gone.txt").symlink_to(folder / "nowhere.txt")
    expected = {".png": 2, ".tar": 1, BROKEN_LINK: 1, NO_SUFFIX: 1}
    assert unsupported_files([str(folder), str(folder / "sub"), str(folder / "notes.tar")]) == expected
    assert list(expected) == list(unsupported_files([str(folder)]))
    assert unsupported_files([str(folder / "*.txt"), "-"]) == {}


def test_a_hidden_folder_that_is_named_is_read(folder: Path) -> None:
    assert names([str(folder / ".git")]) == ["d.txt"]


def test_a_file_is_known_by_its_name(folder: Path) -> None:
    assert names([str(folder / "sub" / "c.txt")]) == ["c.txt"]


def test_a_pattern_gives_what_it_matches(folder: Path) -> None:
    assert names([str(folder / "*.txt")]) == ["b.txt"]
    assert names([str(folder / "**" / "*.txt")]) == ["b.txt", "c.txt"]


def test_a_name_that_looks_like_a_pattern_is_the_file_itself(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").write_text("one")
    (tmp_path / "a1.txt").write_text("other")
    assert names([str(tmp_path / "a[1].txt")]) == ["a[1].txt"]


def test_a_file_that_is_named_twice_comes_once(folder: Path) -> None:
    assert names([str(folder), str(folder / "b.txt"), str(folder / "*.txt")]) == ["a.md", "b.txt", "sub/c.txt"]


def test_the_order_of_the_paths_does_not_matter(folder: Path) -> None:
    paths = [str(folder / "b.txt"), str(folder / "a.md"), str(folder / "sub")]
    assert corpus_files(paths) == corpus_files(paths[::-1])


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as raised:
        corpus_files([str(tmp_path / "no*such")])
    assert str(raised.value) == f"{tmp_path / 'no*such'} does not exist and no file matches it as a pattern"


def test_a_folder_without_a_readable_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.png").touch()
    with pytest.raises(DocumentError) as raised:
        corpus_files([str(tmp_path)])
    assert str(raised.value) == f"no readable file in {tmp_path}; formats: see longmatch index --help"


def test_documents_come_with_their_names_and_text(folder: Path) -> None:
    read = list(read_corpus([str(folder)]))
    assert [(one.doc_id, one.source) for one in read] == [
        ("a.md", str(folder / "a.md")),
        ("b.txt", str(folder / "b.txt")),
        ("sub/c.txt", str(folder / "sub" / "c.txt")),
    ]
    assert [one.text.strip() for one in read if isinstance(one, Document)] == [f"This is {one.doc_id}." for one in read]


def test_a_file_of_unknown_format_that_is_named_comes_as_unreadable(folder: Path) -> None:
    (read,) = read_corpus([str(folder / "picture.png")])
    assert isinstance(read, Unreadable)
    assert (read.doc_id, read.source) == ("picture.png", str(folder / "picture.png"))


def test_standard_input_is_json_lines(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    lines = "\n".join(json.dumps({"_id": name, "text": f"words of {name}"}) for name in "xy")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines.encode())))
    read = list(read_corpus(["-", str(folder / "b.txt")]))
    assert [one.doc_id for one in read] == ["x", "y", "b.txt"]


def test_an_unreadable_line_does_not_end_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"_id": "x", "text": "w"}\n{oops\n')))
    one, other = read_corpus(["-"])
    assert isinstance(one, Document)
    assert isinstance(other, Unreadable)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse names that are not UTF-8")
def test_a_file_name_that_is_not_utf8_does_not_end_a_run(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("some words")
    with open(os.fsencode(tmp_path / "in") + b"/caf\xe9.txt", "w") as file:  # noqa: PTH123 - bytes
        file.write("other words")
    report = build(tmp_path / "x.lm", read_corpus([str(tmp_path / "in")]), encoder=FakeEncoder())
    assert report.n_added + len(report.failures) == 2
    assert report.n_added >= 1
