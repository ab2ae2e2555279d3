"""Rows of a catalog: each flipped bit is refused, found by `verify`, or changes nothing."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from engine.encoders.encoder import EncodedDocument
from engine.errors import EngineError, IndexDamaged
from engine.index import Index
from engine.search.request import Request
from engine.store import gathering
from engine.store.catalog import CATALOG_FILE, open_catalog
from engine.store.checks import damaged_documents
from engine.store.gathering import check_blocks, read_blocks
from engine.store.partitioned import stored_meta
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from indexer.upkeep.verify import verify
from tests.fakes import FakeEncoder, make_corpus, make_document
from tests.store.written import ENCODER, commit

N_FLIPS = 40


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index as a killed writer leaves it, with everything moved out of the write-ahead log."""
    folder = tmp_path_factory.mktemp("killed") / "x.lm"
    with Writer(folder) as writer:
        writer.claim(ENCODER)
        commit(writer, *make_corpus(12))
        commit(writer, *make_corpus(20)[12:])
        writer.remove([3])
        writer.record_failures([("bad.pdf", "no text", "bad")])
        shutil.copytree(folder, folder.with_name("killed.lm"), ignore=shutil.ignore_patterns("*-wal", "*-shm"))
    return folder.with_name("killed.lm")


@pytest.fixture
def copy(killed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed, tmp_path / "x.lm"))


def change(folder: Path, statement: str) -> None:
    """Change rows without changing their checksums."""
    with closing(open_catalog(folder / CATALOG_FILE, read_only=False)) as connection:
        assert connection.execute(statement).rowcount > 0


def lone_reads(folder: Path) -> object:
    """Reads of single documents, which compare the checksums of these alone."""
    with Index.open(folder, encoder=FakeEncoder()) as index:
        names = [f"doc{number:03d}" for number in range(20) if number != 2]
        found = [index.document(name) for name in names]
        hits = [(hit.doc_id, hit.score) for hit in index.search(names[4], Request(k=20))]
        return [(one, one.text, one.sections, index.copies(one)) for one in found], hits


def everything(folder: Path) -> object:
    """All that a reader sees."""
    with Index.open(folder, encoder=FakeEncoder()) as index:
        snapshot = index.snapshot
        names = snapshot.doc_ids()
        documents = snapshot.documents(np.arange(len(names)))
        whole = [(document, document.text, document.sections, coverage) for document, coverage in documents]
        hits = [
            [(hit.doc_id, hit.score) for hit in index.search(name, Request(k=5, where="year >= 2003"))]
            for name in names[:4]
        ]
        return names, whole, hits, snapshot.failures(), [snapshot.position(name) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("state", ["killed.lm", "x.lm"])
def test_no_flipped_bit_changes_an_answer(killed: Path, state: str, tmp_path: Path) -> None:
    original = killed.with_name(state)
    content = (original / CATALOG_FILE).read_bytes()
    expected = [(read, read(original)) for read in (lone_reads, everything)]
    rng, n_refused = np.random.default_rng(0), 0
    shutil.copytree(original, tmp_path / "x.lm")
    for _ in range(N_FLIPS):
        flipped = bytearray(content)
        flipped[int(rng.integers(len(flipped)))] ^= 1 << int(rng.integers(8))
        (tmp_path / "x.lm" / CATALOG_FILE).write_bytes(flipped)
        for left in tmp_path.glob("x.lm/*-???"):
            left.unlink()
        for read, right in expected:
            try:
                assert read(tmp_path / "x.lm") == right
            except EngineError:
                n_refused += 1
    assert n_refused > 2


def test_zeros_in_a_catalog_are_found_or_refused(killed: Path, tmp_path: Path) -> None:
    content = (killed.with_name("x.lm") / CATALOG_FILE).read_bytes()
    n_found = 0
    for start in range(0, len(content) - 512, 101):
        (tmp_path / CATALOG_FILE).write_bytes(content[:start] + bytes(512) + content[start + 512 :])
        with closing(sqlite3.connect(tmp_path / CATALOG_FILE)) as connection, suppress(sqlite3.DatabaseError):
            n_found += bool(damaged_documents(connection))
    assert n_found > 2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET metadata = replace(metadata, '2001', '2002')",
        "UPDATE documents SET doc_id = 'other' WHERE id = 5",
        "UPDATE documents SET chunk_row = chunk_row + 1 WHERE id = 5",
        "DELETE FROM documents WHERE id = 5",
        "UPDATE meta SET value = '\"de\"' WHERE key = 'language'",
        "UPDATE shards SET n_chunks = n_chunks + 1 WHERE id = 1",
        "DELETE FROM failures",
        "DELETE FROM document_checks WHERE document_id = 5",
    ],
)
def test_changed_rows_are_refused_and_found_by_verify(copy: Path, statement: str) -> None:
    change(copy, statement)
    with pytest.raises(IndexDamaged, match="not what was written; check it: longmatch upkeep verify INDEX"):
        everything(copy)
    with pytest.raises(IndexDamaged, match="not what was written"), Writer(copy) as writer:
        commit(writer, make_document("new", "some words"))
    found = [finding.what for finding in verify(copy)]
    assert any("not what was written" in what for what in found) and "verify" not in " ".join(found)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET value = '\"de\"' WHERE key = 'language'",
        "UPDATE meta SET value = '{' WHERE key = 'encoder'",
        "UPDATE meta SET value = x'ff00' WHERE key = 'format'",
        "UPDATE meta SET value = 7.5, key = x'fe' WHERE key = 'counters'",
        "UPDATE shards SET n_chunks = 99",
    ],
)
def test_tables_that_every_reader_needs_are_compared_on_opening(copy: Path, statement: str) -> None:
    change(copy, statement)
    for read in (IndexSnapshot, Writer, *([stored_meta] if "meta" in statement else [])):
        with pytest.raises(IndexDamaged, match=r"table (meta|shards) of .* is not what was written"):
            read(copy)
    assert verify(copy)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET title = 'another' WHERE id = 5",
        "DELETE FROM documents WHERE id = 5",
        "DELETE FROM document_checks WHERE document_id = 5",
    ],
)
def test_a_changed_document_is_refused_when_it_is_read(copy: Path, statement: str) -> None:
    change(copy, statement)
    with IndexSnapshot(copy) as snapshot:
        position = int(np.flatnonzero(snapshot.locations.ids == 5)[0])
        assert snapshot.position("doc003") == position - 1
        for read in (lambda: snapshot.position("doc004"), lambda: snapshot.documents(np.array([position]))):
            with pytest.raises(IndexDamaged, match=r"'doc004' is not what was written|1 documents have no"):
                read()


@pytest.mark.parametrize("statement", ["SET arrays = zeroblob(length(arrays))", "SET checksum = 0"])
def test_a_changed_block_of_locations_is_refused(copy: Path, statement: str) -> None:
    change(copy, f"UPDATE location_blocks {statement}")
    with IndexSnapshot(copy) as snapshot, pytest.raises(IndexDamaged, match=r"location.* is not what was written"):
        assert snapshot.locations
    assert any("location" in finding.what for finding in verify(copy))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sections SET start = start + 1 WHERE document_id = 5 AND position = 1",
        "UPDATE sections SET n_merged = n_merged + 1 WHERE document_id = 5",
        "DELETE FROM sections WHERE document_id = 5 AND position = 2",
        "UPDATE texts SET deflated = (SELECT deflated FROM texts WHERE document_id = 6) WHERE document_id = 5",
    ],
)
def test_changed_text_and_sections_are_refused_when_they_are_read(copy: Path, statement: str) -> None:
    change(copy, statement)
    with IndexSnapshot(copy) as snapshot:
        position = int(np.flatnonzero(snapshot.locations.ids == 5)[0])
        snapshot.documents(np.array([position - 1]))
        with pytest.raises(IndexDamaged, match=r"text or sections of 'doc004' are not what was indexed"):
            snapshot.documents(np.array([position]))
    assert [finding.where for finding in verify(copy)] == ["doc004"]


@pytest.fixture
def writer(copy: Path) -> Iterator[Writer]:
    with Writer(copy) as opened:
        yield opened


def test_damage_gets_no_new_checksum_by_a_change_of_its_document_or_a_neighbour(copy: Path) -> None:
    change(copy, "UPDATE texts SET deflated = x'00' WHERE document_id = 5")
    with Writer(copy) as writer:
        (document,) = writer.documents([6])
        writer.update_metadata([(5, document), (6, document)])
    with IndexSnapshot(copy) as snapshot, pytest.raises(IndexDamaged, match="text or sections of 'doc004' are not"):
        snapshot.documents(np.array([snapshot.position("doc004")]))
    change(copy, "UPDATE documents SET chunk_row = chunk_row + 1 WHERE id = 7")
    for act in (lambda one: one.remove([6]), lambda one: one.update_metadata([(6, document)])):
        with pytest.raises(IndexDamaged, match="not what was written"), Writer(copy) as writer:
            act(writer)


def test_every_way_of_writing_keeps_the_checksums(writer: Writer) -> None:
    corpus = make_corpus(24)
    commit(writer, *corpus[18:22])
    writer.commit([(corpus[23], EncodedDocument.unencoded(40))])
    (late,) = writer.unencoded()
    writer.add_vectors([late], FakeEncoder().encode([corpus[23]]), writer.count_words([corpus[23]]))
    writer.update_metadata([(5, corpus[4])])
    writer.remove([6])
    writer.forget_failures(["bad.pdf"])
    with IndexSnapshot(writer.folder) as snapshot:
        assert snapshot.n_documents == 21
        assert snapshot.doc_ids()[-1] == "doc023" and snapshot.position("doc023") == 20
        check_blocks(snapshot._connection, "the catalog")


def test_blocks_split_and_vanish_with_their_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "BLOCK_IDS", 4)
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim(ENCODER)
        commit(writer, *make_corpus(12))
        writer.remove([4, 5, 6, 7, 9])
        with writer.read() as connection:
            locations = read_blocks(connection, "x")
            check_blocks(connection, "x")
            assert locations.ids.tolist() == [1, 2, 3, 8, 10, 11, 12]
            assert connection.execute("SELECT block FROM location_blocks").fetchall() == [(0,), (2,), (3,)]
