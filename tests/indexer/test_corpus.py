"""Paths, patterns and standard input become a stream of documents."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.errors import DocumentError, IndexMismatch
from engine.readers import Unreadable
from engine.store.lookup import stored_failures, stored_sources
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.corpus import (
    BROKEN_LINK,
    NO_SUFFIX,
    find_failed,
    list_corpus,
    read_corpus,
    without_included,
)
from tests.commands import run
from tests.fakes import FakeEncoder
from tests.readers.zipped import tar_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.md", "sub/c.txt", "sub/.hidden.txt", ".git/d.txt", "picture.png", "notes.tar"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"This is {name}.")
    return tmp_path


def names(paths: list[str]) -> list[str]:
    return [doc_id for _, doc_id in list_corpus(paths).named()]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["."], ["a.md", "b.txt", "sub/c.txt"]),
        ([".git"], ["d.txt"]),
        (["sub/c.txt"], ["c.txt"]),
        (["*.txt"], ["b.txt"]),
        (["**/*.txt"], ["b.txt", "c.txt"]),
        ([".", "b.txt", "*.txt"], ["a.md", "b.txt", "sub/c.txt"]),
    ],
    ids=["folder", "hidden folder", "file", "pattern", "pattern of folders", "file named twice"],
)
def test_paths_give_visible_readable_files_in_order(folder: Path, paths: list[str], expected: list[str]) -> None:
    assert names([str(folder / path) for path in paths]) == expected


def test_files_of_no_supported_format_are_counted_by_suffix(folder: Path) -> None:
    for name in ("sub/two.PNG", "Makefile", ".git/hidden.png"):
        (folder / name).touch()
    (folder / "gone.txt").symlink_to(folder / "nowhere.txt")
    expected = {".png": 2, ".tar": 1, BROKEN_LINK: 1, NO_SUFFIX: 1}
    assert list_corpus([str(folder), str(folder / "sub"), str(folder / "notes.tar")]).unsupported == expected
    assert list(expected) == list(list_corpus([str(folder)]).unsupported)
    assert list_corpus([str(folder / "*.txt"), "-"]).unsupported == {}


def test_a_name_that_looks_like_a_pattern_is_the_file_itself(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").write_text("one")
    (tmp_path / "a1.txt").write_text("other")
    assert names([str(tmp_path / "a[1].txt")]) == ["a[1].txt"]


def test_the_order_of_the_paths_does_not_matter(folder: Path) -> None:
    paths = [str(folder / "b.txt"), str(folder / "a.md"), str(folder / "sub")]
    assert list_corpus(paths).named() == list_corpus(paths[::-1]).named()


def test_a_run_walks_each_folder_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[Path] = []
    rglob = Path.rglob

    def counted(path: Path, pattern: str) -> Iterator[Path]:
        walked.append(path)
        return rglob(path, pattern)

    monkeypatch.setattr(Path, "rglob", counted)
    report = run("index", tmp_path / "words.lm", folder, "--encode", "none", "--json")
    assert json.loads(report.stdout)["n_added"] > 0
    assert walked.count(folder) == 1


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as raised:
        list_corpus([str(tmp_path / "no*such")]).named()
    assert str(raised.value) == f"{tmp_path / 'no*such'} does not exist and no file matches it as a pattern"


def test_a_folder_without_a_readable_file_is_refused(tmp_path: Path) -> None:
    for there in ("none", ".png (1)"):
        with pytest.raises(DocumentError) as raised:
            list_corpus([str(tmp_path)])
        message = f"no readable file in {tmp_path}, there is {there}; formats: see longmatch index --help"
        assert str(raised.value) == message
        (tmp_path / "x.png").touch()


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


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.tex"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def names_in(folder: Path) -> list[str]:
    return [doc_id for _, doc_id in list_corpus([str(folder)]).named()]


def test_an_included_file_is_no_document_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, main=r"one \input{parts/a}", parts__a=r"two \input{parts/b}", parts__b="three", other="four")
    (tmp_path / "notes.txt").write_text("five")
    assert names_in(tmp_path) == ["main.tex", "notes.txt", "other.tex"]
    texts = [one.text.split() for one in read_corpus([str(tmp_path)]) if isinstance(one, Document)]
    assert texts == [["one", "two", "three"], ["five"], ["four"]]


def test_an_included_file_that_is_named_is_read(tmp_path: Path) -> None:
    write(tmp_path, main=r"one \input{a}", a="two")
    assert [doc_id for _, doc_id in list_corpus([str(tmp_path / "a.tex")]).named()] == ["a.tex"]


def test_a_file_included_in_a_comment_or_from_another_folder_is_a_document(tmp_path: Path) -> None:
    write(tmp_path, main="one %\\input{a}\n\\input{../up}", a="two", sub__main=r"three \input{../a}")
    assert names_in(tmp_path) == ["a.tex", "main.tex", "sub/main.tex"]


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_files_that_include_each_other_one_stays(tmp_path: Path, first: str) -> None:
    write(tmp_path, a=r"one \input{b}", b=r"two \input{a}", self=r"three \input{self}")
    files = sorted(tmp_path.glob("*.tex"), reverse=first == "b")
    assert sorted(file.name for file in without_included(files)) == ["a.tex", "self.tex"]


def test_parts_figures_and_drafts_of_a_latex_folder_are_said(tmp_path: Path) -> None:
    main = r"\documentclass{a}\begin{document}one \input{part}\includegraphics{plots/shown}\end{document}"
    write(tmp_path, paper__main=main, paper__part="two", paper__old=r"\section{Draft} \input{main}")
    for name in ("paper/appendix.pdf", "paper/plots/shown.pdf", "paper/plots/unused.pdf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert names_in(tmp_path) == ["paper/appendix.pdf", "paper/main.tex"]
    (tmp_path / "paper/appendix.pdf").unlink()
    shown = run("index", tmp_path / "x.lm", tmp_path / "paper", "--encode", "none").stdout
    line = "part, figure or draft of a LaTeX document, 4 files: old.tex, part.tex, shown.pdf, unused.pdf"
    assert f"\n{line}\n" in shown
    found = json.loads(run("index", tmp_path / "y.lm", tmp_path / "paper", "--encode", "none", "--json").stdout)
    assert [Path(part).name for part in found["latex_parts"]] == line.partition(": ")[2].split(", ")


def test_a_packed_file_is_a_document_if_it_holds_a_source(tmp_path: Path) -> None:
    source = rb"\documentclass{a}\begin{document}Foxes.\end{document}"
    for name, content in {
        "2004.14974.gz": gzip.compress(tar_of({"main.tex": source, "part.tex": b"x"})),
        "1101.0001v2.gz": gzip.compress(source),
        "table.csv.gz": gzip.compress(b"a,b"),
        "notes.tar": b"no archive",
        "page.html.gz": gzip.compress(b"<p>Foxes.</p>"),
    }.items():
        (tmp_path / name).write_bytes(content)
    assert names_in(tmp_path) == ["1101.0001v2.gz", "2004.14974.gz", "page.html.gz"]
    assert list_corpus([str(tmp_path)]).unsupported == {".gz": 1, ".tar": 1}
    texts = [one.text for one in read_corpus([str(tmp_path)]) if isinstance(one, Document)]
    assert texts == ["Foxes."] * 3


def test_other_formats_are_left_as_they_are(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("b.txt", "a.pdf", "c.md")]
    assert without_included(files) == files


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """One document that is indexed, three whose files are empty, and a line that is not JSON."""
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "well.txt").write_text("foxes and rivers")
    for name in ("a.txt", "sub/b.txt", "c.txt"):
        (tmp_path / "in" / name).touch()
    (tmp_path / "lines.jsonl").write_text("no json\n")
    made = run("index", tmp_path / "x.lm", tmp_path / "in", tmp_path / "lines.jsonl", "--encode", "none")
    assert made.exit_code == 3
    return tmp_path / "x.lm"


def test_only_what_failed_is_read_again_under_its_doc_id(index: Path, tmp_path: Path) -> None:
    (tmp_path / "in" / "sub" / "b.txt").write_text("dogs and houses")
    (tmp_path / "in" / "well.txt").write_text("this change waits for a run over the folder")
    (tmp_path / "in" / "c.txt").unlink()
    again = run("index", index, "--retry-failures", "--encode", "none", "--json")
    assert again.exit_code == 3
    report = json.loads(again.stdout)
    assert (report["n_added"], report["n_replaced"], report["n_unchanged"], len(report["failures"])) == (1, 0, 0, 1)
    assert f"not read again: {tmp_path}/in/c.txt: it is no longer there; bring it back" in again.stderr
    assert f"not read again: {tmp_path}/lines.jsonl:1: it is a line of {tmp_path}/lines.jsonl" in again.stderr
    assert sorted(doc_id for doc_id, _ in stored_sources(index)) == ["sub/b.txt", "well.txt"]
    assert [Path(source).name for source, _ in stored_failures(index)] == ["a.txt", "c.txt", "lines.jsonl:1"]


def test_a_retry_without_remaining_failures_exits_with_0(index: Path, tmp_path: Path) -> None:
    for name in ("a.txt", "sub/b.txt", "c.txt"):
        (tmp_path / "in" / name).write_text(f"words of {name}")
    with Writer(index) as writer:
        writer.forget_failures([f"{tmp_path}/lines.jsonl:1"])
    again = run("index", index, "--retry-failures", "--encode", "none")
    assert again.exit_code == 0 and again.stdout.startswith("3 added")
    none = run("index", index, "--retry-failures")
    assert (none.exit_code, none.stdout) == (0, f"no document of {index} has failed\n")


def test_a_retry_adds_no_vectors_to_an_index_of_words(index: Path, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.txt").write_text("dogs and houses")
    again = run("index", index, "--retry-failures", "--json")
    report = json.loads(again.stdout)
    assert (report["n_added"], report["n_encoded"], report["n_missing"]) == (1, 0, 2)


def test_a_failure_without_doc_id_is_left_to_a_run_over_its_folder(index: Path, tmp_path: Path) -> None:
    with Writer(index) as writer:
        writer.record_failure(str(tmp_path / "in" / "a.txt"), "it holds no text")
    reasons = dict(find_failed(index).left_out)
    assert reasons[str(tmp_path / "in" / "a.txt")].startswith("its doc_id is not known")


def test_a_folder_without_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexMismatch, match="holds no index; make one"):
        find_failed(tmp_path)
