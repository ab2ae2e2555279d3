"""One writer at a time; each commit is whole, or not there."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from sqlalchemy import event, select, text
from sqlalchemy.exc import IntegrityError

from engine.document import Document
from engine.errors import IndexBusy, IndexDamaged, IndexMismatch
from engine.store.catalog import DocumentRow, SectionRow, TextRow
from engine.store.seal import check_seal, is_unsealed
from engine.store.snapshot import Snapshot
from engine.store.writer import LOCK_FILE, Writer
from tests.fakes import FakeEncoder, make_corpus, make_document

ENCODER = {"name": "fake", "fingerprint": "f" * 32, "width": 32}


def commit(writer: Writer, *documents: Document) -> list[int]:
    return writer.commit(list(zip(documents, FakeEncoder().encode(documents), strict=True)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index of three documents, no generation."""
    folder = tmp_path / "x.lm"
    with Writer(folder) as writer:
        writer.claim(ENCODER)
        commit(writer, *make_corpus(3))
    return folder


def contents(folder: Path) -> dict[str, str]:
    with Snapshot(folder) as snapshot:
        return {document.doc_id: document.text for document, _ in snapshot.documents(np.arange(snapshot.n_documents))}


def test_a_second_writer_is_refused(folder: Path) -> None:
    with Writer(folder), pytest.raises(IndexBusy) as raised:
        Writer(folder)
    assert str(raised.value) == f"another process is writing {folder}; wait for it to end"


def test_a_writer_in_another_process_is_refused(folder: Path) -> None:
    code = f"from pathlib import Path; from engine.store.writer import Writer; Writer(Path({str(folder)!r}))"
    with Writer(folder):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
        )
    assert f"IndexBusy: another process is writing {folder}; wait for it to end" in run.stderr


def test_a_lock_that_lies_about_is_no_lock(folder: Path) -> None:
    (folder / LOCK_FILE).touch()
    with Writer(folder) as writer:
        assert len([number for number, _ in writer.sources()]) == 3


def test_readers_do_not_need_the_lock(folder: Path) -> None:
    with FileLock(folder / LOCK_FILE):
        assert len(contents(folder)) == 3


def test_a_closed_writer_leaves_a_sealed_catalog(folder: Path) -> None:
    assert not is_unsealed(folder / "catalog.sqlite")
    check_seal(folder / "catalog.sqlite")
    with Writer(folder):
        assert is_unsealed(folder / "catalog.sqlite")
    assert not is_unsealed(folder / "catalog.sqlite")


def test_a_writer_that_raises_seals_and_lets_go(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), Writer(folder):
        raise ZeroDivisionError
    check_seal(folder / "catalog.sqlite")
    Writer(folder).close()


def test_what_is_committed_can_be_found_before_the_writer_closes(folder: Path) -> None:
    with Writer(folder) as writer:
        commit(writer, make_document("new", "fresh words"))
        assert contents(folder)["new"] == "fresh words"


def test_a_killed_writer_leaves_what_it_committed(folder: Path) -> None:
    code = f"""
import os; from pathlib import Path; from engine.store.writer import Writer
from tests.fakes import FakeEncoder, make_document
writer = Writer(Path({str(folder)!r}))
for name in "ab":
    document = make_document(name, "words of " + name)
    writer.commit([(document, FakeEncoder().encode([document])[0])])
(writer.folder / "shards" / "000099.safetensors").write_bytes(b"half a shard")
os._exit(9)
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)
    assert run.returncode == 9
    assert is_unsealed(folder / "catalog.sqlite")
    assert contents(folder).keys() == {"doc000", "doc001", "doc002", "a", "b"}
    with Writer(folder) as writer:
        assert commit(writer, make_document("c", "more")) == [6]
    assert not (folder / "shards" / "000099.safetensors").exists()
    check_seal(folder / "catalog.sqlite")


def test_a_document_is_replaced_in_one_transaction(folder: Path) -> None:
    with Writer(folder) as writer:
        ids = commit(writer, make_document("doc001", "quite another text"), make_document("new", "and one more"))
        assert ids == [4, 5]
        assert [number for number, _ in writer.sources()] == [1, 3, 4, 5]
        with writer.read() as connection:
            for table in (TextRow, SectionRow):
                assert set(connection.execute(select(table.document_id)).scalars()) == {1, 3, 4, 5}
    assert contents(folder)["doc001"] == "quite another text"


def test_a_commit_that_fails_changes_nothing(folder: Path) -> None:
    before = contents(folder)
    twice = make_document("twice", "first")
    with Writer(folder) as writer:
        with pytest.raises(IntegrityError):
            commit(writer, make_document("doc001", "changed"), twice, replace(twice, text="second"))
        assert contents(folder) == before
        assert commit(writer, twice) == [4]
    with Snapshot(folder) as snapshot:
        snapshot.chunk_vectors(np.arange(4))  # every shard is the recorded one


def test_ids_are_never_used_again(folder: Path) -> None:
    with Writer(folder) as writer:
        writer.remove([number for number, _ in writer.sources()])
        assert commit(writer, *make_corpus(2)) == [4, 5]
        writer.remove([5])
    with Writer(folder) as writer:
        assert commit(writer, make_document("z", "last words")) == [6]
        with writer.read() as connection:
            firsts = connection.execute(select(DocumentRow.first_chunk, DocumentRow.n_chunks)).all()
    (one, n_one), (other, _) = sorted(tuple(row) for row in firsts)
    encoded = FakeEncoder().encode(make_corpus(3))
    assert one == 1 + sum(len(document.chunks) for document in encoded)
    assert other >= one + n_one


def test_generation_numbers_are_never_used_again(folder: Path) -> None:
    with Writer(folder) as writer:
        number, path = writer.next_generation_file()
        path.write_bytes(b"x")
        writer.publish(_generation(number, path, folder))
        writer.withdraw_generations()
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


def test_files_that_the_catalog_does_not_name_are_swept(folder: Path) -> None:
    orphans = [folder / "shards" / "000009.safetensors", folder / "shards" / "000001.safetensors.tmp"]
    orphans += [folder / "ann" / "000003" / "chunks.faiss"]
    for orphan in orphans:
        orphan.parent.mkdir(exist_ok=True)
        orphan.write_bytes(b"left by a killed run")
    Writer(folder).close()
    assert [path.name for path in (folder / "shards").iterdir()] == ["000001.safetensors"]
    assert list((folder / "ann").iterdir()) == []


def test_failures_are_recorded_and_forgotten(folder: Path) -> None:
    with Writer(folder) as writer:
        writer.record_failure("b.pdf", "no text")
        writer.record_failure("a.pdf", "encrypted")
        writer.record_failure("b.pdf", "too large")
        writer.record_failure("new.txt", "not UTF-8")
    with Snapshot(folder) as snapshot:
        assert snapshot.failures() == [("a.pdf", "encrypted"), ("b.pdf", "too large"), ("new.txt", "not UTF-8")]
    with Writer(folder) as writer:
        writer.forget_failures(["a.pdf"])
        commit(writer, make_document("new", "well now", source="new.txt"))
    with Snapshot(folder) as snapshot:
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
        "000000000000); pass --encoder fake, or index into a new folder"
    )


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(IndexMismatch) as raised:
        Writer(tmp_path)
    assert str(raised.value) == f"{tmp_path} is not empty and holds no index; name a new folder or an index"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_index_folder(tmp_path: Path) -> None:
    (tmp_path / "x.lm").write_text("")
    with pytest.raises(IndexMismatch) as raised:
        Writer(tmp_path / "x.lm")
    assert str(raised.value) == f"{tmp_path / 'x.lm'} is a file; an index is a folder: name another path"


def test_a_damaged_catalog_is_refused_and_the_lock_given_back(
    folder: Path, flip_byte: Callable[[Path, int], None]
) -> None:
    flip_byte(folder / "catalog.sqlite", 5000)
    with pytest.raises(IndexDamaged, match="sealed were"):
        Writer(folder)
    flip_byte(folder / "catalog.sqlite", 5000)
    Writer(folder).close()


def test_an_unsealed_catalog_that_is_garbage_is_damage(folder: Path) -> None:
    (folder / "catalog.sqlite.seal").write_text('"unsealed"')
    (folder / "catalog.sqlite").write_bytes(b"garbage" * 1000)
    with pytest.raises(IndexDamaged, match=r"catalog.sqlite cannot be read \(.*\); check it: longmatch verify INDEX"):
        Writer(folder)
    with pytest.raises(IndexDamaged, match=r"catalog.sqlite cannot be read \(.*\); check it: longmatch verify INDEX"):
        Snapshot(folder)


def test_a_refused_writer_leaves_the_seal_whole(folder: Path) -> None:
    with Writer(folder) as writer, writer._engine.begin() as connection:
        connection.execute(text("UPDATE meta SET value = '99' WHERE key = 'schema_version'"))
    with pytest.raises(IndexMismatch, match="schema version 99"):
        Writer(folder)
    assert not is_unsealed(folder / "catalog.sqlite")


def test_more_documents_than_sqlite_has_variables_are_committed(tmp_path: Path) -> None:
    encoder = FakeEncoder(width=1)
    documents = [make_document(f"d{number}", "w") for number in range(2_500)]
    with Writer(tmp_path / "x.lm") as writer:
        # Plain builds stop at 32,766.
        event.listen(
            writer._engine, "connect", lambda raw, _: raw.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 2_000)
        )
        assert writer.commit(list(zip(documents, encoder.encode(documents), strict=True)))[-1] == 2_500


def test_a_run_that_was_killed_at_its_first_steps_can_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "x.lm"
    folder.mkdir()
    with Writer(folder):
        pass
    for name in ("catalog.sqlite", "catalog.sqlite.seal"):
        (folder / name).unlink()
    with Writer(folder) as writer:
        writer.claim(ENCODER)
        assert commit(writer, make_document("a", "some words")) == [1]


def test_a_catalog_without_tables_is_an_index_begun(folder: Path) -> None:
    begun = folder.with_name("begun.lm")
    begun.mkdir()
    sqlite3.connect(begun / "catalog.sqlite").execute("PRAGMA journal_mode=WAL").connection.close()
    (begun / "catalog.sqlite.seal").write_text('"unsealed"\n')
    with pytest.raises(IndexMismatch, match="was begun but holds nothing yet; fill it: longmatch index"):
        Snapshot(begun)
    with Writer(begun) as writer:
        assert writer.meta == {}


def test_a_sealed_catalog_that_is_gone_is_damage_and_its_shards_stay(folder: Path) -> None:
    (folder / "catalog.sqlite").unlink()
    with pytest.raises(IndexDamaged, match=r"catalog\.sqlite cannot be read \(No such file or directory\)"):
        Writer(folder)
    assert [path.name for path in (folder / "shards").iterdir()] == ["000001.safetensors"]


def test_a_damaged_log_costs_the_last_transaction_at_most(folder: Path) -> None:
    code = f"""
import os; from pathlib import Path; from engine.store.writer import Writer
from tests.fakes import FakeEncoder, make_document
writer = Writer(Path({str(folder)!r}))
writer.record_failure("bad.pdf", "no text")
document = make_document("a", "words of a")
writer.commit([(document, FakeEncoder().encode([document])[0])])
os._exit(9)
"""
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)
    log = folder / "catalog.sqlite-wal"
    whole = log.read_bytes()
    for size in range(0, len(whole), 2000):
        log.write_bytes(whole[:size])
        assert contents(folder).keys() == {"doc000", "doc001", "doc002", "a"}


def test_an_index_is_as_readable_as_its_folder(folder: Path) -> None:
    modes = {path.stat().st_mode & 0o777 for path in (folder / "shards").iterdir()}
    assert modes == {(folder / "shards").stat().st_mode & 0o666}


def test_a_folder_that_was_replaced_is_left_alone(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, other := tmp_path / "other.lm")
    writer = Writer(folder)
    folder.rename(moved := tmp_path / "moved.lm")
    other.rename(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for act in (lambda: commit(writer, make_document("new", "text")), writer.withdraw_generations):
        with pytest.raises(IndexMismatch, match="was moved or replaced by another folder while it was written"):
            act()
    writer.close()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    with Writer(moved) as again:
        assert len(again.sources()) == 3
