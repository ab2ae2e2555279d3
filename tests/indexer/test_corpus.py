"""What a run reads: files, folders, patterns, lines, and libraries of Zotero."""

import errno
import gzip
import io
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import longmatch
from engine.errors import DocumentError
from engine.readers import Unreadable
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.corpus import BROKEN_LINK, LINKED_FOLDER, NO_SUFFIX, list_corpus, read_corpus, without_included
from tests.commands import run, succeed
from tests.fakes import FakeEncoder, make_corpus
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
    (folder / "linked").symlink_to(folder, target_is_directory=True)
    expected = {".png": 2, ".tar": 1, BROKEN_LINK: 1, LINKED_FOLDER: 1, NO_SUFFIX: 1}
    assert list_corpus([str(folder), str(folder / "sub"), str(folder / "notes.tar")]).unsupported == expected
    assert list(expected) == list(list_corpus([str(folder)]).unsupported)
    assert list_corpus([str(folder / "*.txt"), "-"]).unsupported == {}


def test_the_manifest_of_an_index_in_the_corpus_is_no_document(folder: Path) -> None:
    build(folder / "x.parts", make_corpus(3), partitions=2, encode="none")
    (folder / "partitions.json").write_text('{"text": "of a country"}')
    assert names([str(folder)]) == ["a.md", "b.txt", "partitions.json", "sub/c.txt"]


def test_names_may_look_like_patterns_and_come_in_any_order(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "a[1].txt").write_text("one")
    (tmp_path / "a1.txt").write_text("other")
    assert names([str(tmp_path / "a[1].txt")]) == ["a[1].txt"]
    paths = [str(folder / "b.txt"), str(folder / "a.md"), str(folder / "sub")]
    assert list_corpus(paths).named() == list_corpus(paths[::-1]).named()


def test_a_run_walks_each_folder_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[Path] = []
    listed = os.scandir

    def counted(path: Path) -> Any:  # noqa: ANN401
        walked.append(Path(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", counted)
    report = run("index", tmp_path / "words.lm", folder, "--encode", "none", "--json")
    assert json.loads(report.stdout)["n_added"] > 0
    assert walked.count(folder) == 1


def test_a_folder_that_cannot_be_listed_fails_and_its_documents_stay(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["index", folder / "x.lm", folder / "sub", folder, "--encode", "none", "--prune", "--json"]
    assert json.loads(run(*words).stdout)["n_added"] == 3
    listed = os.scandir

    def refused(path: Path) -> Any:  # noqa: ANN401
        if Path(path) == folder / "sub":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    found = run(*words)
    report = json.loads(found.stdout)
    assert (found.exit_code, report["n_removed"], report["n_unchanged"]) == (3, 0, 2)
    assert [failure["source"] for failure in report["failures"]] == [str(folder / "sub")]


def test_a_path_that_is_not_there_and_a_folder_without_a_readable_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as raised:
        list_corpus([str(tmp_path / "no*such")]).named()
    assert str(raised.value) == f"{tmp_path / 'no*such'} does not exist and no file matches it as a pattern"
    for there in ("", ", there is .png (1)"):
        with pytest.raises(DocumentError) as raised:
            list_corpus([str(tmp_path)])
        message = f"no readable file in {tmp_path}{there}; formats: see longmatch index --help"
        assert str(raised.value) == message
        (tmp_path / "x.png").touch()


def test_documents_come_with_their_names_and_text_and_unknown_formats_as_unreadable(folder: Path) -> None:
    read = list(read_corpus([str(folder)]))
    assert [(one.doc_id, one.source) for one in read] == [
        ("a.md", str(folder / "a.md")),
        ("b.txt", str(folder / "b.txt")),
        ("sub/c.txt", str(folder / "sub" / "c.txt")),
    ]
    assert [one.text.strip() for one in read if isinstance(one, Document)] == [f"This is {one.doc_id}." for one in read]
    (read,) = read_corpus([str(folder / "picture.png")])
    assert isinstance(read, Unreadable)
    assert (read.doc_id, read.source) == ("picture.png", str(folder / "picture.png"))


def test_standard_input_is_json_lines_to_its_end(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    lines = "\n".join(json.dumps({"_id": name, "text": f"words of {name}"}) for name in "xy")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines.encode())))
    read = list(read_corpus(["-", str(folder / "b.txt")]))
    assert [one.doc_id for one in read] == ["x", "y", "b.txt"]
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


def test_an_included_file_is_no_document_of_its_own_unless_it_is_named(tmp_path: Path) -> None:
    write(tmp_path, main=r"one \input{parts/a}", parts__a=r"two \input{parts/b}", parts__b="three", other="four")
    (tmp_path / "notes.txt").write_text("five")
    assert names([str(tmp_path)]) == ["main.tex", "notes.txt", "other.tex"]
    texts = [one.text.split() for one in read_corpus([str(tmp_path)]) if isinstance(one, Document)]
    assert texts == [["one", "two", "three"], ["five"], ["four"]]
    files = [tmp_path / name for name in ("b.txt", "a.pdf", "c.md")]
    assert without_included(files) == files
    assert names([str(tmp_path / "parts" / "a.tex")]) == ["a.tex"]


def test_a_file_included_in_a_comment_or_from_another_folder_is_a_document(tmp_path: Path) -> None:
    write(tmp_path, main="one %\\input{a}\n\\input{../up}", a="two", sub__main=r"three \input{../a}")
    assert names([str(tmp_path)]) == ["a.tex", "main.tex", "sub/main.tex"]


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_files_that_include_each_other_one_stays(tmp_path: Path, first: str) -> None:
    write(tmp_path, a=r"one \input{b}", b=r"two \input{a}", self=r"three \input{self}")
    files = sorted(tmp_path.glob("*.tex"), reverse=first == "b")
    assert sorted(file.name for file in without_included(files)) == ["a.tex", "self.tex"]


def test_parts_figures_drafts_and_references_of_a_folder_are_said(tmp_path: Path) -> None:
    main = r"\documentclass{a}\begin{document}one \input{part}\includegraphics{plots/shown}\end{document}"
    write(tmp_path, paper__main=main, paper__part="two", paper__old=r"\section{Draft} \input{main}")
    for name in ("paper/appendix.pdf", "paper/plots/shown.pdf", "paper/plots/unused.pdf", "paper/refs.bib", "a.bib"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert names([str(tmp_path)]) == ["a.bib", "paper/appendix.pdf", "paper/main.tex"]
    (tmp_path / "paper/appendix.pdf").unlink()
    shown = run("index", tmp_path / "x.lm", tmp_path / "paper", "--encode", "none").stdout
    parts = "old.tex, part.tex, shown.pdf, unused.pdf, refs.bib"
    line = f"part, figure, draft or reference list of a document, 5 files: {parts}"
    assert f"\n{line}\n" in shown
    found = json.loads(run("index", tmp_path / "y.lm", tmp_path / "paper", "--encode", "none", "--json").stdout)
    assert [Path(part).name for part in found["latex_parts"]] == parts.split(", ")


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
    assert names([str(tmp_path)]) == ["1101.0001v2.gz", "2004.14974.gz", "page.html.gz"]
    assert list_corpus([str(tmp_path)]).unsupported == {".gz": 1, ".tar": 1}
    texts = [one.text for one in read_corpus([str(tmp_path)]) if isinstance(one, Document)]
    assert texts == ["Foxes."] * 3


def test_a_folder_with_another_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zotero.sqlite").write_bytes(b"no database, but long enough to be looked at " * 20)
    with pytest.raises(DocumentError, match="no library of Zotero"):
        list_corpus([str(tmp_path)])


_SCHEMA = """
CREATE TABLE itemTypes (itemTypeID INTEGER PRIMARY KEY, typeName TEXT);
CREATE TABLE fields (fieldID INTEGER PRIMARY KEY, fieldName TEXT);
CREATE TABLE creatorTypes (creatorTypeID INTEGER PRIMARY KEY, creatorType TEXT);
CREATE TABLE items (itemID INTEGER PRIMARY KEY, itemTypeID INT, libraryID INT, key TEXT);
CREATE TABLE itemDataValues (valueID INTEGER PRIMARY KEY, value UNIQUE);
CREATE TABLE itemData (itemID INT, fieldID INT, valueID INT);
CREATE TABLE itemAttachments (itemID INTEGER PRIMARY KEY, parentItemID INT, linkMode INT, contentType TEXT, path TEXT);
CREATE TABLE creators (creatorID INTEGER PRIMARY KEY, firstName TEXT, lastName TEXT, fieldMode INT);
CREATE TABLE itemCreators (itemID INT, creatorID INT, creatorTypeID INT, orderIndex INT);
CREATE TABLE tags (tagID INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE itemTags (itemID INT, tagID INT, type INT);
CREATE TABLE collections (collectionID INTEGER PRIMARY KEY, collectionName TEXT, parentCollectionID INT);
CREATE TABLE collectionItems (collectionID INT, itemID INT);
CREATE TABLE itemNotes (itemID INTEGER PRIMARY KEY, parentItemID INT, note TEXT, title TEXT);
CREATE TABLE itemAnnotations (itemID INTEGER PRIMARY KEY, parentItemID INT NOT NULL, type INTEGER NOT NULL,
    authorName TEXT, text TEXT, comment TEXT, color TEXT, pageLabel TEXT, sortIndex TEXT NOT NULL,
    position TEXT NOT NULL, isExternal INT NOT NULL);
CREATE TABLE deletedItems (itemID INTEGER PRIMARY KEY, dateDeleted TEXT);
INSERT INTO itemTypes VALUES (4, 'journalArticle'), (14, 'attachment'), (19, 'patent');
INSERT INTO fields VALUES (110, 'title'), (14, 'date'), (26, 'DOI'), (12, 'publicationTitle'), (50, 'patentNumber');
INSERT INTO creatorTypes VALUES (1, 'author'), (3, 'editor'), (14, 'inventor');
INSERT INTO items VALUES (1, 4, 1, 'ABCD2345'), (2, 14, 1, 'EFGH6789'), (3, 19, 1, 'PATE2222'), (4, 14, 1, 'LINK3333'),
    (5, 14, 1, 'GONE4444'), (6, 14, 1, 'ALON5555'), (7, 14, 1, 'MISS6666'), (8, 14, 1, 'SITE7777');
INSERT INTO itemDataValues VALUES (1, 'Sluices and Weirs'), (2, '2003-05-00 May 2003'), (3, '10.1000/weir'),
    (4, 'Journal of Locks'), (5, 'Rotor pump'), (6, 'US8967123');
INSERT INTO itemData VALUES (1, 110, 1), (1, 14, 2), (1, 26, 3), (1, 12, 4), (3, 110, 5), (3, 50, 6);
INSERT INTO creators VALUES (1, 'Ada', 'Lock', 0), (2, NULL, 'Weir Board', 1), (3, 'Bo', 'Gate', 0);
INSERT INTO itemCreators VALUES (1, 2, 1, 1), (1, 1, 1, 0), (1, 3, 3, 2), (3, 3, 14, 0);
INSERT INTO tags VALUES (1, 'rivers'), (2, 'to read');
INSERT INTO itemTags VALUES (1, 2, 0), (1, 1, 0);
INSERT INTO collections VALUES (1, 'Thesis', NULL), (2, 'Chapter 2', 1);
INSERT INTO collectionItems VALUES (2, 1);
INSERT INTO itemNotes VALUES (20, 1, '<div data-schema-version="9"><p>Gates &amp; <b>sluices</b></p></div>', 'Gates'),
    (21, 1, '<p>in the trash</p>', ''), (22, NULL, '<p>of no item</p>', '');
INSERT INTO itemAnnotations VALUES (30, 2, 1, '', 'the lock keeper', 'who?', '#ffd400', '3', '00002|1', '{}', 0),
    (31, 2, 1, '', 'The sluice gate', NULL, '#ffd400', '1', '00000|1', '{}', 0),
    (32, 2, 4, '', NULL, NULL, '#ffd400', '1', '00001|1', '{}', 0), (33, 6, 2, '', NULL, 'alone', '', '', '0', '{}', 0);
INSERT INTO deletedItems VALUES (5, '2024-01-01'), (21, '2024-01-01');
"""
_TEXT = "The sluice gate of the weir holds back the river in winter, and the lock keeper opens it in spring.\n"


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Path]:
    """A library that Zotero has open: its database is locked, and the last change is in the WAL alone."""
    folder = tmp_path / "Zotero"
    for name in ("EFGH6789/Lock 2003.txt", "GONE4444/gone.txt", "ALON5555/alone.md", "SITE7777/page.css"):
        file = folder / "storage" / name
        file.parent.mkdir(parents=True)
        file.write_text(_TEXT + name)
    (folder / "translators").mkdir()
    (folder / "translators" / "notes.txt").write_text(_TEXT)
    (tmp_path / "linked.txt").write_text(_TEXT)
    paths = [
        (2, 1, 0, "storage:Lock 2003.txt"), (4, 3, 2, str(tmp_path / "linked.txt")), (5, 1, 0, "storage:gone.txt"),
        (6, None, 0, "storage:alone.md"), (7, 1, 0, "storage:missing.pdf"), (8, 1, 1, "storage:page.css"),
    ]  # fmt: skip
    with closing(sqlite3.connect(folder / "zotero.sqlite", isolation_level=None)) as database:
        database.executescript(f"PRAGMA journal_mode=WAL; PRAGMA locking_mode=EXCLUSIVE; {_SCHEMA}")
        database.executemany("INSERT INTO itemAttachments VALUES (?, ?, ?, 'text/plain', ?)", paths)
        yield folder


def test_items_describe_their_attachments(library: Path, tmp_path: Path) -> None:
    before = {file: file.read_bytes() for file in library.rglob("*") if file.is_file()}
    with longmatch.build(tmp_path / "x.lm", library, encode="none") as index:
        assert sorted(hit.doc_id for hit in index.search(_TEXT)) == [
            "linked.txt",
            "storage/ALON5555/alone.md",
            "storage/EFGH6789/Lock 2003.txt",
        ]
        paper, patent = index.document("storage/EFGH6789/Lock 2003.txt"), index.document("linked.txt")
        assert (paper.title, dict(paper.metadata)) == (
            "Sluices and Weirs",
            {
                "zotero_key": "ABCD2345", "item_type": "journalArticle", "date": "2003-05", "year": 2003,
                "doi": "10.1000/weir", "journal": "Journal of Locks", "authors": ["Ada Lock", "Weir Board"],
                "editors": ["Bo Gate"], "tags": ["rivers", "to read"], "collections": ["Thesis/Chapter 2"],
                "notes": ["Gates & sluices"], "annotations": ["The sluice gate", "the lock keeper who?"],
            },
        )  # fmt: skip
        names = ("number", "authors", "inventors", "zotero_key")
        assert [patent.metadata[name] for name in names] == ["US8967123", ["Bo Gate"], ["Bo Gate"], "PATE2222"]
        assert dict(index.document("storage/ALON5555/alone.md").metadata) == {
            "zotero_key": "ALON5555", "item_type": "attachment", "annotations": ["alone"],
        }  # fmt: skip
        assert [hit.doc_id for hit in index.search(_TEXT, where="annotations like '%keeper%'")] == [paper.doc_id]
        hits = index.search(_TEXT, where="tags = 'rivers' and collections like 'Thesis/%' and date before 2004")
        assert [hit.doc_id for hit in hits] == ["storage/EFGH6789/Lock 2003.txt"]
    assert {file: file.read_bytes() for file in library.rglob("*") if file.is_file()} == before


def test_attachments_are_in_the_folder_of_their_item_or_counted(library: Path, tmp_path: Path) -> None:
    assert dict(list_corpus([str(library)]).unsupported) == {".css": 1, "missing file": 1}
    (tmp_path / "private.txt").write_text(_TEXT)
    copy = shutil.copytree(library, tmp_path / "copy")
    with closing(sqlite3.connect(copy / "zotero.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE itemAttachments SET path = 'storage:../../../private.txt' WHERE itemID = 2")
    assert tmp_path / "private.txt" not in {file.resolve() for file in list_corpus([str(copy)]).roots}
    with closing(sqlite3.connect(copy / "zotero.sqlite", isolation_level=None)) as database:
        database.execute("DELETE FROM itemAttachments")
    with pytest.raises(DocumentError, match="copy, whose library of Zotero lists no file; formats"):
        list_corpus([str(copy)])


def test_changed_tags_reach_the_index(library: Path, tmp_path: Path) -> None:
    copy, index = tmp_path / "copy", tmp_path / "x.lm"
    shutil.copytree(library, copy)
    succeed("index", index, copy, "--encode", "none")
    with closing(sqlite3.connect(copy / "zotero.sqlite", isolation_level=None)) as database:
        database.execute("DROP TABLE itemAnnotations")  # as in a library of 2020
        database.execute("UPDATE tags SET name = 'read' WHERE name = 'to read'")
    assert "0 added, 0 replaced, 3 unchanged" in succeed("index", index, copy, "--encode", "none").stdout
    with longmatch.open(index) as opened:
        assert opened.document("storage/EFGH6789/Lock 2003.txt").metadata["tags"] == ["read", "rivers"]
