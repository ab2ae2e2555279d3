"""The catalog as one process writes it: commits, locks, leftovers, and what another process sees."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from engine.errors import IndexBusy, IndexDamaged, IndexMismatch, StorageError
from engine.index import Index
from engine.store.catalog import CATALOG_FILE, has_log
from engine.store.checks import commits_of
from engine.store.durable import fsync_folder
from engine.store.partitioned import stored_meta
from engine.store.snapshot import IndexSnapshot
from engine.store.writable import LOCK_FILE
from engine.store.writer import Writer
from indexer.upkeep.verify import verify
from tests.fakes import FakeEncoder, make_corpus, make_document
from tests.store.written import ENCODER, commit, contents, killed_after


def test_committed_documents_can_be_read_before_the_writer_closes(folder: Path) -> None:
    with Writer(folder) as writer:
        commit(writer, make_document("new", "fresh words"))
        assert contents(folder)["new"] == "fresh words"
    modes = {path.stat().st_mode & 0o777 for path in (folder / "shards").iterdir()}
    assert modes == {(folder / "shards").stat().st_mode & 0o666}


def test_a_catalog_whose_creation_lost_power_is_created_again(tmp_path: Path) -> None:
    folder = tmp_path / "x.lm"
    folder.mkdir()
    (folder / LOCK_FILE).touch()
    with closing(sqlite3.connect(tmp_path / CATALOG_FILE)) as begun:
        begun.executescript("PRAGMA cache_size=1; BEGIN; CREATE TABLE a (b)")
        begun.execute("INSERT INTO a VALUES (zeroblob(100000))")  # too large to wait in memory
        for path in tmp_path.glob(f"{CATALOG_FILE}*"):
            shutil.copy(path, folder)
    for read in (contents, verify, stored_meta):
        with pytest.raises(IndexMismatch, match=r"holds nothing yet.* longmatch index"):
            read(folder)
    with Writer(folder) as writer:
        writer.claim(ENCODER)
        commit(writer, make_document("a", "words"))
    assert contents(folder) == {"a": "words"}


def test_a_killed_writer_leaves_what_it_committed(folder: Path) -> None:
    def write() -> Writer:
        writer = Writer(folder)
        for name in "ab":
            commit(writer, make_document(name, "words of " + name))
        (writer.folder / "shards" / "000004.safetensors").write_bytes(b"half a shard")
        return writer

    killed_after(write)
    assert has_log(folder)
    assert contents(folder).keys() == {"doc000", "doc001", "doc002", "a", "b"}
    with Writer(folder) as writer:
        assert commit(writer, make_document("c", "more")) == [6]
    assert (folder / "shards" / "000004.safetensors").stat().st_size > len("half a shard")
    assert not has_log(folder)


def test_a_document_is_replaced_in_one_transaction(folder: Path) -> None:
    with Writer(folder) as writer:
        ids = commit(writer, make_document("doc001", "quite another text"), make_document("new", "and one more"))
        assert ids == [4, 5]
        assert [number for number, _ in writer.sources()] == [1, 3, 4, 5]
        with writer.read() as connection:
            for table in ("texts", "sections"):
                ids = {one for (one,) in connection.execute(f"SELECT document_id FROM {table}")}
                assert ids == {1, 3, 4, 5}
    assert contents(folder)["doc001"] == "quite another text"


def test_a_commit_that_fails_changes_nothing(folder: Path) -> None:
    before = contents(folder)
    twice = make_document("twice", "first")
    with Writer(folder) as writer:
        with pytest.raises(IndexDamaged, match="UNIQUE constraint failed"):
            commit(writer, make_document("doc001", "changed"), twice, replace(twice, text="second"))
        assert contents(folder) == before
        assert commit(writer, twice) == [4]
    with IndexSnapshot(folder) as snapshot:
        snapshot.chunk_vectors(np.arange(4))  # every shard is the recorded one


def test_ids_are_never_used_again(folder: Path) -> None:
    with Writer(folder) as writer:
        writer.remove([number for number, _ in writer.sources()])
        assert commit(writer, *make_corpus(2)) == [4, 5]
        writer.remove([5])
    with Writer(folder) as writer:
        assert commit(writer, make_document("z", "last words")) == [6]
        with writer.read() as connection:
            firsts = connection.execute("SELECT first_chunk, n_chunks FROM documents").fetchall()
    (one, n_one), (other, _) = sorted(firsts)
    encoded = FakeEncoder().encode(make_corpus(3))
    assert one == 1 + sum(len(document.chunks) for document in encoded)
    assert other >= one + n_one


def test_generation_numbers_are_never_used_again(folder: Path) -> None:
    with Writer(folder) as writer:
        number, path = writer.next_generation_file()
        path.write_bytes(b"x")
        writer.publish(_generation(number, path, folder))
        writer.withdraw("generations", "word_postings")
        assert not path.exists()
        assert (number, writer.next_generation_file()[0]) == (1, 2)
    with Writer(folder) as writer:
        assert writer.next_generation_file()[0] == 2


def _generation(number: int, path: Path, folder: Path) -> dict[str, object]:
    return {
        "id": number,
        "factory": "Flat",
        "nprobe": 0,
        "through_chunk": 1,
        "n_vectors": 1,
        "is_exact": True,
        "recall": 1.0,
        "recall_queries": 0,
        "file": path.relative_to(folder).as_posix(),
        "size_bytes": 1,
        "digest": "0" * 32,
    }


def test_failures_are_recorded_and_forgotten(folder: Path) -> None:
    with Writer(folder) as writer:
        writer.record_failures([("b.pdf", "no text", "")])
        writer.record_failures([("a.pdf", "encrypted", "")])
        writer.record_failures([("b.pdf", "too large", "")])
        writer.record_failures([("new.txt", "not UTF-8", "")])
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.failures() == [("a.pdf", "encrypted"), ("b.pdf", "too large"), ("new.txt", "not UTF-8")]
    with Writer(folder) as writer:
        writer.forget_failures(["a.pdf"])
        commit(writer, make_document("new", "well now", source="new.txt"))
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.failures() == [("b.pdf", "too large")]


def test_metadata_is_updated_in_place(folder: Path) -> None:
    with Writer(folder) as writer:
        document = replace(make_corpus(3)[1], metadata={"new": [1, "é"]}, source="moved.txt")
        writer.update_metadata([(2, document)])
        known = writer.indexed(["doc001", "no such"])
    assert {name: (one.id, one.metadata, one.source) for name, one in known.items()} == {
        "doc001": (2, {"new": [1, "é"]}, "moved.txt")
    }


def test_another_encoder_is_refused(folder: Path) -> None:
    with Writer(folder) as writer, pytest.raises(IndexMismatch) as raised:
        writer.claim({"name": "other", "fingerprint": "0" * 32, "width": 8})
    assert str(raised.value) == (
        f"{folder} was built with encoder 'fake' (32 wide, fingerprint ffffffffffff), not 'other' (8 wide, "
        f"000000000000); pass --encoder fake, index into a new folder, or encode a copy without vectors: longmatch "
        f"upkeep partition {folder} NEW -p 1 --words"
    )


@pytest.mark.slow
def test_more_documents_than_sqlite_has_variables_are_committed(tmp_path: Path) -> None:
    encoder = FakeEncoder(width=1)
    documents = [make_document(f"d{number}", "w") for number in range(2_500)]
    with Writer(tmp_path / "x.lm") as writer:
        # Plain builds stop at 32,766.
        writer._connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 2_000)
        assert writer.commit(list(zip(documents, encoder.encode(documents), strict=True)))[-1] == 2_500


def test_a_lock_blocks_no_reader_and_one_that_nobody_holds_no_writer(folder: Path) -> None:
    (folder / LOCK_FILE).touch()
    with Writer(folder) as writer:
        assert len([number for number, _ in writer.sources()]) == 3
    with FileLock(folder / LOCK_FILE):
        assert len(contents(folder)) == 3


def test_a_writer_that_closes_or_raises_leaves_no_log_and_no_lock(folder: Path) -> None:
    assert not has_log(folder)
    with Writer(folder) as writer:
        writer.record_failures([("bad.pdf", "no text", "")])
        assert has_log(folder)
    assert not has_log(folder)
    with pytest.raises(ZeroDivisionError), Writer(folder):
        raise ZeroDivisionError
    assert not has_log(folder)
    Writer(folder).close()


def test_files_that_the_catalog_does_not_name_are_swept(folder: Path) -> None:
    orphans = [folder / "shards" / "000002.safetensors", folder / "shards" / "000001.safetensors.tmp"]
    orphans += [folder / "ann" / "000003" / "chunks.faiss"]
    for orphan in orphans:
        orphan.parent.mkdir(exist_ok=True)
        orphan.write_bytes(b"left by a killed run")
    Writer(folder).close()
    assert [path.name for path in (folder / "shards").iterdir()] == ["000001.safetensors"]
    assert list((folder / "ann").iterdir()) == []


def test_a_foreign_folder_and_a_file_are_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(IndexMismatch) as raised:
        Writer(tmp_path)
    assert str(raised.value) == f"{tmp_path} is not empty and holds no index; name a new folder or an index"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "x.lm").write_text("")
    with pytest.raises(IndexMismatch) as raised:
        Writer(tmp_path / "x.lm")
    assert str(raised.value) == f"{tmp_path / 'x.lm'} is a file; an index is a folder: name another path"


def test_a_damaged_catalog_is_refused_and_the_lock_given_back(
    folder: Path, flip_byte: Callable[[Path, int], None]
) -> None:
    at = (folder / "catalog.sqlite").read_bytes().index(b"doc001")
    flip_byte(folder / "catalog.sqlite", at)
    with pytest.raises(IndexDamaged, match=r"what was written|cannot be read"), Writer(folder) as writer:
        writer.indexed(["doc000", "doc001"])
    flip_byte(folder / "catalog.sqlite", at)
    Writer(folder).close()


def test_a_catalog_that_is_garbage_or_gone_is_damage_and_its_shards_stay(folder: Path) -> None:
    (folder / "catalog.sqlite").write_bytes(b"garbage" * 1000)
    for opened in (Writer, IndexSnapshot):
        with pytest.raises(
            IndexDamaged, match=r"catalog.sqlite cannot be read \(.*\); check it: longmatch upkeep verif"
        ):
            opened(folder)
    (folder / "catalog.sqlite").unlink()
    with pytest.raises(IndexDamaged, match=r"catalog\.sqlite is missing, and writing would delete shards"):
        Writer(folder)
    assert [path.name for path in (folder / "shards").iterdir()] == ["000001.safetensors"]


def test_a_refused_writer_changes_nothing(folder: Path) -> None:
    with Writer(folder) as writer, writer._transaction() as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    with pytest.raises(IndexMismatch) as raised:
        Writer(folder)
    assert str(raised.value) == (
        "the index has format 99, this program reads format 1; index the corpus again into a new folder: "
        "longmatch index NEW_FOLDER PATH..."
    )
    assert not has_log(folder)


def test_a_catalog_without_tables_is_an_index_begun(folder: Path) -> None:
    begun = folder.with_name("begun.lm")
    begun.mkdir()
    sqlite3.connect(begun / "catalog.sqlite").execute("PRAGMA journal_mode=WAL").connection.close()
    with pytest.raises(IndexMismatch, match="was begun but holds nothing yet; fill it: longmatch index"):
        IndexSnapshot(begun)
    with Writer(begun) as writer:
        assert writer.meta == {"format": 1, "commits": 1}


def test_a_damaged_log_costs_the_last_transaction_at_most(folder: Path) -> None:
    def write() -> Writer:
        writer = Writer(folder)
        writer.record_failures([("bad.pdf", "no text", "")])
        commit(writer, make_document("a", "words of a"))
        return writer

    killed_after(write)
    log = folder / "catalog.sqlite-wal"
    whole = log.read_bytes()
    for size in range(0, len(whole), 2000):
        log.write_bytes(whole[:size])
        assert contents(folder).keys() == {"doc000", "doc001", "doc002", "a"}


def test_a_folder_that_was_replaced_is_left_alone(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, other := tmp_path / "other.lm")
    writer = Writer(folder)
    folder.rename(moved := tmp_path / "moved.lm")
    other.rename(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for act in (lambda: commit(writer, make_document("new", "text")), lambda: writer.withdraw("generations")):
        with pytest.raises(IndexMismatch, match="was moved or replaced by another folder while it was written"):
            act()
    writer.close()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    with Writer(moved) as again:
        assert len(again.sources()) == 3


def test_the_lock_is_durable_before_anything_else_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def recorded(folder: Path) -> None:
        seen.append(sorted(path.name for path in folder.iterdir()))
        fsync_folder(folder)

    monkeypatch.setattr("engine.store.writable.fsync_folder", recorded)
    Writer(tmp_path / "x.lm").close()
    Writer(tmp_path / "x.lm").close()
    assert seen == [["writer.lock"]]


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """An index whose last commits are in the log alone, as a killed writer may leave it."""
    folder = tmp_path / "x.lm"
    with Writer(folder) as writer:
        writer.claim(ENCODER)
        commit(writer, *make_corpus(4))
        with Index.open(folder, encoder=FakeEncoder()):  # a reader keeps the log
            commit(writer, *make_corpus(6)[4:])
            shutil.copytree(folder, tmp_path / "killed.lm", ignore=shutil.ignore_patterns("*-shm"))
    return tmp_path / "killed.lm"


def test_a_log_that_cannot_be_read_is_not_passed_over(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (killed / f"{CATALOG_FILE}-wal").stat().st_size
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StorageError, match=r"cannot be written, and catalog\.sqlite-wal holds commits"):
        Index.open(killed, encoder=FakeEncoder())
    monkeypatch.undo()
    with Index.open(killed, encoder=FakeEncoder()) as index:
        assert index.n_documents == 6


_SCRIPT = """
import sys
from engine.store.partitioned import stored_meta
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from pathlib import Path
from engine.errors import StorageError
with IndexSnapshot(Path(sys.argv[1])) as snapshot:
    print(len(snapshot.doc_ids()))
try:
    Writer(Path(sys.argv[1]))
except StorageError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_closed_index_is_read_from_a_read_only_mount(built_folder: Path) -> None:
    mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("no permission to mount")
    command = ["unshare", "-rm", "sh", "-c", f'{mount} || exit 77; exec "$0" -c "$2" "$1"', sys.executable]
    done = subprocess.run([*command, str(built_folder), _SCRIPT], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("no permission to mount")
    assert done.stdout.splitlines()[0] == "60", done.stderr
    assert "which is mounted read-only" in done.stdout


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    reader, sender = os.pipe()
    child = os.fork()
    if child == 0:
        writer = Writer(tmp_path / "x.lm")
        os.write(sender, b"1" if writer else b"0")
        signal.pause()
    os.read(reader, 1)
    try:
        with pytest.raises(IndexBusy, match="another process is writing"):
            Writer(tmp_path / "x.lm")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim(ENCODER)
        assert len(commit(writer, *make_corpus(2))) == 2


def test_threads_of_one_writer_wait_for_each_other(folder: Path) -> None:
    with Writer(folder) as writer:
        before = commits_of(writer.meta)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda number: writer.record_failures([(f"{number}.txt", "no text", "")]), range(40)))
        assert len(writer.failed_sources()) == 40
        assert commits_of(writer.meta) == before + 40


def test_a_catalog_of_another_program_is_refused_and_left(tmp_path: Path) -> None:
    folder = tmp_path / "x.lm"
    folder.mkdir()
    with closing(sqlite3.connect(folder / CATALOG_FILE)) as theirs:
        theirs.execute("CREATE TABLE photos (id INTEGER)")
    before = (folder / CATALOG_FILE).read_bytes()
    for use in (Writer, IndexSnapshot):
        with pytest.raises(IndexMismatch, match=r"is of another program: it has the table 'photos'; name another"):
            use(folder)
    assert (folder / CATALOG_FILE).read_bytes() == before
