"""A backup restores an index at one commit; what is left of a damaged index stays; damaged backups are refused."""

import re
import sqlite3
import tarfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import BudgetExceeded, IndexDamaged, IndexMismatch, QueryError
from engine.index import Index
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation.generations import compact
from indexer.upkeep.backup import BackupReport, backup, restore
from indexer.upkeep.repair import repair
from indexer.upkeep.verify import Damage, verify
from tests.fakes import FakeEncoder, make_corpus

NAMES = [document.doc_id for document in make_corpus(3)]


def answers(folder: Path) -> list[list[tuple[str, float]]]:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        return [[(hit.doc_id, hit.score) for hit in index.search(doc_id).hits] for doc_id in NAMES]


def doc_ids(folder: Path) -> set[str]:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        return set(index.snapshot.doc_ids())


@pytest.fixture
def saved(built_folder: Path, tmp_path: Path) -> Path:
    backup(built_folder, tmp_path / "saved")
    return tmp_path / "saved"


def test_a_restored_index_gives_the_hits_of_the_original(built_folder: Path, saved: Path, tmp_path: Path) -> None:
    restore(saved, tmp_path / "again.lm")
    assert answers(tmp_path / "again.lm") == answers(built_folder)
    assert verify(tmp_path / "again.lm") == []
    backup(built_folder, tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == saved.read_bytes()


def test_the_report_counts_documents_and_files(built_folder: Path, tmp_path: Path) -> None:
    report = backup(built_folder, tmp_path / "saved")
    with tarfile.open(tmp_path / "saved") as archive:
        sizes = [member.size for member in archive]
    assert report == BackupReport(60, len(sizes), sum(sizes))
    assert restore(tmp_path / "saved", tmp_path / "again.lm") == report


@pytest.mark.slow
def test_fifty_backups_beside_a_writer_are_the_index_at_a_commit(tmp_path: Path) -> None:
    folder, encoder, corpus = tmp_path / "x.lm", FakeEncoder(), make_corpus(100)
    commits: list[set[str]] = [set()]
    due = threading.Semaphore(0)  # commits that the writer may begin
    with Writer(folder) as writer:
        writer.claim({"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width})

    def write() -> None:
        for document in corpus:
            due.acquire()
            with Writer(folder) as writer:
                commits.append(commits[-1] | {document.doc_id})
                writer.commit([(document, encoder.encode([document])[0])])

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    found = set()
    for number in range(50):
        due.release(2)
        backup(folder, tmp_path / f"{number}")
        restore(tmp_path / f"{number}", tmp_path / f"{number}.lm")
        assert verify(tmp_path / f"{number}.lm") == []
        there = doc_ids(tmp_path / f"{number}.lm")
        assert there in commits
        found.add(len(there))
    thread.join()
    assert doc_ids(folder) == {document.doc_id for document in corpus} and len(found) > 10


def test_the_copy_starts_again_when_a_compaction_deletes_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "x.lm"
    build(folder, make_corpus(12), encoder=FakeEncoder())
    with Writer(folder) as writer:
        writer.remove([1])
    from indexer.upkeep import backup as module

    contents, calls = module._contents, []

    def compact_after_the_first(catalog: Path, place: Path) -> object:
        found = contents(catalog, place)
        if not calls:
            compact(folder)
        calls.append(catalog)
        return found

    monkeypatch.setattr(module, "_contents", compact_after_the_first)
    assert backup(folder, tmp_path / "saved").n_documents == 11
    assert len(calls) == 2


def test_a_damaged_file_is_not_backed_up(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", make_corpus(12), encoder=FakeEncoder())
    shard = next((tmp_path / "x.lm" / "shards").iterdir())
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    with pytest.raises(IndexDamaged, match="repair the index first"):
        backup(tmp_path / "x.lm", tmp_path / "saved")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.lm"]


def test_a_damaged_catalog_is_named_and_not_its_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = tmp_path / "x.lm" / "catalog.sqlite"
    build(tmp_path / "x.lm", make_corpus(12), encode="none")
    with monkeypatch.context() as unseen:  # as a program would write it that does not know the checksums
        unseen.setattr("indexer.upkeep.backup.checks.check_contents", lambda *_: None)
        with closing(sqlite3.connect(catalog)) as other, other:
            other.execute("UPDATE texts SET deflated = x'00' WHERE document_id = 3")
        backup(tmp_path / "x.lm", tmp_path / "saved")
    with pytest.raises(IndexDamaged, match=re.escape(f"{catalog} ")):
        backup(tmp_path / "x.lm", tmp_path / "again")
    with pytest.raises(IndexDamaged, match=re.escape(f"{tmp_path / 'saved'} ")):
        restore(tmp_path / "saved", tmp_path / "y.lm")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved", "x.lm"]


def test_a_relative_path_may_look_like_a_uri(
    words_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    backup(words_folder, "file:x.backup?mode=ro")
    assert restore("file:x.backup?mode=ro", "file:x.lm").n_documents == 60
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file:x.backup?mode=ro", "file:x.lm"]


def test_no_flipped_bit_is_restored(saved: Path, built_folder: Path, tmp_path: Path) -> None:
    content, rng = saved.read_bytes(), np.random.default_rng(0)
    expected = answers(built_folder)
    for number, at in enumerate(rng.integers(0, len(content), 40).tolist()):
        damaged = bytearray(content)
        damaged[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "damaged").write_bytes(damaged)
        folder = tmp_path / f"{number}.lm"
        try:
            restore(tmp_path / "damaged", folder)
        except (IndexDamaged, IndexMismatch):
            assert not folder.exists()
        else:  # the bit is in the padding between members
            assert answers(folder) == expected


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_backup_that_is_cut_off_is_refused(saved: Path, tmp_path: Path, share: float) -> None:
    content = saved.read_bytes()
    (tmp_path / "cut").write_bytes(content[: int(share * len(content))])
    with pytest.raises((IndexDamaged, IndexMismatch)):
        restore(tmp_path / "cut", tmp_path / "x.lm")
    assert not (tmp_path / "x.lm").exists()


def test_existing_files_and_folders_are_never_overwritten_and_one_in_the_way_stays(
    built_folder: Path, saved: Path, tmp_path: Path
) -> None:
    with pytest.raises(QueryError, match="there already; name another file"):
        backup(built_folder, saved)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    with pytest.raises(QueryError, match="there already; name a new folder"):
        restore(saved, tmp_path / "full")
    (tmp_path / "x.lm.unfinished").mkdir()
    (tmp_path / "x.lm.unfinished" / "thesis.txt").write_text("years of work")
    with pytest.raises(IndexMismatch, match="is in the way"):
        restore(saved, tmp_path / "x.lm")
    assert (tmp_path / "x.lm.unfinished" / "thesis.txt").exists()


@pytest.mark.parametrize("name", ["saved", "x.lm"])
def test_a_run_that_was_killed_is_run_again_and_leaves_nothing(name: str, built_folder: Path, tmp_path: Path) -> None:
    backup(built_folder, tmp_path / "first")
    left = tmp_path / f"{name}.unfinished"
    (left / "shards").mkdir(parents=True)
    (left / "catalog.sqlite").write_text("half")
    (tmp_path / f"{name}.unfinished.lock").touch()
    if name == "saved":
        backup(built_folder, tmp_path / name)
    else:
        restore(tmp_path / "first", tmp_path / name)
        assert verify(tmp_path / name) == []
    left.mkdir()  # by a kill after the backup was complete
    (tmp_path / f"{name}.unfinished.lock").touch()
    with pytest.raises(QueryError, match="is there already"):
        backup(built_folder, tmp_path / name) if name == "saved" else restore(tmp_path / "first", tmp_path / name)
    assert {file.name for file in tmp_path.iterdir()} == {"first", name}


def test_a_run_that_is_interrupted_leaves_nothing(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("indexer.upkeep.backup._contents", interrupt)
    with pytest.raises(KeyboardInterrupt):
        restore(saved, tmp_path / "x.lm")
    assert list(tmp_path.iterdir()) == [saved]


def test_a_full_disk_is_that_of_the_backup(built_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def small(*given: Any, real: Any = sqlite3.connect, **options: Any) -> sqlite3.Connection:  # noqa: ANN401
        connection: sqlite3.Connection = real(*given, **options)
        connection.execute("PRAGMA max_page_count = 2")  # never fewer than the pages that are there
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(BudgetExceeded, match=r"a\.backup: database or disk is full"):
        backup(built_folder, tmp_path / "a.backup")


def test_a_file_that_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("Dear Sir, " * 2000)
    with pytest.raises((IndexMismatch, IndexDamaged), match=r"no backup|cannot be read"):
        restore(tmp_path / "letter", tmp_path / "x.lm")
    with tarfile.open(tmp_path / "other", "w") as archive:
        archive.addfile(tarfile.TarInfo("letter"))
    with pytest.raises(IndexMismatch, match="is no backup of an index"):
        restore(tmp_path / "other", tmp_path / "x.lm")


def test_a_member_outside_of_the_folder_is_refused(tmp_path: Path, saved: Path) -> None:
    with tarfile.open(tmp_path / "bad", "w") as bad, tarfile.open(saved) as good:
        for member in good:
            bad.addfile(member, good.extractfile(member))
            member.name = "../outside/shard"
            bad.addfile(member, good.extractfile(member))
    with pytest.raises(IndexDamaged, match="outside of the index"):
        restore(tmp_path / "bad", tmp_path / "x.lm")
    assert not (tmp_path / "outside").exists()


@pytest.fixture
def folder(tmp_path: Path, corpus: list[Document]) -> Path:
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder(), factory="Flat")
    return tmp_path / "x.lm"


def found(folder: Path) -> list[tuple[Damage, str]]:
    return [(finding.damage, finding.where) for finding in verify(folder)]


def ranked(folder: Path, doc_id: str = "doc003") -> list[tuple[str, float]]:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        return [(hit.doc_id, hit.score) for hit in index.search(doc_id).hits]


def test_an_unreadable_catalog_is_named_once(folder: Path) -> None:
    (folder / "catalog.sqlite").write_bytes(bytes(4096))
    assert [finding.what for finding in verify(folder)] == ["cannot be read (file is not a database)"]


@pytest.mark.slow
def test_a_generation_published_under_a_lower_floor_is_rebuilt(
    tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.search.partition.TIERS", ((10, 10),))  # else all are candidates, and none is missed
    folder = tmp_path / "x.lm"
    build(folder, corpus, encoder=FakeEncoder(), factory="IVF4,PQ2x4fs", recall_floor=0.0)
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.generation_row.recall < 0.95
    before = ranked(folder)
    next(folder.glob("ann/*/*.faiss")).write_bytes(b"")
    assert repair(folder).mended == ["ann/000001/chunks.faiss: rebuilt from the shards"]
    assert (found(folder), ranked(folder)) == ([], before)


def test_a_damaged_shard_costs_its_documents_unless_they_are_encoded_again(
    folder: Path, flip_byte: Callable[[Path, int], None], corpus: list[Document]
) -> None:
    before = ranked(folder)
    flip_byte(folder / "shards" / "000001.safetensors", -1)
    report = repair(folder, encode=True, encoder=FakeEncoder())
    assert (report.lost, sorted(report.reencoded)) == ([], sorted(document.doc_id for document in corpus))
    assert [name for name, _ in ranked(folder)] == [name for name, _ in before]
    flip_byte(next((folder / "shards").iterdir()), -1)
    assert sorted(repair(folder).lost) == sorted(document.doc_id for document in corpus)
    assert found(folder) == []
