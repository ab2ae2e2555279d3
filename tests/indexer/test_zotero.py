"""A library of Zotero as a corpus: items describe their attachments. Tables as in `userdata.sql` of Zotero 7 and 8."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import longmatch
from engine.errors import DocumentError
from indexer.building.corpus import list_corpus
from indexer.cli import main

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
INSERT INTO deletedItems VALUES (5, '2024-01-01');
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
            },
        )  # fmt: skip
        names = ("number", "authors", "inventors", "zotero_key")
        assert [patent.metadata[name] for name in names] == ["US8967123", ["Bo Gate"], ["Bo Gate"], "PATE2222"]
        assert index.document("storage/ALON5555/alone.md").metadata["zotero_key"] == "ALON5555"
        hits = index.search(_TEXT, where="tags = 'rivers' and collections like 'Thesis/%' and date before 2004")
        assert [hit.doc_id for hit in hits] == ["storage/EFGH6789/Lock 2003.txt"]
    assert {file: file.read_bytes() for file in library.rglob("*") if file.is_file()} == before


def test_attachments_that_cannot_be_read_are_counted(library: Path) -> None:
    assert dict(list_corpus([str(library)]).unsupported) == {".css": 1, "missing file": 1}


def test_a_stored_file_is_in_the_folder_of_its_item(library: Path, tmp_path: Path) -> None:
    (tmp_path / "private.txt").write_text(_TEXT)
    copy = shutil.copytree(library, tmp_path / "copy")
    with closing(sqlite3.connect(copy / "zotero.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE itemAttachments SET path = 'storage:../../../private.txt' WHERE itemID = 2")
    assert tmp_path / "private.txt" not in {file.resolve() for file in list_corpus([str(copy)]).roots}


def test_changed_tags_reach_the_index(library: Path, tmp_path: Path) -> None:
    copy, index = tmp_path / "copy", tmp_path / "x.lm"
    shutil.copytree(library, copy)
    arguments = ["index", str(index), str(copy), "--encode", "none"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    with closing(sqlite3.connect(copy / "zotero.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE tags SET name = 'read' WHERE name = 'to read'")
    assert "0 added, 0 replaced, 3 unchanged" in CliRunner().invoke(main, arguments).output
    with longmatch.open(index) as opened:
        assert opened.document("storage/EFGH6789/Lock 2003.txt").metadata["tags"] == ["read", "rivers"]


def test_another_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zotero.sqlite").write_bytes(b"no database, but long enough to be looked at " * 20)
    with pytest.raises(DocumentError, match="no library of Zotero"):
        list_corpus([str(tmp_path)])
