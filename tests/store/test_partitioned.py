"""Partitions: their manifest, an index of several, and its replicas."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
import xxhash

from engine.encoders.encoder import EncodedDocument, Vectors
from engine.errors import IndexDamaged, IndexMismatch
from engine.gpu import can_clone, centroids, list_parts, lists_of
from engine.store.ann import Replica
from engine.store.catalog import (
    Entry,
    Manifest,
    ReferenceFile,
    holds_index,
    index_folders,
    is_partitioned,
    manifest_checksum,
    partition_of,
    read_manifest,
    write_manifest,
)
from engine.store.partitioned import PartitionedSnapshot, open_snapshot
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
from tests.fakes import FakeEncoder, make_corpus
from tests.gpu_index import WIDTH, drawn_rows
from tests.stand_in_gpus import StandInGpus

REFERENCE = ReferenceFile(3, 100, 40, "reference/000003.safetensors", 1234, "d" * 32)
MANIFEST = Manifest(
    {"name": "e", "fingerprint": "f" * 32, "width": 8},
    "english",
    REFERENCE,
    (Entry("0000.lm", 5, 50), Entry("0001.lm", 0, 0)),
    last_reference=3,
)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert not holds_index(tmp_path)
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path) == MANIFEST
    assert holds_index(tmp_path)
    assert is_partitioned(tmp_path)
    write_manifest(tmp_path, replace(MANIFEST, encoder=None, reference=None))
    assert read_manifest(tmp_path) == replace(MANIFEST, encoder=None, reference=None)
    assert [file.name for file in tmp_path.iterdir()] == ["partitions.json"]


def test_documents_are_spread_by_the_hash_of_their_names() -> None:
    names = [f"päpers/{number}.pdf" for number in range(4_000)]
    numbers = [partition_of(name, 4) for name in names]
    assert numbers == [xxhash.xxh3_64(name.encode()).intdigest() % 4 for name in names]
    assert all(900 < numbers.count(number) < 1100 for number in range(4))
    assert partition_of("a", 4_096) == 0xE6C632B61E964E1F % 4_096  # the hash is part of the format


def test_folders_of_an_index_without_partitions_are_its_own(tmp_path: Path) -> None:
    assert index_folders(tmp_path) == [tmp_path]
    write_manifest(tmp_path, MANIFEST)
    assert index_folders(tmp_path) == [tmp_path / "0000.lm", tmp_path / "0001.lm"]


def test_a_manifest_that_is_missing_or_cut_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexMismatch, match=r"has no partitions\.json; name a partitioned index, or restore that file"):
        read_manifest(tmp_path)
    (tmp_path / "partitions.json").write_text('{"format": "longm')
    with pytest.raises(IndexDamaged, match=r"partitions\.json cannot be read .*restore a copy"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"format": "longmatch-partitions/9"},
            IndexMismatch,
            "has format 'longmatch-partitions/9' with hash 'xxh3_64'",
        ),
        ({"hash": "md5"}, IndexMismatch, "with hash 'md5'"),
        ({"n_partitions": 3}, IndexDamaged, "it names 2 partitions, not 3"),
        ({"partitions": [], "n_partitions": 0}, IndexDamaged, "it names 0 partitions"),
        ({"partitions": [asdict(Entry("0000.lm", 5, 50))] * 2}, IndexDamaged, "it names 1 partitions, not 2"),
        ({"partitions": [{"folder": "0000.lm"}]}, IndexDamaged, "cannot be read"),
        ({"reference": {"version": 1}}, IndexDamaged, "cannot be read"),
        (
            {"partitions": [{"folder": "../x.lm", "n_documents": 1, "n_chunks": 1}], "n_partitions": 1},
            IndexDamaged,
            r"it names '\.\./x\.lm', which is not a place of a partitioned index",
        ),
        ({"reference": asdict(REFERENCE) | {"file": "/etc/passwd"}}, IndexDamaged, "it names '/etc/passwd'"),
    ],
)
def test_manifests_that_do_not_fit_are_refused(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    write_manifest(tmp_path, MANIFEST)
    path = tmp_path / "partitions.json"
    values = json.loads(path.read_text()) | change
    del values["checksum"]
    path.write_text(json.dumps(values | {"checksum": manifest_checksum(values)}))
    with pytest.raises(error, match=message):
        read_manifest(tmp_path)


@pytest.mark.slow
def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST)
    path = tmp_path / "partitions.json"
    content = path.read_bytes()
    for place, bit in itertools.product(range(len(content)), range(8)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        with pytest.raises((IndexDamaged, IndexMismatch)):
            read_manifest(tmp_path)


N = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half of the documents have vectors."""
    folder, documents = tmp_path_factory.mktemp("partitioned"), make_corpus(N)
    build(folder / "one.lm", documents[: N // 2], encoder=FakeEncoder())
    build(folder / "one.lm", documents, encode="none")
    partition(folder / "one.lm", folder / "x.parts", 3)
    return folder


@pytest.fixture
def one(folder: Path) -> Iterator[IndexSnapshot]:
    with open_snapshot(folder / "one.lm") as snapshot:
        assert type(snapshot) is IndexSnapshot
        yield snapshot


@pytest.fixture
def parts(folder: Path) -> Iterator[IndexSnapshot]:
    with open_snapshot(folder / "x.parts") as snapshot:
        assert type(snapshot) is PartitionedSnapshot
        yield snapshot


def positions(snapshot: IndexSnapshot, names: list[str]) -> np.ndarray:
    found = [snapshot.position(name) for name in names]
    return np.array(found, np.int64)


def shuffled() -> list[str]:
    return [f"doc{number:03d}" for number in np.random.default_rng(0).permutation(N)]


def test_names_texts_and_keys_are_those_of_one_index(one: IndexSnapshot, parts: IndexSnapshot) -> None:
    names = shuffled()
    mine, theirs = positions(parts, names), positions(one, names)
    assert sorted(parts.doc_ids()) == one.doc_ids()
    assert parts.doc_ids_of(mine) == names
    assert [document.text for document, _ in parts.documents(mine)] == [
        document.text for document, _ in one.documents(theirs)
    ]
    assert [coverage for _, coverage in parts.documents(mine)] == [coverage for _, coverage in one.documents(theirs)]
    np.testing.assert_array_equal(parts.locations.contents[mine], one.locations.contents[theirs])
    assert parts.content_hashes() == one.content_hashes()
    assert parts.chunk_counts() == one.chunk_counts()
    assert sorted(parts.titles()) == sorted(one.titles())
    assert set(parts.similar_names("doc00", 30)) == set(one.similar_names("doc00", 30))
    assert len(parts.similar_names("doc00", 2)) == 2


def test_vectors_words_and_spans_are_those_of_one_index(one: IndexSnapshot, parts: IndexSnapshot) -> None:
    names = shuffled()
    mine, theirs = positions(parts, names), positions(one, names)
    np.testing.assert_array_equal(parts.has_vectors[mine], one.has_vectors[theirs])
    np.testing.assert_array_equal(parts.tokens[mine], one.tokens[theirs])
    np.testing.assert_array_equal(parts.document_rows(mine), one.document_rows(theirs))
    for of_parts, of_one in zip(parts.chunk_vectors(mine), one.chunk_vectors(theirs), strict=True):
        np.testing.assert_array_equal(of_parts, of_one)
    for of_parts, of_one in zip(mine.tolist(), theirs.tolist(), strict=True):
        np.testing.assert_array_equal(parts.spans(of_parts), one.spans(of_one))
        np.testing.assert_array_equal(parts.section_vectors(of_parts), one.section_vectors(of_one))
    np.testing.assert_array_equal(parts.words(mine).words.counts, one.words(theirs).words.counts)
    np.testing.assert_array_equal(parts.words(mine).pairs.terms, one.words(theirs).pairs.terms)


def test_counts_and_filters_are_those_of_one_index(one: IndexSnapshot, parts: IndexSnapshot) -> None:
    names = shuffled()
    of_parts, of_one = parts.matching("family = 'even'"), one.matching("family = 'even'")
    np.testing.assert_array_equal(of_parts[positions(parts, names)], of_one[positions(one, names)])
    same = [name for name in one.totals() if name not in ("shards", "shard_bytes")]
    assert {name: parts.totals()[name] for name in same} == {name: one.totals()[name] for name in same}
    assert len(parts.shard_rows) == parts.totals()["shards"]


def test_a_reference_drawn_over_partitions_is_that_of_one_index(one: IndexSnapshot, parts: IndexSnapshot) -> None:
    of_parts, of_one = parts.draw_reference(7), one.draw_reference(7)
    np.testing.assert_array_equal(of_parts.hashes, of_one.hashes)
    np.testing.assert_array_equal(of_parts.vectors, of_one.vectors)
    for kind in ("words", "pairs"):
        mine, theirs = getattr(of_parts.statistics, kind), getattr(of_one.statistics, kind)
        np.testing.assert_array_equal(mine.terms, theirs.terms)
        np.testing.assert_array_equal(mine.counts, theirs.counts)
        assert mine.total == theirs.total
    np.testing.assert_array_equal(of_parts.common, of_one.common)
    assert parts.reference_row == one.reference_row


def test_attached_vectors_are_seen_in_their_partition(parts: IndexSnapshot) -> None:
    at = np.flatnonzero(~parts.has_vectors)[[5, 0, 3]]
    documents: list[Document] = [document for document, _ in parts.documents(at)]
    encoded: list[EncodedDocument] = FakeEncoder().encode(documents)
    parts = parts.with_vectors(at, encoded)
    assert parts.has_vectors[at].all()
    assert sum(int(part.has_vectors.sum()) for part in parts.parts) == N // 2 + 3
    vectors, starts = parts.chunk_vectors(at)
    np.testing.assert_array_equal(vectors, np.concatenate([one.chunks for one in encoded]).astype(np.float16))
    np.testing.assert_array_equal(starts, np.cumsum([0, *(len(one.chunks) for one in encoded)])[:-1])
    assert parts.tokens[at].tolist() == [one.coverage.tokens_total for one in encoded]
    assert parts.documents(at)[1][1] == encoded[1].coverage


ROWS = drawn_rows(3000, 1).astype(np.float16).astype(np.float32)
IDS = np.arange(3000) * 5 + 2
QUERIES = drawn_rows(7, 2).astype(np.float16).astype(np.float32)
BLOCKS = [(IDS[first : first + 400], ROWS[first : first + 400]) for first in range(0, 3000, 400)]


def by_hand(k: int) -> tuple[np.ndarray, Vectors]:
    table = QUERIES @ ROWS.T
    order = np.argsort(-table, axis=1)[:, :k]
    return IDS[order], np.take_along_axis(table, order, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("n_gpus", [1, 2])
@pytest.mark.parametrize("code", ["QT_fp16", "QT_8bit"])
def test_lists_keep_their_centroids_and_are_probed_as_requested(n_gpus: int, code: str) -> None:
    cpu = faiss.index_factory(WIDTH, "IVF8,PQ16x4fs", faiss.METRIC_INNER_PRODUCT)
    cpu.train(ROWS)
    around = centroids(lists_of(cpu, WIDTH))
    parts = list_parts(StandInGpus(n_gpus), around, code, ROWS, BLOCKS)
    replica = Replica(parts, nprobe=8, n_lists=8)
    ids, similarities = replica.search(QUERIES, 10)
    assert np.array_equal(ids[:, 0], by_hand(1)[0][:, 0])
    np.testing.assert_allclose(similarities, by_hand(10)[1], atol=5e-3)
    few, _ = replica.search(QUERIES, 2000, nprobe=1)
    nearest = np.argmax(QUERIES @ around.T, axis=1)
    owners = np.argmax(ROWS @ around.T, axis=1)
    for row, own in zip(few, nearest, strict=True):
        assert sorted(row[row >= 0].tolist()) == IDS[owners == own].tolist()


@pytest.mark.parametrize(
    ("factory", "expected"),
    [
        ("IVF8,Flat", True),
        ("IVF8,SQ8", True),
        ("IVF8,SQfp16", True),
        ("IVF8,PQ16", True),
        ("IVF8,SQ6", False),
        ("IVF8,PQ16x4", False),
        ("IVF8,PQ16x4fs", False),
        ("IVF8,RaBitQ", False),
        ("IVF8_HNSW8,Flat", False),
    ],
)
def test_only_types_that_a_gpu_can_hold_are_cloned(factory: str, expected: bool) -> None:
    index = faiss.index_factory(WIDTH, factory, faiss.METRIC_INNER_PRODUCT)
    lists = lists_of(index, WIDTH)
    assert lists is not None and can_clone(lists) is expected


@pytest.mark.parametrize("factory", ["Flat", "HNSW8", "RR16,IVF8,Flat", "RR32,IVF8,Flat"])
def test_types_without_lists_of_the_vectors_themselves_have_no_lists(factory: str) -> None:
    assert lists_of(faiss.index_factory(WIDTH, factory, faiss.METRIC_INNER_PRODUCT), WIDTH) is None
