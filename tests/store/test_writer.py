"""Each commit is stored completely, or not at all."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.errors import IndexDamaged, IndexMismatch
from engine.store.catalog import has_log
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from tests.fakes import FakeEncoder, make_corpus, make_document
from tests.store.written import commit, contents, killed_after


def test_committed_documents_can_be_read_before_the_writer_closes(folder: Path) -> None:
    with Writer(folder) as writer:
        commit(writer, make_document("new", "fresh words"))
        assert contents(folder)["new"] == "fresh words"


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
        writer.record_failure("b.pdf", "no text")
        writer.record_failure("a.pdf", "encrypted")
        writer.record_failure("b.pdf", "too large")
        writer.record_failure("new.txt", "not UTF-8")
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
        f"000000000000); pass --encoder fake, or encode it again: longmatch index {folder} --reencode"
    )


@pytest.mark.slow
def test_more_documents_than_sqlite_has_variables_are_committed(tmp_path: Path) -> None:
    encoder = FakeEncoder(width=1)
    documents = [make_document(f"d{number}", "w") for number in range(2_500)]
    with Writer(tmp_path / "x.lm") as writer:
        # Plain builds stop at 32,766.
        writer._connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 2_000)
        assert writer.commit(list(zip(documents, encoder.encode(documents), strict=True)))[-1] == 2_500


def test_an_index_is_as_readable_as_its_folder(folder: Path) -> None:
    modes = {path.stat().st_mode & 0o777 for path in (folder / "shards").iterdir()}
    assert modes == {(folder / "shards").stat().st_mode & 0o666}
