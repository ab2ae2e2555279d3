"""Compares every file and row of an index with what was recorded at writing. Changes nothing."""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from engine.errors import IndexDamaged, IndexMismatch, command_line, named_faults
from engine.store import catalog, checks
from engine.store.ann import AnnIndex
from engine.store.durable import Checksum
from engine.store.gathering import check_blocks
from engine.store.partitioned import stored_meta, stored_sources
from engine.store.postings import Postings
from engine.store.reference import parse_reference
from engine.store.shards import SHARD_FOLDER, ShardSet, map_file
from engine.store.writable import index_files, named_files, newest_shard, next_shard

_ROWS = 256


class Damage(StrEnum):
    """Kinds of damage, worst first."""

    MANIFEST = "manifest"  # the manifest of partitions cannot be read, or a partition is missing or is another index
    CATALOG = "catalog"  # its tables are not what was written, or SQLite cannot read it; it cannot be repaired
    COMMITS = "commits"  # the catalog lost commits, and with them names and texts of documents
    DOCUMENT = "document"  # a document's text is not the one that was indexed
    SHARD = "shard"  # vectors are lost; the texts can be encoded again
    REFERENCE = "reference"  # the sample and statistics are lost; a new one can be drawn, which changes scores
    GENERATION = "generation"  # derived files; can be rebuilt from shards
    LEFTOVER = "leftover"  # a file of a killed run that nothing refers to; harmless


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    damage: Damage
    where: str  # file below the index folder, or doc_id
    what: str

    @property
    def is_harmless(self) -> bool:
        """True for what the next writer sweeps away."""
        return self.damage is Damage.LEFTOVER


@named_faults
def verify(path: str | Path) -> list[Finding]:
    """Check an index completely: SQLite pages, every checksum, every text; in every partition.

    Returns:
        The findings, worst first; empty if the index is undamaged.

    Raises:
        IndexMismatch: there is no index.
    """
    folder = Path(path)
    findings = _check_partitions(folder) if catalog.is_partitioned(folder) else _check_index(folder)
    return sorted(findings, key=lambda finding: list(Damage).index(finding.damage))


def _check_partitions(folder: Path) -> list[Finding]:
    try:
        manifest = catalog.read_manifest(folder)
    except (IndexDamaged, IndexMismatch) as error:
        return [Finding(Damage.MANIFEST, catalog.MANIFEST_FILE, str(error))]
    findings = []
    for number, entry in enumerate(manifest.partitions):
        try:
            of_part = _check_index(folder / entry.folder)
            if all(finding.damage is not Damage.CATALOG for finding in of_part):
                of_part += _check_place(folder / entry.folder, number, len(manifest.partitions))
        except IndexMismatch as error:
            findings.append(Finding(Damage.MANIFEST, entry.folder, str(error)))
            continue
        findings += [replace(finding, where=f"{entry.folder}/{finding.where}") for finding in of_part]
    if (pinned := manifest.reference) is not None:
        findings += _check_reference(folder, pinned)
    return findings


def _check_place(folder: Path, number: int, n_partitions: int) -> list[Finding]:
    """Whether an index is the partition it should be, and holds no document of another one."""
    actual = stored_meta(folder).get("partition")
    if actual != {"number": number, "of": n_partitions}:
        what = f"it is {actual or 'no partition'}, not partition {number} of {n_partitions}; put the right folder there"
        return [Finding(Damage.MANIFEST, catalog.CATALOG_FILE, what)]
    names = [doc_id for doc_id, _ in stored_sources(folder)]
    strays = [name for name in names if catalog.partition_of(name, n_partitions) != number]
    what = f"{len(strays):,} documents belong to other partitions; remove them from {folder} and index them again"
    return [Finding(Damage.MANIFEST, strays[0], what)] if strays else []


def _check_index(folder: Path) -> list[Finding]:
    file = folder / catalog.CATALOG_FILE
    if not file.exists():
        raise IndexMismatch(f"{folder} holds no index; make one: {command_line('index', folder, 'PATH...')}")
    findings: list[Finding] = []
    reported = checks.reported_commits(folder)
    try:
        with catalog.reading(file) as connection:
            findings += _check_pages(connection)
            meta = checks.read_meta(connection, catalog.CATALOG_FILE)
            findings += _check_commits(connection, folder, meta, reported)
            findings += _check_rows(connection)
            findings += _check_documents(connection)
            findings += _check_shards(connection, folder)
            for row in catalog.rows_of(connection, "reference"):
                findings += _check_reference(folder, row)
            findings += _check_generations(connection, folder, (meta.get("encoder") or {}).get("width", 0))
            if not findings or findings[0].damage is not Damage.COMMITS:
                findings += _find_leftovers(connection, folder)
    except IndexMismatch as error:
        if not findings:
            raise
        findings.append(Finding(Damage.CATALOG, catalog.CATALOG_FILE, str(error)))
    except (IndexDamaged, ValueError, KeyError, TypeError) as error:
        reason, _, _ = str(error).partition("; check it:")  # which is being done
        what = reason.removeprefix(f"{file} ") if reason.startswith(str(file)) else f"cannot be read ({reason})"
        findings.append(Finding(Damage.CATALOG, catalog.CATALOG_FILE, what))
    return findings


def _check_commits(
    connection: sqlite3.Connection, folder: Path, meta: Mapping[str, Any], reported: int
) -> list[Finding]:
    """Whether all reported commits are there, and the shards that a catalog without them does not know."""
    if checks.commits_of(meta) > checks.reported_commits(folder) + 1:  # read again: a writer may be at work
        what = "it does not hold the number of commits; the next commit writes it"
        return [Finding(Damage.COMMITS, checks.COMMITS_FILE, what)]
    lost = checks.lost_commits(meta, reported)
    if lost is None and newest_shard(folder) > next_shard(meta):
        lost = "it is older than the shards beside it"
    if lost is None:
        return []
    named = named_files(connection)
    unknown = [file.relative_to(folder).as_posix() for file in sorted((folder / SHARD_FOLDER).glob("*"))]
    what = "the catalog does not name it; it holds vectors of lost documents"
    return [
        Finding(Damage.COMMITS, catalog.CATALOG_FILE, lost),
        *(Finding(Damage.COMMITS, file, what) for file in unknown if file not in named),
    ]


def _check_pages(connection: sqlite3.Connection) -> list[Finding]:
    lines = [str(line) for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
    lines += [f"row {row[1]} of {row[0]} names no {row[2]}" for row in connection.execute("PRAGMA foreign_key_check")]
    return [Finding(Damage.CATALOG, catalog.CATALOG_FILE, line) for line in lines]


def _check_rows(connection: sqlite3.Connection) -> list[Finding]:
    findings = []
    if (table := checks.damaged_table(connection)) is not None:
        findings.append(Finding(Damage.CATALOG, catalog.CATALOG_FILE, f"table {table} is not what was written"))
    names = checks.damaged_documents(connection)
    check_blocks(connection, catalog.CATALOG_FILE)
    return findings + [Finding(Damage.DOCUMENT, name, "its row is not what was written") for name in names]


def _check_documents(connection: sqlite3.Connection) -> list[Finding]:
    """Hash every text again. A whole row that is unreadable is found here too."""
    findings = []
    rows = connection.execute("SELECT id, doc_id, content_hash FROM documents").fetchall()
    for first in range(0, len(rows), _ROWS):
        block = rows[first : first + _ROWS]
        hashes = _content_hashes(connection, [number for number, _, _ in block])
        for number, doc_id, digest in block:
            if number not in hashes:
                findings.append(Finding(Damage.DOCUMENT, doc_id, "its text or sections cannot be read"))
            elif hashes[number] != digest:
                findings.append(Finding(Damage.DOCUMENT, doc_id, "its text is not the one that was indexed"))
    return findings


def _content_hashes(connection: sqlite3.Connection, ids: list[int]) -> dict[int, str]:
    """The hashes of the documents that can be read; one by one where reading them together fails."""
    try:
        hashes = [checks.content_hash(document) for document, _ in checks.stored_documents(connection, ids)]
        if len(hashes) == len(ids):
            return dict(zip(ids, hashes, strict=True))
    except IndexDamaged:
        pass
    if len(ids) == 1:
        return {}
    return {number: digest for key in ids for number, digest in _content_hashes(connection, [key]).items()}


def _check_shards(connection: sqlite3.Connection, folder: Path) -> list[Finding]:
    findings = []
    for row in catalog.rows_of(connection, "shards"):
        for finding in _damage(Damage.SHARD, row, partial(_check_shard, folder, row)):
            (n_lost,) = connection.execute("SELECT count(*) FROM documents WHERE shard_id = ?", [row.id]).fetchone()
            findings.append(replace(finding, what=f"{finding.what}; it holds the vectors of {n_lost} documents"))
    return findings


def _check_shard(folder: Path, row: catalog.NamedRow) -> None:
    shard = ShardSet(folder, [row])[row.id]
    if (len(shard.documents), len(shard.chunks)) != (row.n_documents, row.n_chunks):
        raise IndexDamaged(
            f"{row.file} holds {len(shard.documents)} documents and {len(shard.chunks)} chunks, "
            f"not {row.n_documents} and {row.n_chunks}"
        )
    if shard.words.n_documents != row.n_documents:
        raise IndexDamaged(
            f"{row.file} holds term counts of {shard.words.n_documents} documents, not {row.n_documents}"
        )


def _damage(
    damage: Damage, row: catalog.NamedRow | catalog.ReferenceFile, check: Callable[[], object]
) -> list[Finding]:
    """A finding if the check of a file raises an error."""
    try:
        check()
    except IndexDamaged as error:
        return [Finding(damage, row.file, str(error))]
    return []


def _check_reference(folder: Path, pinned: catalog.NamedRow | catalog.ReferenceFile) -> list[Finding]:
    path, written = folder / pinned.file, Checksum(pinned.size_bytes, pinned.digest)
    return _damage(Damage.REFERENCE, pinned, lambda: parse_reference(map_file(path), path, written))


def _check_generations(connection: sqlite3.Connection, folder: Path, width: int) -> list[Finding]:
    findings = []
    for row in (*catalog.rows_of(connection, "postings"), *catalog.rows_of(connection, "word_postings")):
        path, written = folder / row.file, Checksum(row.size_bytes, row.digest)
        findings += _damage(Damage.GENERATION, row, partial(Postings.open, path, written))
    for row in catalog.rows_of(connection, "generations"):
        path, written = folder / row.file, Checksum(row.size_bytes, row.digest)
        opened = partial(AnnIndex.open, path, written, n_vectors=row.n_vectors, width=width, nprobe=row.nprobe)
        findings += _damage(Damage.GENERATION, row, opened)
    return findings


def _find_leftovers(connection: sqlite3.Connection, folder: Path) -> list[Finding]:
    if catalog.has_log(folder):
        return []  # a writer may be at work on them
    named = named_files(connection)
    return [
        Finding(Damage.LEFTOVER, file.relative_to(folder).as_posix(), "nothing names it; the next writer deletes it")
        for file in index_files(folder)
        if file.relative_to(folder).as_posix() not in named
    ]
