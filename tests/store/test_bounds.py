"""Forged catalogs: every checksum is right, and the contents are not."""

import json
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from engine.errors import IndexDamaged
from engine.store import checks
from engine.store.catalog import CATALOG_FILE, open_catalog
from engine.store.checks import record_documents, record_tables
from engine.store.durable import checksum
from engine.store.shards import part_digests
from engine.store.snapshot import IndexSnapshot
from engine.store.writable import engine_of
from engine.store.writer import Writer
from tests.fakes import make_corpus
from tests.store.written import ENCODER, commit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim(ENCODER)
        commit(writer, *make_corpus(12))
    return tmp_path / "x.lm"


def forge(folder: Path, change: Callable[[sqlite3.Connection], object]) -> None:
    """Change a catalog, and make all of its checksums right again."""
    with closing(open_catalog(folder / CATALOG_FILE, read_only=False)) as connection, engine_of(connection).begin():
        change(connection)
        record_documents(connection)
        record_tables(connection)


def statement(sql: str) -> Callable[[sqlite3.Connection], object]:
    return lambda connection: connection.execute(sql)


def test_a_forged_catalog_is_read_like_any_other(folder: Path) -> None:
    forge(folder, statement("UPDATE documents SET title = 'another' WHERE id = 5"))
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.titles()[4] == ("doc004", "another")


@pytest.mark.parametrize("name", ["../../etc/hostname", "/etc/hostname", "shards/../../x", "catalog.sqlite", "a\\b/c"])
def test_a_file_outside_of_the_folder_is_refused(folder: Path, name: str) -> None:
    forge(folder, statement(f"UPDATE shards SET file = '{name}'"))
    with pytest.raises(IndexDamaged, match="which lies outside of the index"):
        IndexSnapshot(folder)
    with pytest.raises(IndexDamaged, match="which lies outside of the index"):
        Writer(folder)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("n_chunks", 1 << 50),
        ("n_chunks", -1),
        ("chunk_row", 1 << 62),
        ("chunk_row", -5),
        ("document_row", 12),
        ("section_row", -1),
        ("shard_id", 7),
    ],
)
def test_vectors_outside_of_their_shard_are_refused(folder: Path, column: str, value: int) -> None:
    with closing(sqlite3.connect(folder / CATALOG_FILE)) as connection, connection:
        connection.execute(f"UPDATE documents SET {column} = {value} WHERE id = 5")
    forge(folder, lambda _: None)
    with IndexSnapshot(folder) as snapshot, pytest.raises(IndexDamaged, match="number 5 outside of its shard"):
        assert snapshot.locations


def test_a_text_that_unpacks_to_too_much_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MAX_TEXT_BYTES", 1_000_000)
    bomb = zlib.compress(bytes(1_000_001))
    forge(folder, lambda connection: connection.execute("UPDATE texts SET deflated = ?", [bomb]))
    with IndexSnapshot(folder) as snapshot:
        ((document, _),) = snapshot.documents(np.array([3]))
        with pytest.raises(IndexDamaged, match="more than 1,000,000 bytes"):
            document.text  # noqa: B018


def test_another_file_with_the_right_checksum_is_no_shard(folder: Path) -> None:
    (shard,) = (folder / "shards").iterdir()
    tensors = load_file(shard)
    shard.chmod(0o600)
    save_file({name: tensor for name, tensor in tensors.items() if name != "chunks"}, shard)
    written = checksum(shard)
    values = f"size_bytes = {written.size_bytes}, digest = '{written.digest}', part_digests = ?"
    digests = json.dumps(part_digests(shard))
    forge(folder, lambda made: made.execute(f"UPDATE shards SET {values}", [digests]))
    with IndexSnapshot(folder) as snapshot, pytest.raises(IndexDamaged, match="is no shard"):
        snapshot.chunk_vectors(np.array([0]))
