"""`partitions.json`: the partitions of a partitioned index, and the reference that they share. Opens no partition.

    papers.parts/
      partitions.json               this manifest, replaced by one rename
      reference/NNNNNN.safetensors  sample, word statistics and common sentences of all partitions
      0000.lm, 0001.lm, ...         ordinary indexes, each with the documents whose doc_id hashes to its number

A partition holds no reference of its own, and its catalog records that it is a partition. This module is light on
purpose: commands use it to check whether a folder is partitioned before anything else is loaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import xxhash

from engine.errors import IndexDamaged, IndexMismatch
from engine.store.catalog import CATALOG_FILE
from engine.store.durable import write_durably

MANIFEST_FILE = "partitions.json"
FORMAT = "longmatch-partitions/1"
HASH = "xxh3_64"  # of the doc_id in UTF-8, modulo the number of partitions
MOST_PARTITIONS = 4_096
_FOLDER = re.compile(r"\w[\w.-]*", re.ASCII)  # a name in the folder of the manifest, not a path
_REFERENCE = re.compile(r"reference/\d+\.safetensors", re.ASCII)


@dataclass(frozen=True, slots=True)
class ReferenceFile:
    """A pinned reference: the file, its checksum, and the documents that it was drawn from."""

    version: int
    n_corpus: int  # documents when it was drawn
    n_documents: int  # of the sample
    file: str  # relative to the folder of the index or manifest
    size_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One partition."""

    folder: str  # relative to the manifest
    n_documents: int  # when the manifest was written
    n_chunks: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The values that all partitions share, and the place of each partition."""

    encoder: Mapping[str, Any] | None  # name, fingerprint and width; None for words alone
    language: str | None  # by which words are segmented
    reference: ReferenceFile | None
    partitions: tuple[Entry, ...]  # number p holds the documents whose hash is p modulo their number
    last_reference: int = 0  # versions only grow
    has_partial_reference: bool = False  # it was drawn while documents had no vectors


def partition_of(doc_id: str, n_partitions: int) -> int:
    """The number of the partition that a document belongs to."""
    return xxhash.xxh3_64_intdigest(doc_id.encode()) % n_partitions


def partition_folder(number: int) -> str:
    """Name of the folder of a partition, relative to the manifest."""
    return f"{number:04d}.lm"


def is_partitioned(folder: Path) -> bool:
    """Whether a folder holds a partitioned index."""
    return (folder / MANIFEST_FILE).is_file()


def holds_index(folder: Path) -> bool:
    """Whether a folder holds an index, partitioned or not."""
    return (folder / CATALOG_FILE).exists() or is_partitioned(folder)


def index_folders(folder: Path) -> list[Path]:
    """The folders that have a catalog: all partitions, or the index itself."""
    return list(partition_folders(folder, read_manifest(folder))) if is_partitioned(folder) else [folder]


def partition_folders(folder: Path, manifest: Manifest) -> Iterator[Path]:
    """The folder of each partition, by number."""
    return (folder / entry.folder for entry in manifest.partitions)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a partitioned index.

    Raises:
        IndexMismatch: there is no manifest, or one of another version.
        IndexDamaged: the manifest is not what was written.
    """
    path = folder / MANIFEST_FILE
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise IndexMismatch(
            f"{folder} has no {MANIFEST_FILE}; name a partitioned index, or restore that file"
        ) from None
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    try:
        given = values["format"], values["hash"]
        if given != (FORMAT, HASH):
            raise IndexMismatch(
                f"{path} has format {given[0]!r} with hash {given[1]!r}, this program reads {FORMAT!r} with {HASH!r}; "
                "use the version of longmatch that wrote it"
            )
        if values.pop("checksum") != manifest_checksum(values):
            raise _damaged(path, "its values are not those that its checksum is of")
        reference = values["reference"]
        manifest = Manifest(
            values["encoder"],
            values["language"],
            None if reference is None else ReferenceFile(**reference),
            tuple(Entry(**entry) for entry in values["partitions"]),
            values["last_reference"],
            values["has_partial_reference"],
        )
    except (KeyError, TypeError) as error:
        raise _damaged(path, f"{error} is missing or unknown") from error
    folders = [entry.folder for entry in manifest.partitions]
    files = [] if manifest.reference is None else [manifest.reference.file]
    outside = [name for name in folders if not _FOLDER.fullmatch(name)]
    outside += [name for name in files if not _REFERENCE.fullmatch(name)]
    if outside:
        raise _damaged(path, f"it names {outside[0]!r}, which is not a place of a partitioned index")
    if not folders or len(folders) != values["n_partitions"] or len(set(folders)) < len(folders):
        raise _damaged(path, f"it names {len(set(folders))} partitions, not {values['n_partitions']}")
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a partitioned index by one rename."""
    head = {"format": FORMAT, "hash": HASH, "n_partitions": len(manifest.partitions)}
    values = head | asdict(manifest)
    content = json.dumps(values | {"checksum": manifest_checksum(values)}, indent=1, ensure_ascii=False) + "\n"
    write_durably(folder / MANIFEST_FILE, lambda unfinished: unfinished.write_text(content, encoding="utf-8"))


def manifest_checksum(values: Mapping[str, Any]) -> str:
    """xxh3_128 of the values of a manifest, as JSON with sorted keys and without blanks."""
    plain = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return xxhash.xxh3_128_hexdigest(plain.encode())


def _damaged(path: Path, reason: str) -> IndexDamaged:
    return IndexDamaged(f"{path} cannot be read ({reason}); restore a copy of it")
