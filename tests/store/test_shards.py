"""Shards, gathered reads of them, and files of arrays."""

import json
import sqlite3
import tracemalloc
from contextlib import closing
from dataclasses import asdict, astuple
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors.numpy

from engine.encoders.encoder import EncodedDocument
from engine.errors import StorageError
from engine.store import shards
from engine.store.durable import checksum
from engine.store.gathering import name_key
from engine.store.reference import content_key
from engine.store.shards import (
    Shard,
    ShardSet,
    as_float32,
    coarse,
    map_file,
    mapped_tensors,
    part_digests,
    save_file,
    shard_arrays,
    shard_file,
    write_shard,
)
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.words.counts import WordTables, count_documents, unpacked
from engine.words.segmenter import WordSegmenter, segmenter_of
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus
from tests.store.written import ENCODER


@pytest.fixture
def encoded(encoder: FakeEncoder) -> list[EncodedDocument]:
    return encoder.encode(make_corpus(5))


def words_of(n_documents: int) -> WordTables:
    return count_documents(WordSegmenter("english"), make_corpus(n_documents))


def view(path: Path) -> Shard:
    row = SimpleNamespace(id=1, file=path.name, part_digests=json.dumps(part_digests(path)), **asdict(checksum(path)))
    return ShardSet(path.parent, [row])[1]


def _assert_equal(one: Shard, other: Shard) -> None:
    for name in ("documents", "sections", "chunks", "spans"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert getattr(one, name).dtype == getattr(other, name).dtype
    for kind in ("words", "pairs"):
        for column in ("terms", "counts", "starts"):
            mine, theirs = (getattr(getattr(unpacked(words), kind), column) for words in (one.words, other.words))
            assert np.array_equal(mine, theirs) and mine.dtype == theirs.dtype


def test_a_mapped_shard_is_the_written_one_and_read_only(encoded: list[EncodedDocument], tmp_path: Path) -> None:
    shard = shard_arrays(encoded, words_of(5))
    written = write_shard(tmp_path / "s", shard)
    _assert_equal(view(tmp_path / "s"), shard)
    assert written == checksum(tmp_path / "s")
    write_shard(tmp_path / "s", shard_arrays(encoded, words_of(5)))
    with pytest.raises(ValueError, match="read-only"):
        view(tmp_path / "s").chunks[0, 0] = 1


def test_shards_are_named_by_number_and_one_that_vanishes_is_named(tmp_path: Path) -> None:
    assert shard_file(7) == "shards/000007.safetensors"
    with pytest.raises(StorageError, match=r"000001\.safetensors has vanished; check that no other program"):
        part_digests(tmp_path / "000001.safetensors")


@pytest.mark.parametrize("apart", [False, True])
def test_counts_come_in_the_requested_order(tmp_path: Path, apart: bool) -> None:
    corpus = make_corpus(8)
    build(tmp_path / "x.lm", corpus[:4], encode="none")
    build(tmp_path / "x.lm", corpus[4:], encode="none")
    positions = np.array([6, 1, 3, 4])
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        found = snapshot.words(positions, apart=apart)
        expected = count_documents(segmenter_of(snapshot.language or "none"), [corpus[at] for at in positions])
        places, packed = snapshot.packed_words(positions)
        assert sorted(places.tolist()) == [0, 1, 2, 3]
        assert "_count_ones" not in vars(packed.words)  # lengths need no counts
        assert packed.words.lengths()[np.argsort(places)].tolist() == expected.words.lengths().tolist()
    assert (found.apart is not None) is apart
    for kind in ("words", "pairs"):
        mine, theirs = getattr(found, kind), getattr(expected, kind)
        assert np.array_equal(mine.terms, theirs.terms) and np.array_equal(mine.counts, theirs.counts)
        assert np.array_equal(mine.lengths(), theirs.lengths())


def test_locations_equal_the_rows_of_the_catalog(built_folder: Path) -> None:
    with closing(sqlite3.connect(f"file:{built_folder / 'catalog.sqlite'}?mode=ro", uri=True)) as catalog:
        rows = catalog.execute(
            "SELECT id, shard_id, document_row, section_row, n_sections, chunk_row, first_chunk, n_chunks, "
            "tokens_total, content_hash, doc_id FROM documents ORDER BY id"
        ).fetchall()
    with IndexSnapshot(built_folder) as snapshot:
        columns = astuple(snapshot.locations)
    rows = [(*row, content_key(content_hash), name_key(doc_id)) for *row, content_hash, doc_id in rows]
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == rows
    assert [column.dtype for column in columns] == [np.int64] * 9 + [np.uint64] * 2
    assert all(column.flags.c_contiguous for column in columns)


def test_locations_of_no_document_are_empty(tmp_path: Path) -> None:
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim(ENCODER)
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        assert [column.shape for column in astuple(snapshot.locations)] == [(0,)] * 11


TYPES = ("float16", "float32", "int8", "int32", "int64", "uint8", "uint16", "uint32")


def test_a_file_is_that_of_safetensors_byte_for_byte(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    tensors = {
        f"{name} {number}": draw.integers(0, 99, (3, number)).astype(name) for number in range(3) for name in TYPES
    }
    tensors["Größe"] = np.ones(1, np.float16)
    save_file(tensors, tmp_path / "ours")
    safetensors.numpy.save_file(tensors, tmp_path / "theirs")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    content = map_file(tmp_path / "ours")
    assert content is not None
    read = mapped_tensors(content)
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(read[name], tensor)


def test_a_transposed_array_is_written_by_its_rows_and_none_is_copied(tmp_path: Path) -> None:
    turned = np.arange(6, dtype=np.int32).reshape(2, 3).T
    save_file({"turned": turned}, tmp_path / "x")
    np.testing.assert_array_equal(safetensors.numpy.load_file(tmp_path / "x")["turned"], turned)
    tensors = {name: np.zeros(4_000_000, np.uint8) for name in "abc"}
    tracemalloc.start()
    save_file(tensors, tmp_path / "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.mark.parametrize("block", [shards._BLOCK, 1_000])
def test_every_finite_half_is_the_same_number(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(shards, "_BLOCK", block)
    finite = ALL[np.isfinite(ALL)].reshape(-1, 2)
    made = as_float32(finite)
    assert made.dtype == np.float32
    assert np.array_equal(made.view(np.uint32), finite.astype(np.float32).view(np.uint32))  # zeros by their sign, too


def test_infinities_nan_parts_and_empty_arrays_are_widened() -> None:
    assert np.array_equal(as_float32(ALL), ALL.astype(np.float32), equal_nan=True)
    for value in (np.inf, -np.inf, np.nan):
        assert np.array_equal(
            as_float32(np.array([1, value], np.float16)), np.array([1, value], np.float32), equal_nan=True
        )
    table = np.random.default_rng(0).standard_normal((7, 6)).astype(np.float16)
    table.flags.writeable = False
    assert np.array_equal(as_float32(table[::2, 1:4]), table[::2, 1:4].astype(np.float32))
    assert as_float32(np.empty((0, 6), np.float16)).shape == (0, 6)


@pytest.mark.parametrize(("n", "width"), [(5_000, 32), (3, 384), (0, 8)])
def test_similarities_to_coarse_rows_are_near(n: int, width: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, width))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    query = rng.standard_normal(width)
    query /= np.linalg.norm(query)
    kept = coarse(rows)
    assert len(kept) == n and kept.steps.nbytes == n * width
    largest = np.abs(rows.astype(float)).max(initial=0)
    assert (np.abs(kept.as_float32() - rows.astype(float)) <= 0.6 * largest / 127).all()
    np.testing.assert_allclose(
        kept.as_float32() @ query, rows.astype(float) @ query, atol=0.012 if width == 32 else 0.002
    )


def test_a_row_is_as_similar_to_itself_as_before_and_zeros_stay_zeros() -> None:
    rows = np.random.default_rng(1).standard_normal((200, 24))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    wide = rows.astype(np.float32)
    own = (coarse(rows).as_float32() * wide).sum(axis=1)
    np.testing.assert_allclose(own, (wide * wide).sum(axis=1), atol=5e-7)
    assert not coarse(np.zeros((2, 4), np.float16)).as_float32().any()
