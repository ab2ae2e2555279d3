"""The manifest of partitions: routing, reading back, and what is refused."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import xxhash

from engine.errors import IndexDamaged, IndexMismatch
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


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexMismatch, match=r"has no partitions\.json; name a partitioned index, or restore that file"):
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
        (
            {"reference": asdict(REFERENCE) | {"file": "/etc/passwd"}},
            IndexDamaged,
            "it names '/etc/passwd'",
        ),
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


def test_half_a_manifest_is_damage(tmp_path: Path) -> None:
    (tmp_path / "partitions.json").write_text('{"format": "longm')
    with pytest.raises(IndexDamaged, match=r"partitions\.json cannot be read .*restore a copy"):
        read_manifest(tmp_path)
